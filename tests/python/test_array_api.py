"""weft.array_api: every function of the 2023.12 standard is there, or named as missing, and does what NumPy's does."""

from typing import Any

import numpy as np
import pytest

import weft
from weft import Tensor, array_api as xp

STANDARD = """
abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert bitwise_or
bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1 floor floor_divide greater
greater_equal hypot imag isfinite isinf isnan less less_equal log log1p log2 log10 logaddexp logical_and logical_not
logical_or logical_xor maximum minimum multiply negative not_equal positive pow real remainder round sign signbit sin
sinh square sqrt subtract tan tanh trunc arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid
ones ones_like tril triu zeros zeros_like astype broadcast_arrays broadcast_to can_cast finfo iinfo isdtype result_type
take matmul matrix_transpose tensordot vecdot concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze
stack tile unstack argmax argmin nonzero searchsorted where unique_all unique_counts unique_inverse unique_values argsort
sort cumulative_sum max mean min prod std sum var all any e inf nan newaxis pi bool int8 int16 int32 int64 uint8 uint16
uint32 uint64 float32 float64 complex64 complex128 __array_namespace_info__
""".split()

M = np.array([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]], np.float32)
P = np.abs(M)
U = M / 4
I = np.array([[5, -3, 2], [7, 0, 1]], np.int32)
B = I > 1

CASES: dict[str, tuple[Any, ...]] = {
    **{name: (U,) for name in ("abs", "acos", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "exp", "expm1", "floor",
                               "isfinite", "isinf", "isnan", "log1p", "negative", "positive", "round", "sign", "signbit",
                               "sin", "sinh", "square", "tan", "tanh", "trunc", "max", "mean", "min", "std", "var")},
    **{name: (P + 1,) for name in ("acosh", "log", "log2", "log10", "sqrt")},
    **{name: (M, U) for name in ("add", "atan2", "copysign", "divide", "equal", "greater", "greater_equal", "hypot", "less",
                                 "less_equal", "logaddexp", "maximum", "minimum", "multiply", "not_equal", "subtract")},
    **{name: (I, I.T.reshape(2, 3)) for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or",
                                                 "logical_xor")},
    "bitwise_invert": (I,), "logical_not": (B,), "bitwise_left_shift": (I, np.int32([1, 2, 3])),
    "bitwise_right_shift": (I, np.int32([1, 2, 3])), "floor_divide": (I, np.int32([2, 3, -4])),
    "remainder": (I, np.int32([2, 3, -4])), "pow": (P, U), "clip": (M, -1, 1), "full": ((2, 3), 7), "zeros": ((2, 3),),
    "ones": ((2,),), "zeros_like": (I,), "ones_like": (M,), "full_like": (I, 3), "arange": (1, 7, 2), "asarray": ([1, 2],),
    "tril": (M,), "triu": (M,), "eye": (2, 3), "linspace": (0.0, 1.0, 5), "broadcast_to": (M, (2, 2, 3)), "all": (B,), "any": (B,),
    "matmul": (M, M.T), "matrix_transpose": (M,), "vecdot": (M, U), "flip": (I,), "moveaxis": (M, 0, 1),
    "permute_dims": (M, (1, 0)), "repeat": (I, 2), "reshape": (I, (3, 2)), "roll": (I, 1), "squeeze": (M[:, None], 1), "tile": (I, (2, 1)),
    "argmax": (M,), "argmin": (M,), "where": (B, M, U), "argsort": (M,), "sort": (M,), "sum": (M,), "prod": (M,),
    "cumulative_sum": (M[0],),
}


def as_tensor(value: Any) -> Any:
    return Tensor(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("name", CASES)
def test_as_numpy(name: str) -> None:
    arguments = CASES[name]
    ours = getattr(xp, name)(*(as_tensor(a) for a in arguments))
    theirs = np.asarray(getattr(np, name)(*arguments))
    assert ours.shape == theirs.shape
    assert (ours.dtype.is_float, ours.dtype.is_int, ours.dtype.is_bool) == tuple(theirs.dtype.kind in k for k in ("f", "iu", "b"))
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-5, atol=1e-6)


