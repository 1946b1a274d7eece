"""What users of tinygrad and PyTorch write by habit: names of dtypes, forms of creation, indices, data, bits."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import numpy as np
import pytest

import weft
from weft import Tensor, Variable, dtypes, jit


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    yield
    dtypes.default_float, dtypes.default_int = dtypes.float32, dtypes.int32


def test_names_of_dtypes() -> None:
    pairs = {"char": "int8", "short": "int16", "int": "int32", "long": "int64", "uchar": "uint8", "ushort": "uint16",
             "uint": "uint32", "ulong": "uint64", "half": "float16", "float": "float32", "double": "float64",
             "fp8e4m3": "float8_e4m3", "fp8e5m2": "float8_e5m2"}
    for name, other in pairs.items():
        assert getattr(dtypes, name) == getattr(dtypes, other) == dtypes.fields()[name]
        assert Tensor.zeros(1, dtype=name.upper()).dtype.name == other
    assert set(dtypes.fields().values()) == set(dtypes.all) - {dtypes.index}
    asked = [dtypes.is_float(dtypes.half), dtypes.is_int(dtypes.bool), dtypes.is_unsigned(dtypes.uint), dtypes.is_bool(dtypes.bool)]
    assert asked == [True, False, True, True] and dtypes.finfo(dtypes.bfloat16) == (8, 7)
    assert (dtypes.min(dtypes.int8), dtypes.half.max, dtypes.max(dtypes.bool)) == (-128, float("inf"), 1)
    assert [dtypes.from_py(v) for v in (1, 1.0, True, [1, 2.0], [])] == [
        dtypes.int32, dtypes.float32, dtypes.bool, dtypes.float32, dtypes.float32]
    with pytest.raises(ValueError, match="not a floating point type"):
        dtypes.finfo(dtypes.int8)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float64"])
def test_default_float(name: str) -> None:
    wanted = getattr(dtypes, name)
    f = jit(lambda x: x / 2)
    assert [f(Tensor([3])).dtype for _ in range(3)] == [dtypes.float32] * 3
    dtypes.default_float = name
    made = [Tensor([1.5]), Tensor(1.5), Tensor.ones(2), Tensor.rand(2), Tensor.eye(2), Tensor.arange(0.0, 1.0, 0.5),
            Tensor([1]) + 0.5, Tensor([1]) / 2, Tensor([1]).sin(), Tensor([1, 2]).mean(), Tensor([1, 2]).softmax(0),
            Tensor.linspace(0, 1, 3), Tensor.full((2,), 1.0)]
    assert {t.dtype for t in made} == {wanted} and dtypes.default_float == wanted
    assert (Tensor(np.zeros(2, np.float32)) + 1.0).dtype == dtypes.float32 and Tensor([True]).sum().dtype == dtypes.int32
    assert [f(Tensor([3])).dtype for _ in range(3)] == [wanted] * 3  # a capture is one for its defaults
    with pytest.raises(weft.DTypeError, match="not a float dtype"):
        dtypes.default_float = dtypes.int8


def test_default_int() -> None:
    dtypes.default_int = dtypes.int64
    assert {t.dtype for t in (Tensor([1]), Tensor(1), Tensor.arange(3), Tensor([2**40]), Tensor([True]) + 1)} == {dtypes.int64}
    with pytest.raises(weft.DTypeError, match="not an integer dtype"):
        dtypes.default_int = dtypes.float32


@pytest.mark.parametrize("said", [None, False, True])
def test_every_creation_takes_requires_grad(said: bool | None) -> None:
    x = Tensor([1.0, 2.0])
    made = [Tensor([1.0], requires_grad=said), Tensor.ones(2, 3, dtype=dtypes.half, requires_grad=said),
            Tensor.zeros((2, 3), requires_grad=said), Tensor.empty(2, requires_grad=said), Tensor.full((2,), 1.0, requires_grad=said),
            Tensor.eye(2, requires_grad=said), Tensor.linspace(0, 1, 3, requires_grad=said), Tensor.rand(2, requires_grad=said),
            Tensor.arange(0.0, 2.0, requires_grad=said), Tensor.randn(2, requires_grad=said), Tensor.uniform(2, requires_grad=said),
            Tensor.normal(2, requires_grad=said), Tensor.kaiming_uniform(2, 2, requires_grad=said),
            x.ones_like(requires_grad=said), x.zeros_like(requires_grad=said), x.full_like(2, requires_grad=said),
            x.rand_like(requires_grad=said)]
    assert [t.requires_grad for t in made] == [said] * len(made)


def test_indices() -> None:
    a, n = Tensor.arange(24).reshape(2, 3, 4), np.arange(24).reshape(2, 3, 4)
    assert a[range(2)].tolist() == n[range(2)].tolist() and a[:, range(2, 0, -1)].tolist() == n[:, range(2, 0, -1)].tolist()
    assert a[(0, 1), (2, 0)].tolist() == n[(0, 1), (2, 0)].tolist()
    assert a[[Tensor(1), 0]].tolist() == n[[1, 0]].tolist()
    assert a[:, [[Tensor(1), 0], [2, Tensor(2)]]].tolist() == n[:, [[1, 0], [2, 2]]].tolist()
    assert a[0, ((0, 1), (2, 2))].tolist() == n[0, ((0, 1), (2, 2))].tolist()
    a[(0, 1), range(2)] = Tensor([[7], [8]])
    n[(0, 1), range(2)] = [[7], [8]]
    assert a.tolist() == n.tolist()
    place = Tensor([1, 2]).sum() - 2
    part = Tensor.arange(24).reshape(2, 12).realize()[place]
    assert not place.is_realized() and  a[place].tolist() == n[1].tolist()
    with pytest.raises(weft.IndexError, match="an index is"):
        a["x"]  # type: ignore[index]


def test_raw_data(tmp_path: pathlib.Path) -> None:
    data = np.arange(6, dtype=np.float32).tobytes()
    (tmp_path / "data").write_bytes(data)
    assert Tensor(b"abc").tolist() == [97, 98, 99] and Tensor(b"abc").dtype == dtypes.uint8
    for given in (data, bytearray(data), memoryview(data), tmp_path / "data"):
        assert Tensor(given, dtype=dtypes.float32).tolist() == list(range(6))
    with pytest.raises(weft.ShapeError, match="no whole number"):
        Tensor(b"abc", dtype=dtypes.int16)


@pytest.mark.parametrize("start", ["uint8", "int16", "float16", "int32", "float32", "int64", "float64"])
@pytest.mark.parametrize("end", ["int8", "uint16", "float16", "uint32", "float32", "uint64"])
def test_bits_in_a_wider_or_narrower_dtype(start: str, end: str) -> None:
    data = np.arange(1, 97, dtype=np.uint8).view(start).reshape(3, -1)[:, :8]
    if data.shape[1] * data.itemsize % np.dtype(end).itemsize:
        return
    for x, n in ((Tensor(data), data), (Tensor(data).T.contiguous().T[1:], data[1:])):
        got = x.bitcast(end)
        assert got.shape == np.ascontiguousarray(n).view(end).shape
        assert got.numpy().tobytes() == np.ascontiguousarray(n).tobytes()


def test_an_axis_of_a_scalar() -> None:
    x = Tensor(3.0)
    assert [x.sum(0).item(), x.max(-1).item(), x.prod((0,)).item(), x.squeeze(-1).item()] == [3.0] * 4
    with pytest.raises(weft.IndexError):
        x.sum(1)


def test_train_is_a_decorator() -> None:
    @Tensor.train()
    def training() -> bool:
        return Tensor.training

    assert not Tensor.training and training() and not Tensor.training and training.__name__ == "training"


def test_errors_are_runtime_errors_too() -> None:
    for wrong in (lambda: Tensor([1, 2]) + Tensor([1, 2, 3]), lambda: Tensor([1.0]) & 1, lambda: Tensor([1])[3]):
        with pytest.raises(RuntimeError):
            wrong()


def test_bound_variables_are_numbers() -> None:
    n = Variable("n", 1, 8).bind(3)
    x = Tensor.arange(8)
    f = jit(lambda x, n: (x[:n] * n + (n + 1) * 2 - n // 2).sum() + (1 if n > 2 else 0))
    for value in (3, 5, 2, 7, 4):
        k = Variable("n", 1, 8).bind(value)
        expected = int((np.arange(value) * value + (value + 1) * 2 - value // 2).sum() + (1 if value > 2 else 0))
        assert f(x, k).item() == expected
    assert (x[:n] + n).tolist() == [3, 4, 5] and (n == 3, n < 3, -n, n * 2.5) == (True, False, -3, 7.5)


def test_constants_with_or_without_memory() -> None:
    assert Tensor.zeros(2, buffer=False).tolist() == Tensor.zeros((2,), buffer=True).tolist() == [0, 0]
    assert Tensor.ones(2, buffer=False, dtype=dtypes.int).tolist() == [1, 1]
    assert Tensor.empty(2, 3, buffer=False).shape == (2, 3)


def test_bounds_of_slices_are_ints() -> None:
    x = Tensor([1, 2, 3])
    for key in (slice("0", "1"), slice(0.0, None), (slice(None, 2.5),)):
        with pytest.raises(TypeError):
            x[key]


def test_a_variable_has_an_expr() -> None:
    assert Variable("n", 1, 8).expr == "n"


def test_what_negative_circular_padding_leaves_comes_round() -> None:
    x = Tensor.arange(9).reshape(3, 3)
    assert x.pad((1, -1, 1, -1), mode="circular").tolist() == [[4, 3, 4], [1, 0, 1], [4, 3, 4]]
    assert x.pad((-1, 2, 0, 0), mode="circular").tolist() == [[1, 2, 1, 2], [4, 5, 4, 5], [7, 8, 7, 8]]
    with pytest.raises(weft.ShapeError):
        x.pad((-2, 2, 0, 0), mode="circular")
