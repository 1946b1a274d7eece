"""One statement for several offsets or sizes: schedules that are made for all of them must be right for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from program_model import Statement

if TYPE_CHECKING:
    from random_program import Generator

# A slice {0} of {1}, its number of elements {2}, a number {3}, and another slice of that length {4}.
READS = [("{0} + {0}", "{0} + {0}"),
         ("{0}.flip(0) * 2", "np.flip({0}, 0) * 2"),
         ("{0} - {1}[:1]", "{0} - {1}[:1]"),
         ("{0}.max()", "{0}.max()"),
         ("{0}.reshape({2}) * 1", "{0}.reshape({2}) * 1"),
         ("{1} * {0}.max()", "{1} * {0}.max()"),
         ("({0} + {1}[:1]).flip(0).min()", "np.flip({0} + {1}[:1], 0).min()"),
         ("{0}.transpose(0, -1) * 3", "np.swapaxes({0}, 0, -1) * 3"),
         ("Tensor.cat({0}, {1}) * 2", "np.concatenate([{0}, {1}]) * 2"),
         ("{0}.reshape(-1, 1) - {0}.reshape(1, -1)", "{0}.reshape(-1, 1) - {0}.reshape(1, -1)")]
WRITES = ["{0} = {3}", "{0} = {0} + {3}", "{0} = {1}[:1] * {3}", "{0} = {1}[{4}] - {3}", "{0} *= {3}"]


def sweep(g: Generator) -> None:
    """An expression of a slice for several offsets or sizes, or a write to it, realised each time."""
    r = g.random
    v = r.choice(g.live) if g.live else ""
    if not v or g.array(v).ndim == 0 or g.array(v).shape[0] < 4 or g.array(v).dtype == bool:
        return
    n, k = g.array(v).shape[0], r.randint(1, 3)
    (weft, ours), write, is_write = r.choice(READS), r.choice(WRITES), r.random() < 0.5
    moves, grows = r.choice([(1, 0), (0, 1), (1, 1), (2, 0)])
    begin, length = r.randint(0, 1), r.randint(1, 3)
    for _ in range(r.randint(3, 5)):
        end = begin + length
        if end > n or v not in g.live:
            return
        texts = (f"{v}[{begin}:{end}]", v, (g.array(v)[begin:end].size,), k, f"{n - end}:{n - begin}")
        live = list(g.live)
        if is_write:
            text = write.format(*texts)
            statement = Statement(text, text, (f"is_plainly_distinct({v})",))
        else:
            statement = g.bound(weft.format(*texts), f"new({ours.format(*texts)}, {v}.dtype)")
        if not g.add(statement):
            g.live = live
            return
        g.add(g.snapshot(v if is_write else g.live[-1]))
        begin, length = begin + moves, length + grows
