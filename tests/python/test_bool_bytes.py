"""Bools whose bytes are not 0 or 1, in memory of others and in views of bytes: true in every operation, as in NumPy."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import weft
from weft import Tensor, custom_kernel, dtypes, from_dlpack, jit

RAW = np.array([255, 0, 2, 1, 128, 0, 0, 4, 3, 0, 1], np.uint8)
Bytes = npt.NDArray[np.uint8]


def shared(raw: Bytes) -> Tensor:
    return from_dlpack(raw.copy().view(bool))


def read_only(raw: Bytes) -> Tensor:
    array = raw.copy().view(bool)
    array.flags.writeable = False
    return from_dlpack(array)


def written(raw: Bytes) -> Tensor:
    x = Tensor.zeros(raw.size, dtype="bool").contiguous().realize()
    x.assign(Tensor(raw.view(bool)))
    return x


DOORS: dict[str, Callable[[Bytes], Tensor]] = {
    "an array": lambda raw: Tensor(raw.view(bool)),
    "an array of steps": lambda raw: Tensor(np.repeat(raw, 2).view(bool)[::2]),
    "shared memory": shared,
    "read-only memory": read_only,
    "part of shared memory": lambda raw: from_dlpack(np.concatenate([raw[:3], raw]).view(bool)[3:]),
    "assigned": written,
    "bytes": lambda raw: Tensor(raw).bitcast(dtypes.bool),
    "bytes, not computed": lambda raw: (Tensor(raw) + 0).bitcast("bool"),
    "signed bytes": lambda raw: Tensor(raw.view(np.int8)).bitcast("bool"),
    "bytes of another view": lambda raw: Tensor(np.stack([raw, raw])).T.bitcast("bool")[:, 1],
    "pickled": lambda raw: pickle.loads(pickle.dumps(shared(raw))),
    "copied": lambda raw: shared(raw).clone(),
}
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "not": lambda x: ~x,
    "or": lambda x: x | x,
    "and": lambda x: x & x,
    "xor": lambda x: x ^ x,
    "equal": lambda x: x == x,
    "twice": lambda x: x * 2 if isinstance(x, Tensor) else x.astype(np.int32) * 2,
    "to float": lambda x: x.float() if isinstance(x, Tensor) else x.astype(np.float32),
    "every other": lambda x: x[::2],
    "backwards": lambda x: x[::-1],
}


def same(got: Tensor, expected: Any) -> None:
    """Byte by byte."""
    array = got.numpy()
    assert array.dtype == expected.dtype and array.tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("size", [RAW.size, 1000])  # scalars, and vectors
@pytest.mark.parametrize("door", DOORS)
def test_any_byte_but_0_is_true(door: str, size: int) -> None:
    raw = np.resize(RAW, size)
    m, expected = DOORS[door](raw), raw != 0
    same(m, expected)
    assert m.dtype == dtypes.bool and m.sum().item() == expected.sum()
    assert m.tolist() == expected.tolist() and m[0].item() is True and bool(m[2]) is True
    for operation in OPERATIONS.values():
        same(operation(m), operation(expected))
    same(m.where(Tensor.full((size,), 1), Tensor.full((size,), 2)), np.where(expected, 1, 2).astype(np.int32))
    same(Tensor.cat(m, m), np.concatenate([expected, expected]))
    same(Tensor(np.arange(size, dtype=np.int32))[m], np.arange(size, dtype=np.int32)[expected])
    same(m.sort()[0], np.sort(expected))
    assert m.any().item() and not m.all().item() and m.max().item() is True and m.argmax().item() == 0
    assert np.from_dlpack(m).view(np.uint8).tolist() == expected.astype(int).tolist()
    assert bytes(memoryview(m.contiguous())) == expected.tobytes()  # type: ignore[arg-type]


@pytest.mark.parametrize("door", DOORS)
def test_compiled_functions_and_kernels_of_users(door: str) -> None:
    m, expected = DOORS[door](RAW), RAW != 0

    @jit
    def f(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.cast("int32").sum() + 1, ~x

    for _ in range(4):
        total, inverse = f(m)
        assert total.item() == expected.sum() + 1
        same(inverse, ~expected)

    def copy(out: Any, x: Any) -> Any:
        i = weft.ir.UOp.range(RAW.size, 0)
        return out.index(i).assign(x.index(i).load()).end(i)

    same(custom_kernel(copy, [((RAW.size,), "bool")], [m]), expected)


def test_what_others_write_later_is_seen() -> None:
    raw = RAW.copy()
    m, numbers = from_dlpack(raw.view(bool)), from_dlpack(raw)
    raw[1] = 77
    assert m[1].item() is True and numbers[1].item() == 77 and m.sum().item() == (raw != 0).sum()
    m[2] = False
    m[5] = True
    assert raw[2] == 0 and raw[5] == 1 and numbers[2].item() == 0
    numbers[2] = 9
    assert raw[2] == 9 and m[2].item() is True


def test_a_view_of_bytes_keeps_them() -> None:
    x = Tensor(RAW).realize()
    m = x.bitcast("bool")
    assert m.bitcast("uint8").tolist() == RAW.tolist()
    m[1], m[0] = True, False
    expected = RAW.copy()
    expected.view(bool)[:2] = [False, True]
    assert x.tolist() == expected.tolist()


def test_bools_as_bytes() -> None:
    x = Tensor([True, False, True]).realize()
    same(x.bitcast("uint8") + 1, np.array([2, 1, 2], np.uint8))
    x.bitcast("int8")[1] = 1
    assert x.tolist() == [True, True, True]
    with pytest.raises(weft.DTypeError, match=r"cannot view the bits of bool \(3\) as int16: 8 bits against 16"):
        x.bitcast("int16")


def test_masks_of_numpy() -> None:
    mask = RAW.view(bool)
    x = Tensor(np.arange(RAW.size, dtype=np.int32))
    assert x[mask].tolist() == np.flatnonzero(RAW).tolist()
    x[mask] = -1
    same(x, np.where(RAW != 0, -1, np.arange(RAW.size)).astype(np.int32))
