"""Tensors, schedules and graphs show themselves in notebooks, and names that are HTML stay names."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from weft import Tensor
from weft.ir import UOp, dtypes, make_schedule


def pictures(html: str) -> list[ET.Element]:
    """All elements of what must be well-formed."""
    return list(ET.fromstring(f"<div>{html}</div>").iter())


def test_a_tensor_shows_its_values() -> None:
    html = Tensor([[1.0, 2.5], [3.0, 4.0]])._repr_html_()  # type: ignore[attr-defined]
    cells = [e.text for e in pictures(html) if e.tag == "td"]
    assert cells == ["1", "2.5", "3", "4"] and "2 × 2" in html and "<svg" not in html


def test_a_view_shows_which_elements_it_sees() -> None:
    x = Tensor.arange(12).reshape(3, 4)
    html = x[:, 1:3].T._repr_html_()  # type: ignore[attr-defined]
    rects = [e for e in pictures(html) if e.tag.endswith("rect")]
    assert [i for i, r in enumerate(rects) if r.get("fill") != "none"] == [1, 2, 5, 6, 9, 10]
    assert "6 of the 12 elements" in html


def test_large_and_empty_ones() -> None:
    assert "…" in Tensor.zeros(100, 100)._repr_html_()  # type: ignore[attr-defined]
    assert "no elements" in Tensor.zeros(0, 3)._repr_html_()  # type: ignore[attr-defined]
    assert "the first of 20 matrices" in Tensor.zeros(4, 5, 2, 2)._repr_html_()  # type: ignore[attr-defined]
    assert "by strides" in Tensor.zeros(100, 100).T._repr_html_()  # type: ignore[attr-defined]
    assert "a scalar" in Tensor(3)._repr_html_()  # type: ignore[attr-defined]


def test_a_schedule_is_a_picture() -> None:
    a, b = Tensor.ones(48, 32).realize(), Tensor.ones(32, 40).realize()
    svg = make_schedule(UOp.sink((a @ b).sum(axis=1).uop))._repr_svg_()  # type: ignore[attr-defined]
    texts = [e.text or "" for e in pictures(svg) if e.tag.endswith("text")]
    assert sum(t.startswith("r_") for t in texts) == 2 and sum(t.startswith("input") for t in texts) == 2, texts


def test_a_graph_is_a_picture_and_names_stay_names() -> None:
    n = UOp.variable("<script>", 1, 9)
    svg = (n + 1).exp2() if n.dtype in dtypes.floats else (n + 1) * n
    drawn = svg._repr_svg_()  # type: ignore[attr-defined]
    assert "<script>" not in drawn and any("<script>" in (e.text or "") for e in pictures(drawn))
    chain = UOp.range(4, 0)
    for i in range(400):
        chain = chain * 3 + UOp.range(4, i + 1)
    assert "weft viz shows such" in chain._repr_svg_()  # type: ignore[attr-defined]