def test_all_of_the_standard_is_there_or_named_as_missing() -> None:
    assert [name for name in STANDARD if not hasattr(xp, name)] == [n for n in STANDARD if n in xp.MISSING]
    tested = set(CASES) | {"empty", "empty_like", "from_dlpack", "meshgrid", "astype", "broadcast_arrays", "can_cast", "finfo",
                           "iinfo", "isdtype", "result_type", "tensordot", "concat", "expand_dims", "stack", "unstack",
                           "take", "nonzero", "searchsorted", "unique_all", "unique_counts", "unique_inverse",
                           "unique_values"}
    constants = {"e", "inf", "nan", "newaxis", "pi", "bool", "__array_namespace_info__"}
    assert [n for n in STANDARD if n not in tested | constants | set(xp.MISSING) and "int" not in n and "float" not in n] == []


def test_scalars_are_weak() -> None:
    for function in (xp.add, xp.subtract, xp.multiply, xp.divide, xp.pow, xp.maximum, xp.less, xp.atan2, xp.copysign):
        name = function.__name__
        np.testing.assert_allclose(function(2, Tensor(P)).numpy(), getattr(np, name)(np.float32(2), P), rtol=1e-5, err_msg=name)
        np.testing.assert_allclose(function(Tensor(P), 2).numpy(), getattr(np, name)(P, np.float32(2)), rtol=1e-5, err_msg=name)
    assert xp.add(1, Tensor(I)).dtype == xp.int32 and xp.add(1.5, Tensor(I)).dtype == xp.float32


def test_dtypes() -> None:
    assert xp.result_type(xp.int8, xp.uint8) == xp.int16 and xp.result_type(Tensor(I), 1.5) == xp.float32
    assert xp.can_cast(xp.int8, xp.int32) and not xp.can_cast(xp.int32, xp.int8)
    assert xp.isdtype(xp.int8, "integral") and not xp.isdtype(xp.int8, ("bool", "real floating", xp.int16))
    assert (xp.iinfo(xp.int8).min, xp.iinfo(xp.uint16).max) == (-128, 65535)
    for ours, theirs in ((xp.float32, np.float32), (xp.float64, np.float64), (xp.float16, np.float16)):
        info, expected = xp.finfo(ours), np.finfo(theirs)
        assert (info.bits, info.eps, info.max, info.smallest_normal) == (
            expected.bits, float(expected.eps), float(expected.max), float(expected.smallest_normal))
    x = Tensor(M)
    assert xp.astype(x, xp.int32).tolist() == M.astype(np.int32).tolist()
    assert xp.astype(x, xp.float32, copy=False).shares_memory_with(x) and not xp.astype(x, xp.float32).shares_memory_with(x)


def test_several_arrays() -> None:
    a, b = Tensor(M), Tensor(I)
    assert xp.concat([a, b], axis=1).numpy().tolist() == np.concat([M, I], axis=1).tolist()
    assert xp.concat([a, b], axis=None).shape == (12,) and xp.stack([a, b], axis=2).shape == (2, 3, 2)
    assert [x.shape for x in xp.broadcast_arrays(a, Tensor([1]))] == [(2, 3), (2, 3)]
    assert [g.tolist() for g in xp.meshgrid(Tensor([1, 2]), Tensor([3, 4, 5]))] == [
        g.tolist() for g in np.meshgrid([1, 2], [3, 4, 5])]
    assert [x.tolist() for x in xp.unstack(b, axis=1)] == I.T.tolist()
    for axes in (0, 1, ([1], [0]), ([0, 1], [1, 0])):
        np.testing.assert_allclose(xp.tensordot(a, Tensor(U.T.copy()), axes=axes).numpy(), np.tensordot(M, U.T, axes=axes),
                                   rtol=1e-5, atol=1e-6)


