"""Every operation of Tensor against NumPy: dtypes, shapes with sizes 0 and 1, and no axes at all."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import Tensor, dtypes

SHAPES = [(), (1,), (5,), (0,), (3, 4), (1, 4), (2, 0), (2, 1, 3)]
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
ALL = ["bool", *INTS, *FLOATS]


def sample(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    """Small values, all of them of use as operands of anything."""
    r = np.random.default_rng([seed, len(shape), *shape])
    low = 0 if dtype.startswith("u") or dtype == "bool" else -6
    values = r.integers(low, 2 if dtype == "bool" else 9, shape)
    return (values * 0.5 if dtype in FLOATS else values).astype(dtype)


def equal(result: Tensor, expected: Any, dtype: str | None = None, tolerance: float = 0.0) -> None:
    expected = np.asarray(expected)
    array = result.numpy()
    assert array.shape == expected.shape
    assert result.dtype.name == (dtype or str(expected.dtype))
    if tolerance:
        np.testing.assert_allclose(array.astype(np.float64), expected.astype(np.float64), tolerance, tolerance)
    else:
        np.testing.assert_array_equal(array, expected.astype(array.dtype))


# PyTorch does not promote unsigned integers of 16 and more bits with signed ones.
PROMOTED = [(x, y) for x, y in itertools.product(ALL, ALL) if x != y
            and not ({x, y} & {"uint16", "uint32", "uint64"} and {x, y} & {"int8", "int16", "int32", "int64"})]


def promoted(x: str, y: str) -> str:
    floats = [d for d in (x, y) if d in FLOATS]
    return floats[0] if len(floats) == 1 else str(np.promote_types(x, y))


# -------------------------------------------------------------------------------------------- creation


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ALL)
def test_from_arrays(shape: tuple[int, ...], dtype: str) -> None:
    array = sample(shape, dtype)
    tensor = Tensor(array)
    assert (tensor.shape, tensor.ndim, tensor.numel(), tensor.dtype.name) == (shape, len(shape), array.size, dtype)
    assert tensor.nbytes() == array.nbytes and tensor.element_size() == array.itemsize
    equal(tensor, array)
    assert tensor.tolist() == array.tolist()
    if array.ndim == 2:
        equal(Tensor(array.T), array.T)
        equal(Tensor(array[::-1, ::2]), array[::-1, ::2])
    np.testing.assert_array_equal(np.asarray(tensor), array)


@pytest.mark.parametrize(("data", "dtype"), [
    (3, "int32"), (2.5, "float32"), (True, "bool"), ([1, 2], "int32"), ([1, 2.5], "float32"), ([[True], [False]], "bool"),
    ([], "float32"), ([[], []], "float32"), ([[1, 2], (3, 4)], "int32"), (np.float64(1.5), "float64"), (np.int8(3), "int8"),
])
def test_from_python(data: Any, dtype: str) -> None:
    equal(Tensor(data), np.array(data, dtype))


@pytest.mark.parametrize("dtype", ALL)
def test_from_python_in_a_dtype(dtype: str) -> None:
    equal(Tensor([0, 1, 1], dtype=getattr(dtypes, dtype)), np.array([0, 1, 1], dtype))
    equal(Tensor(1, dtype=dtype), np.array(1, dtype))
    equal(Tensor(np.array([0.0, 1.0, 5.0]), dtype=dtype), np.array([0, 1, 5]).astype(dtype))
    assert Tensor([1.5, 2.5], dtype="bfloat16").tolist() == [1.5, 2.5]
    assert Tensor([2**63], dtype="uint64").item() == 2**63
    assert Tensor([0.1], dtype="float64").item() == 0.1


@pytest.mark.parametrize("shape", SHAPES)
def test_filled(shape: tuple[int, ...]) -> None:
    equal(Tensor.zeros(*shape), np.zeros(shape, np.float32))
    equal(Tensor.ones(shape, dtype="int16"), np.ones(shape, np.int16))
    equal(Tensor.full(shape, 7), np.full(shape, 7, np.int32))
    equal(Tensor.full(shape, 0.5), np.full(shape, 0.5, np.float32))
    equal(Tensor.full(shape, True), np.full(shape, True))
    like = Tensor.zeros(shape, dtype="int8")
    equal(like.ones_like(), np.ones(shape, np.int8))
    equal(like.full_like(3), np.full(shape, 3, np.int8))
    equal(like.zeros_like(dtype="float64"), np.zeros(shape))
    assert like.empty_like().shape == Tensor.empty(shape).shape == shape
    assert Tensor.empty(shape).numpy().shape == shape


@pytest.mark.parametrize("arguments", [(5,), (0,), (2, 7), (7, 2), (7, 2, -2), (0, 1, 0.25), (1.5,), (3, 3), (-3, 4, 3)])
def test_arange(arguments: tuple[float, ...]) -> None:
    dtype = "float32" if any(isinstance(a, float) for a in arguments) else "int32"
    equal(Tensor.arange(*arguments), np.arange(*arguments, dtype=dtype))
    equal(Tensor.arange(*arguments, dtype="float64"), np.arange(*arguments, dtype=np.float64))


# ----------------------------------------------------------------------------------------- elementwise

BINARY: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "add": (lambda x, y: x + y, np.add),
    "sub": (lambda x, y: x - y, np.subtract),
    "mul": (lambda x, y: x * y, np.multiply),
    "maximum": (lambda x, y: x.maximum(y), np.maximum),
    "minimum": (lambda x, y: x.minimum(y), np.minimum),
}
COMPARISONS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "lt": (lambda x, y: x < y, np.less),
    "le": (lambda x, y: x <= y, np.less_equal),
    "gt": (lambda x, y: x > y, np.greater),
    "ge": (lambda x, y: x >= y, np.greater_equal),
    "eq": (lambda x, y: x == y, np.equal),
    "ne": (lambda x, y: x != y, np.not_equal),
}
BITWISE: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "and": (lambda x, y: x & y, np.bitwise_and),
    "or": (lambda x, y: x | y, np.bitwise_or),
    "xor": (lambda x, y: x ^ y, np.bitwise_xor),
}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", [*INTS, *FLOATS])
def test_arithmetic(name: str, dtype: str) -> None:
    ours, theirs = BINARY[name]
    for shape in SHAPES:
        x, y = sample(shape, dtype), sample(shape, dtype, 1)
        equal(ours(Tensor(x), Tensor(y)), theirs(x, y))


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(("x", "y"), PROMOTED)
def test_promotion(name: str, x: str, y: str) -> None:
    dtype = promoted(x, y)
    a, b = sample((3, 4), x), sample((4,), y, 1)
    equal(BINARY[name][0](Tensor(a), Tensor(b)), BINARY[name][1](a.astype(dtype), b.astype(dtype)), dtype)


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("dtype", ALL)
def test_comparisons(name: str, dtype: str) -> None:
    ours, theirs = COMPARISONS[name]
    for shape in SHAPES:
        x, y = sample(shape, dtype), sample(shape, dtype, 1)
        equal(ours(Tensor(x), Tensor(y)), theirs(x, y), "bool")
        equal(ours(Tensor(x), 1), theirs(x, np.array(1, dtype)), "bool")
    nan = np.array([np.nan, 1.0, -np.inf, 0.0], np.float32)
    other = np.array([1.0, np.nan, -np.inf, -0.0], np.float32)
    equal(ours(Tensor(nan), Tensor(other)), theirs(nan, other), "bool")
    equal(ours(Tensor([1, 2]), float("nan")), theirs(np.array([1.0, 2.0]), np.nan), "bool")


@pytest.mark.parametrize("name", BITWISE)
@pytest.mark.parametrize("dtype", ["bool", *INTS])
def test_bits(name: str, dtype: str) -> None:
    ours, theirs = BITWISE[name]
    for shape in SHAPES:
        x, y = sample(shape, dtype), sample(shape, dtype, 1)
        equal(ours(Tensor(x), Tensor(y)), theirs(x, y))
        equal(~Tensor(x), ~x)


@pytest.mark.parametrize("dtype", INTS)
def test_shifts_and_integer_division(dtype: str) -> None:
    x = sample((3, 4), dtype)
    divisors = np.array([1, 2, 3, 5]).astype(dtype)
    equal(Tensor(x) << 2, x << np.array(2, dtype))
    equal(Tensor(x) >> Tensor(np.array([0, 1, 2, 3]).astype(dtype)), x >> np.array([0, 1, 2, 3]).astype(dtype))
    equal(Tensor(x) // Tensor(divisors), x // divisors)
    equal(Tensor(x) % Tensor(divisors), x % divisors)
    equal(Tensor(x) // 3, x // np.array(3, dtype))
    equal(7 % Tensor(divisors), np.array(7, dtype) % divisors)
    equal(Tensor(x) / Tensor(divisors), x.astype(np.float32) / divisors.astype(np.float32), "float32")


def test_division_by_zero_is_total() -> None:
    assert (Tensor([5, -5]) // 0).tolist() == [0, 0]
    assert (Tensor([5, -5]) % 0).tolist() == [5, -5]
    assert (Tensor([1, -1]) / 0).tolist() == [math.inf, -math.inf]
    assert (Tensor([-(2**31)]) // -1).tolist() == [-(2**31)]


@pytest.mark.parametrize("dtype", FLOATS)
def test_division_of_floats(dtype: str) -> None:
    x, y = sample((3, 4), dtype), np.array([1, 2, -4, 0.5], dtype)
    equal(Tensor(x) / Tensor(y), x / y)
    equal(Tensor(x) // Tensor(y), np.floor(x / y))
    equal(1 / Tensor(y), 1 / y)
    equal(Tensor(x).div(2, rounding_mode="trunc"), np.trunc(x / 2))


@pytest.mark.parametrize("dtype", [*INTS, *FLOATS])
def test_numbers_are_weak(dtype: str) -> None:
    x = sample((5,), dtype)
    equal(Tensor(x) + 3, x + np.array(3, dtype))
    equal(3 - Tensor(x), np.array(3, dtype) - x)
    equal(Tensor(x) * True, x)
    expected = dtype if dtype in FLOATS else "float32"
    equal(Tensor(x) * 0.5, x.astype(expected) * np.array(0.5, expected), expected)
    assert (Tensor([True]) + 1).dtype == dtypes.int32 and (Tensor([True]) + 1.0).dtype == dtypes.float32
    assert (Tensor(x) + Tensor(np.float64(1))).dtype == dtypes.float64


@pytest.mark.parametrize("x", SHAPES)
@pytest.mark.parametrize("y", SHAPES)
def test_broadcasting(x: tuple[int, ...], y: tuple[int, ...]) -> None:
    a, b = sample(x, "int32"), sample(y, "int32", 1)
    try:
        expected = a * b
    except ValueError:
        with pytest.raises(weft.ShapeError):
            Tensor(a) * Tensor(b)
        return
    equal(Tensor(a) * Tensor(b), expected, "int32")


def test_operators_with_arrays() -> None:
    x, y = np.array([1.0, 2.0], np.float32), np.array([3.0, 5.0], np.float32)
    for result, expected in [(Tensor(x) + y, x + y), (y - Tensor(x), y - x), (y < Tensor(x), y < x), (y @ Tensor(x), y @ x),
                             (np.float32(2) * Tensor(x), 2 * x), (Tensor(x).maximum(y), y)]:
        assert isinstance(result, Tensor)
        equal(result, expected)


@pytest.mark.parametrize("dtype", ["int32", "float32", "uint8", "float64"])
def test_in_place(dtype: str) -> None:
    for name in ["add", "sub", "mul", "floordiv", "mod", "matmul"]:
        x, y = sample((4, 4), dtype), abs(sample((4, 4), dtype, 1)) + 1
        tensor = Tensor(x)
        view = tensor[1]
        same = getattr(tensor, f"__i{name}__")(Tensor(y.astype(dtype)))
        assert same is tensor
        expected = getattr(x, f"__{name}__")(y.astype(dtype))
        equal(tensor, expected, dtype)
        equal(view, expected[1], dtype)


def test_in_place_keeps_the_dtype() -> None:
    a = Tensor([1, 2])
    a += True
    a *= Tensor(np.array([2, 3], np.int64))
    assert (a.tolist(), a.dtype) == ([4, 9], dtypes.int32)
    b = Tensor([1.0, 2.0])
    b /= 2
    b **= 2
    assert b.tolist() == [0.25, 1.0]
    c = Tensor([6, 5])
    c &= 3
    c |= 8
    c ^= 1
    c <<= 1
    c >>= 2
    assert c.tolist() == [5, 4]


def test_powers() -> None:
    x = np.array([-2.0, 0.5, 3.0], np.float32)
    for n in [0, 1, 2, 3, 5, -1, -2]:
        equal(Tensor(x) ** n, np.power(x, np.float32(n)), tolerance=1e-6)
    equal(Tensor([4.0, 9.0]) ** 0.5, np.array([2, 3], np.float32))
    equal(Tensor([4.0, 9.0]) ** 1.5, np.array([8, 27], np.float32), tolerance=1e-5)
    equal(2 ** Tensor([1, 2, 10]), np.array([2, 4, 1024], np.int32))
    equal(Tensor([3, -2]) ** 3, np.array([27, -8], np.int32))
    same = Tensor([1.0]) ** 1
    same += 1
    assert (Tensor([float("nan")]) ** 0).item() == 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_functions(dtype: str) -> None:
    tolerance = {"float16": 2e-3, "float32": 3e-6, "float64": 3e-6}[dtype]
    for shape in SHAPES:
        x = sample(shape, dtype)
        for name in ["exp", "exp2", "sin", "cos", "tan", "tanh"]:
            equal(getattr(Tensor(x), name)(), getattr(np, name)(x.astype(np.float64)), dtype, tolerance * 10)
        for name in ["trunc", "floor", "ceil", "round", "abs", "square", "sign"]:
            equal(getattr(Tensor(x), name)(), getattr(np, name)(x), dtype)
        positive = np.abs(x) + np.array(0.5, dtype)
        for name in ["log", "log2", "sqrt", "reciprocal"]:
            equal(getattr(Tensor(positive), name)(), getattr(np, name)(positive.astype(np.float64)), dtype, tolerance)
        equal(Tensor(positive).rsqrt(), 1 / np.sqrt(positive.astype(np.float64)), dtype, tolerance)
        equal(Tensor(x).relu(), np.maximum(x, 0), dtype)
        equal(-Tensor(x), -x)
        equal(Tensor(x).sigmoid(), 1 / (1 + np.exp(-x.astype(np.float64))), dtype, tolerance)


@pytest.mark.parametrize("dtype", INTS)
def test_functions_of_integers(dtype: str) -> None:
    x = sample((5,), dtype)
    equal(abs(Tensor(x)), abs(x))
    equal(-Tensor(x), -x)
    equal(Tensor(x).relu(), np.maximum(x, 0))
    equal(Tensor(x).sign(), np.sign(x))
    equal(Tensor(x).exp(), np.exp(x.astype(np.float32)), "float32", 1e-5)
    equal(Tensor(x).floor(), x, dtype)
    equal(Tensor(x).clamp(1, 4), np.clip(x, 1, 4), dtype)
    assert not Tensor(x).abs().shares_memory_with(Tensor(x))


def test_special_values() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5], np.float32)
    equal(Tensor(x).isnan(), np.isnan(x))
    equal(Tensor(x).isinf(), np.isinf(x))
    equal(Tensor(x).isinf(detect_negative=False), np.isposinf(x))
    equal(Tensor(x).isfinite(), np.isfinite(x))
    equal(Tensor(x).abs(), np.abs(x))
    equal(Tensor(x).relu(), np.maximum(x, 0))
    equal(Tensor(x).sign(), np.sign(x))
    equal(Tensor(x).logical_not(), np.logical_not(x))
    assert math.copysign(1, Tensor([-0.0]).neg().item()) == 1
    assert math.isnan(Tensor(x).max().item()) and math.isnan(Tensor(x).sum().item())


@pytest.mark.parametrize("shape", SHAPES)
def test_where(shape: tuple[int, ...]) -> None:
    x, y = sample(shape, "float32"), sample(shape, "float32", 1)
    equal((Tensor(x) > Tensor(y)).where(Tensor(x), Tensor(y)), np.where(x > y, x, y))
    equal((Tensor(x) > 0).where(Tensor(x), 0), np.where(x > 0, x, 0), "float32")
    equal((Tensor(x) > 0).where(1, Tensor(x)), np.where(x > 0, 1, x), "float32")
    equal((Tensor(x) > 0).where(1, 2), np.where(x > 0, 1, 2).astype(np.int32))
    equal(Tensor(x).clamp(-1, 1), np.clip(x, -1, 1))
    equal(Tensor(x).clip(max_=1), np.minimum(x, 1), "float32")


@pytest.mark.parametrize("source", ALL)
@pytest.mark.parametrize("target", ALL)
def test_cast(source: str, target: str) -> None:
    for shape in SHAPES:
        x = np.abs(sample(shape, source).astype(np.float64)).astype(source)
        equal(Tensor(x).cast(getattr(dtypes, target)), x.astype(target))
    methods = {"float32": "float", "float16": "half", "float64": "double", "int32": "int", "int64": "long", "int16": "short",
               "bool": "bool"}
    if target in methods:
        equal(getattr(Tensor(x), methods[target])(), x.astype(target))


def test_casts_are_total() -> None:
    x = Tensor([float("nan"), float("inf"), -1e30, 2.9, -2.9])
    assert x.int().tolist() == [0, 2**31 - 1, -(2**31), 2, -2]
    assert Tensor([300, -1]).cast("uint8").tolist() == [44, 255]
    assert Tensor([1.0]).bitcast("int32").item() == 0x3F800000
    a = Tensor([1.0])
    a.bitcast(dtypes.int32).assign(0x40000000)
    assert a.item() == 2.0


# ------------------------------------------------------------------------------------------ reductions


def axes_of(shape: tuple[int, ...]) -> list[Any]:
    found: list[Any] = [None, *range(-len(shape), len(shape))]
    return [*found, (0, len(shape) - 1)] if len(shape) > 1 else found


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions(dtype: str, keepdim: bool) -> None:
    wide = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}.get(dtype, dtype)
    for shape in SHAPES:
        x = sample(shape, dtype)
        for axis in axes_of(shape):
            t = Tensor(x)
            equal(t.sum(axis, keepdim), x.sum(axis=axis, keepdims=keepdim, dtype=wide))
            equal(t.any(axis, keepdim), x.any(axis=axis, keepdims=keepdim), "bool")
            equal(t.all(axis, keepdim), x.all(axis=axis, keepdims=keepdim), "bool")
            equal(t.prod(axis=axis, keepdim=keepdim), x.prod(axis=axis, keepdims=keepdim, dtype=wide), wide,
                  {"float16": 1e-2, "float32": 1e-5}.get(dtype, 0.0))
            try:
                largest, smallest = (f(x, axis=axis, keepdims=keepdim) for f in (np.max, np.min))
            except ValueError:
                for name in ("max", "min"):
                    with pytest.raises(weft.ShapeError):
                        getattr(t, name)(axis, keepdim)
                continue
            equal(t.max(axis, keepdim), largest)
            equal(t.min(axis, keepdim), smallest)
            if dtype != "bool":
                kind = dtype if dtype in FLOATS else "float32"
                mean = x.astype(np.float64).mean(axis=axis, keepdims=keepdim)
                equal(t.mean(axis, keepdim), mean, kind, 2e-3 if kind == "float16" else 1e-6)


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4), (1, 2)])
def test_compositions(shape: tuple[int, ...]) -> None:
    x = sample(shape, "float32")
    wide = x.astype(np.float64)
    for axis in axes_of(shape):
        if np.size(wide.mean(axis=axis)) < x.size:
            equal(Tensor(x).var(axis), wide.var(axis=axis, ddof=1), "float32", 1e-5)
            equal(Tensor(x).std(axis, keepdim=True, correction=0), wide.std(axis=axis, keepdims=True), "float32", 1e-5)
    powers = np.exp(wide - wide.max(axis=-1, keepdims=True))
    softmax = powers / powers.sum(axis=-1, keepdims=True)
    equal(Tensor(x).softmax(), softmax, "float32", 1e-5)
    equal(Tensor(x).log_softmax(), np.log(softmax), "float32", 1e-4)
    equal(Tensor(x).softmax(0), np.exp(wide) / np.exp(wide).sum(axis=0, keepdims=True), "float32", 1e-5)
    centred = wide - wide.mean(axis=-1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    equal(Tensor(x).layernorm(), normal, "float32", 1e-4)
    assert Tensor([1, 2]).sum(dtype="float64").dtype == dtypes.float64
    assert Tensor(2.0).softmax().shape == ()


@pytest.mark.parametrize(("x", "y"), [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((2, 3), (3, 0)), ((2, 0), (0, 3)), ((1, 1), (1, 1)),
    ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (4, 3, 2)), ((3,), (4, 3, 2)), ((4, 2, 3), (3,)),
])
@pytest.mark.parametrize("dtype", ["float32", "int32", "float64", "uint8"])
def test_products(x: tuple[int, ...], y: tuple[int, ...], dtype: str) -> None:
    a, b = sample(x, dtype), sample(y, dtype, 1)
    result = Tensor(a) @ Tensor(b)
    wide = {"uint8": "uint32"}.get(dtype, dtype)
    assert result.dtype.name in (dtype, wide)
    equal(result, np.matmul(a.astype(np.int64 if dtype == "uint8" else dtype), b), result.dtype.name)
    equal(Tensor(a).matmul(Tensor(b)), result.numpy(), result.dtype.name)
    equal(Tensor(b).matmul(Tensor(a), reverse=True), result.numpy(), result.dtype.name)
    equal(Tensor(a).dot(Tensor(b), dtype="float64"), np.matmul(a.astype(np.float64), b.astype(np.float64)))


# -------------------------------------------------------------------------------------------- movement


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_movement(dtype: str) -> None:
    for shape in SHAPES:
        x = sample(shape, dtype)
        t, n = Tensor(x), len(shape)
        equal(t.T, x.T)
        equal(t.reshape(-1) if x.size else t.reshape(0), x.reshape(-1))
        equal(t.flatten(), x.reshape(-1))
        equal(t.squeeze(), x.squeeze())
        equal(t.contiguous(), x)
        equal(t.clone(), x)
        equal(t.detach(), x)
        equal(t.expand(3, *shape), np.broadcast_to(x, (3, *shape)))
        equal(t.roll(2), np.roll(x, 2))
        equal(t.stack(t + t, dim=-1), np.stack([x, x + x], -1))
        for axis in range(-n - 1, n + 1):
            equal(t.unsqueeze(axis), np.expand_dims(x, axis))
        for axis in range(-n, n):
            equal(t.flip(axis), np.flip(x, axis))
            equal(t.cat(t, t[:0] if axis in (0, -n) else t, dim=axis),
                  np.concatenate([x, x, x[:0] if axis in (0, -n) else x], axis))
            equal(t.roll(-3, axis), np.roll(x, -3, axis))
            equal(t.transpose(axis, 0), np.swapaxes(x, axis, 0))
        for order in itertools.permutations(range(n)):
            equal(t.permute(order), x.transpose(order))
        widths = [(i % 2, (i + 1) % 3) for i in range(n)]
        if n:
            equal(t.pad(widths), np.pad(x, widths))
            equal(t.pad(widths, value=3), np.pad(x, widths, constant_values=3))
            equal(t.pad((1, 0)), np.pad(x, [*[(0, 0)] * (n - 1), (1, 0)]))
            box = [(min(1, s), s) for s in shape]
            equal(t.shrink(box), x[tuple(slice(*b) for b in box)])
            equal(t.shrink([None] * n), x)


def test_many_parts() -> None:
    parts = [np.full((2, 1 + i % 3), i, np.float32) for i in range(20)]
    equal(Tensor.cat(*map(Tensor, parts), dim=1), np.concatenate(parts, 1))
    equal(Tensor.stack([Tensor(p[:, :1]) for p in parts][0], *[Tensor(p[:, :1]) for p in parts][1:]),
          np.stack([p[:, :1] for p in parts]))


def test_windows_and_diagonals() -> None:
    x = np.arange(24, dtype=np.int32).reshape(4, 6)
    t = Tensor(x)
    equal(t.unfold(1, 3, 2), np.lib.stride_tricks.sliding_window_view(x, 3, 1)[:, ::2])
    for offset in range(-3, 6):
        equal(t.diagonal(offset), np.diagonal(x, offset))
    cube = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    equal(Tensor(cube).diagonal(1, 2, 0), np.diagonal(cube, 1, 2, 0))
    equal(t[1:].as_strided((2, 3), (7, 2), 3), np.array([[3, 5, 7], [10, 12, 14]], np.int32))
    equal(t[::2].reshape(2, 2, 3)[:, 0], x[::2].reshape(2, 2, 3)[:, 0])


def test_what_shares_memory() -> None:
    a = Tensor.arange(24).reshape(4, 6)
    views = [a[1], a[:, ::2], a.T, a.flip(0), a.expand(2, 4, 6), a.flatten(), a.reshape(3, 8), a.unfold(0, 2, 1),
             a.diagonal(), a.squeeze(), a.unsqueeze(0), a.detach(), a.shrink(((0, 2), None)), a.contiguous(),
             a.as_strided((3,), (1,), 0), a.T.reshape(2, 3, 4), a[:, 0].reshape(2, 2), a.cast(a.dtype), a.bitcast("uint32")]
    copies = [a + 0, a.clone(), a.T.contiguous(), a.T.flatten(), a[:, 1:].reshape(-1), a.roll(1), a.pad(((0, 0), (0, 0))),
              a.float(), a.cat(a), -a, a.sum(), a.maximum(a)]
    assert [v.shares_memory_with(a) for v in views] == [True] * len(views)
    assert [c.shares_memory_with(a) for c in copies] == [False] * len(copies)


def test_thirty_axes() -> None:
    shape = tuple(2 if i % 10 == 0 else 1 for i in range(30))
    x = np.arange(8, dtype=np.float32).reshape(shape)
    t = Tensor(x)
    equal(t.permute(*range(29, -1, -1)) + 1, x.transpose(*range(29, -1, -1)) + 1)
    equal(t.sum(axis=10, keepdim=True) * t, x.sum(axis=10, keepdims=True) * x)
    t[(0,) * 30] = 9
    assert t.reshape(8).tolist() == [9, 1, 2, 3, 4, 5, 6, 7]


# ---------------------------------------------------------------------------------------------- Python


def test_numbers_and_text() -> None:
    a = Tensor([[1, 2], [3, 4]])
    assert repr(a) == f"Tensor(shape=(2, 2), dtype=int32, device={a.device}, values=[[1, 2], [3, 4]])"
    assert repr(Tensor.zeros(1000)) == f"Tensor(shape=(1000,), dtype=float32, device={a.device})"
    assert (Tensor(3).item(), Tensor([[2.5]]).item(), Tensor(True).item()) == (3, 2.5, True)
    assert bool(Tensor([3])) and not bool(Tensor(0.0))
    assert int(Tensor([7])) == 7 and float(Tensor(2)) == 2.0
    assert len({a, a, Tensor([1])}) == 2
    assert (a.size(), a.size(-1), a.is_floating_point(), len(a)) == ((2, 2), 2, False, 2)
    assert Tensor(a).tolist() == a.tolist() and not Tensor(a).shares_memory_with(a)


def test_an_operation_is_quick() -> None:
    a, b = Tensor.ones(4, 4).realize(), Tensor.ones(4, 4).realize()

    def cost() -> float:
        start = time.perf_counter()
        for _ in range(5_000):
            a + b  # noqa: B018
        return (time.perf_counter() - start) / 5_000

    assert min(cost() for _ in range(10)) < 4e-6  # 2 microseconds on a quiet machine