def test_options() -> None:
    a = Tensor(M)
    assert xp.expand_dims(a, axis=1).shape == (2, 1, 3) and xp.empty((2, 0)).shape == (2, 0) == xp.empty_like(a[:, :0]).shape
    np.testing.assert_allclose(xp.cumulative_sum(a, axis=1, include_initial=True).numpy(),
                               np.cumulative_sum(M, axis=1, include_initial=True), rtol=1e-6)
    np.testing.assert_allclose(xp.var(a, axis=0, correction=1, keepdims=True).numpy(), M.var(0, ddof=1, keepdims=True), rtol=1e-5)
    assert xp.sum(Tensor([1, 2], dtype="uint8")).dtype == xp.uint32 and xp.sum(a, dtype=xp.float64).dtype == xp.float64
    assert xp.eye(3, k=1).tolist() == np.eye(3, k=1).tolist()
    np.testing.assert_allclose(xp.linspace(0, 1, 4, endpoint=False).numpy(), np.linspace(0, 1, 4, endpoint=False))
    assert xp.sort(a, axis=0, descending=True).tolist() == (-np.sort(-M, axis=0)).tolist()
    with pytest.raises(ValueError):
        xp.reshape(a.T, (6,), copy=False)
    with pytest.raises(ValueError):
        xp.squeeze(a, 0)
    assert xp.take(a, Tensor([2, 0]), axis=1).tolist() == np.take(M, [2, 0], axis=1).tolist()
    assert xp.take(a[0], Tensor([2, 0])).tolist() == M[0, [2, 0]].tolist()
    assert [t.tolist() for t in xp.nonzero(Tensor(I))] == [t.tolist() for t in np.nonzero(I)]
    with pytest.raises(ValueError):
        xp.asarray([1], copy=False)
    assert xp.from_dlpack(np.float32([1, 2])).tolist() == [1, 2]


def test_the_namespace_of_a_tensor() -> None:
    x = Tensor([[1.0, 2.0]])
    assert x.__array_namespace__() is xp and x.__array_namespace__(api_version="2022.12") is xp
    with pytest.raises(ValueError, match="no version '1999'"):
        x.__array_namespace__(api_version="1999")
    info = xp.__array_namespace_info__()
    assert info.default_device() == x.device and info.default_dtypes()["real floating"] == xp.float32
    assert list(info.dtypes(kind="unsigned integer")) == ["uint8", "uint16", "uint32", "uint64"]
    assert x.mT.shape == (2, 1) and x.to_device(x.device).tolist() == x.tolist()


REPEATED = [np.array([5, 2, 5, 7, 2, 2], np.int32), np.array([[1.5, -0.0], [0.0, 1.5]], np.float32), np.array([], np.float32),
            np.array(3.0, np.float32), np.array([True, False, True]), np.arange(300, dtype=np.int64) % 7,
            np.array([np.nan, 1.0, np.nan, np.inf, -np.inf, 1.0], np.float32)]


@pytest.mark.parametrize("array", REPEATED, ids=range(len(REPEATED)))
def test_sets(array: Any) -> None:
    values, indices, inverse, counts = xp.unique_all(Tensor(array))
    expected = np.unique_all(array)
    np.testing.assert_array_equal(values.numpy(), expected.values)
    np.testing.assert_array_equal(indices.numpy(), expected.indices)
    np.testing.assert_array_equal(inverse.numpy(), expected.inverse_indices)
    np.testing.assert_array_equal(counts.numpy(), expected.counts)
    assert inverse.shape == array.shape and values.dtype == Tensor(array).dtype
    np.testing.assert_array_equal(xp.unique_values(Tensor(array)).numpy(), expected.values)
    assert [t.shape for t in xp.unique_counts(Tensor(array))] == [expected.values.shape] * 2
    assert xp.unique_inverse(Tensor(array)).inverse_indices.tolist() == expected.inverse_indices.tolist()


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8, 100])
def test_searchsorted(size: int, side: Any) -> None:
    random = np.random.default_rng(size)
    x, wanted = random.integers(0, 20, size).astype(np.float32), random.integers(-2, 23, (3, 5)).astype(np.float32)
    x[:1], wanted[0, 0], wanted[1, 1] = np.nan, np.nan, np.inf
    order = np.argsort(x, stable=True)
    ours = xp.searchsorted(Tensor(x[order]), Tensor(wanted), side=side)
    np.testing.assert_array_equal(ours.numpy(), np.searchsorted(x[order], wanted, side=side))
    by_order = xp.searchsorted(Tensor(x), Tensor(wanted), side=side, sorter=Tensor(order.astype(np.int32)))
    np.testing.assert_array_equal(by_order.numpy(), np.searchsorted(x, wanted, side=side, sorter=order))


def test_searchsorted_is_lazy_and_refuses() -> None:
    x = Tensor([1, 3, 3, 7]) + 0
    weft.counters.reset()
    place = xp.searchsorted(x, 3)
    assert weft.counters.kernels == 0 and place.item() == 1
    with pytest.raises(ValueError, match="it must have one"):
        xp.searchsorted(Tensor([[1]]), 3)
    with pytest.raises(ValueError, match="no side 'up'"):
        xp.searchsorted(x, 3, side="up")
