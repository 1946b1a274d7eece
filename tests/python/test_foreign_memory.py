"""numpy() and DLPack share memory without anybody seeing what is not theirs."""

import gc
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import weft
from weft import Tensor, from_dlpack, jit

pytestmark = pytest.mark.host


def address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def test_numpy_copies_unless_it_is_told_not_to() -> None:
    t = Tensor([1.0, 2.0])
    a = t.numpy()
    a[0] = 7
    assert a.flags.writeable and t.tolist() == [1, 2] and address(a) != address(t.numpy(copy=False))
    assert t.reshape(2, 1).T.numpy().flags.c_contiguous


def test_numpy_is_the_memory_itself() -> None:
    t = Tensor([1.0, 2.0, 3.0, 4.0])
    a, b = t.numpy(copy=False), t.numpy(copy=False)
    assert address(a) == address(b) and not a.flags.writeable
    part = t.reshape(2, 2).T[1:]
    assert part.numpy(copy=False).tolist() == [[2, 4]] and address(part.numpy(copy=False)) == address(a) + 4
    with pytest.raises(ValueError):
        a[0] = 1
    assert t[::-1].numpy(copy=False).tolist() == [4, 3, 2, 1]
    assert t.sum().numpy(copy=False).shape == () and Tensor.zeros(0, 3).numpy(copy=False).shape == (0, 3)


def test_a_write_copies_while_the_array_lives() -> None:
    t = Tensor([1.0, 2.0])
    a = t.numpy(copy=False)
    t[0] = 9
    assert t.tolist() == [9, 2] and a.tolist() == [1, 2]
    assert address(t.numpy(copy=False)) != address(a)
    b = t.numpy(copy=False)
    place = address(b)
    del b
    t[0] = 8
    t.realize()
    assert address(t.numpy(copy=False)) == place  # in place: no array is left


def test_the_array_outlives_the_tensor() -> None:
    a = Tensor([5, 6]).numpy(copy=False)
    for _ in range(20):
        Tensor([7, 8]).realize()
    assert a.tolist() == [5, 6]


def test_a_replay_copies_while_the_array_lives() -> None:
    w = Tensor([0.0, 0.0])

    @jit
    def f(x: Tensor) -> Tensor:
        w[0] = x
        return w * 1

    arrays = []
    for i in range(5):
        arrays.append((w.numpy(copy=False), f(Tensor(float(i))).numpy(copy=False)))
    assert [a.tolist() for a, _ in arrays] == [[0, 0], [0, 0], [1, 0], [2, 0], [3, 0]]
    assert [b.tolist() for _, b in arrays] == [[float(i), 0] for i in range(5)]


def test_tensor_of_an_array_is_a_copy() -> None:
    a = np.array([1, 2], np.int32)
    t = Tensor(a)
    a[0] = 9
    assert t.tolist() == [1, 2]


def test_dlpack_to_numpy() -> None:
    t = Tensor([1.0, 2.0, 3.0])
    a = np.from_dlpack(t[1:])  # type: ignore[arg-type]
    assert a.tolist() == [2, 3] and not a.flags.writeable
    t[1] = 7
    assert t.tolist() == [1, 7, 3] and a.tolist() == [2, 3]
    assert t.__dlpack_device__() == (1, 0)


def test_dlpack_of_the_old_protocol_is_a_copy() -> None:
    t = Tensor([1, 2])
    capsule = t.__dlpack__()
    assert "dltensor" in repr(capsule)
    del capsule
    with pytest.raises(BufferError):
        t.__dlpack__(copy=False)
    with pytest.raises(BufferError):
        t.__dlpack__(dl_device=(2, 0))
    assert "dltensor_versioned" in repr(t.__dlpack__(max_version=(1, 0)))


def test_import_is_zero_copy_and_written_at_once() -> None:
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = from_dlpack(a)
    a[0, 0] = 5
    assert t.tolist() == [[5, 1, 2], [3, 4, 5]]
    lazy, clone = t * 10, t.clone()
    t[1] = 0
    assert a.tolist() == [[5, 1, 2], [0, 0, 0]]
    assert lazy.tolist() == [[50, 10, 20], [30, 40, 50]] and clone.tolist() == [[5, 1, 2], [3, 4, 5]]
    t.assign(t + 1)
    t += 1
    assert a.tolist() == [[7, 3, 4], [2, 2, 2]] == t.tolist()
    reshaped = Tensor.zeros(6).assign(t.reshape(6)).realize()
    t[0, 0] = 100
    assert a[0, 0] == 100 and reshaped.tolist() == [7, 3, 4, 2, 2, 2]
    assert t.numpy(copy=False).tolist() == a.tolist() and address(t.numpy(copy=False)) != address(a)


def test_imports_of_one_memory_are_one_storage() -> None:
    a = np.arange(10, dtype=np.int32)
    t, back, inner = from_dlpack(a), from_dlpack(a[::-1]), from_dlpack(a[2:5])
    t[2] = 50
    assert inner.tolist() == [50, 3, 4] and back.tolist()[7] == 50
    inner[1] = 60
    assert t.tolist()[3] == 60 == a[3]
    seen = back * 1
    back[0] = 70
    assert a[9] == 70 and t[9].item() == 70 and seen[0].item() == 9
    with pytest.raises(weft.DeviceError, match="overlaps"):
        from_dlpack(a.view(np.int16)[1:])
    assert from_dlpack(t) .tolist() == t.tolist()


def test_read_only_memory_is_not_written() -> None:
    a = np.arange(3, dtype=np.int32)
    a.flags.writeable = False
    t = from_dlpack(a)
    t[0] = 9
    assert t.tolist() == [9, 1, 2] and a.tolist() == [0, 1, 2]


def test_memory_that_a_write_has_left_is_imported_anew() -> None:
    array = np.ones(3, np.float32)
    array.flags.writeable = False
    t = from_dlpack(array)
    t += 1
    lazy = from_dlpack(array)
    t.realize()
    assert (lazy.tolist(), from_dlpack(array).tolist(), t.tolist()) == ([1] * 3, [1] * 3, [2] * 3)


def test_the_owner_is_told_once_when_the_last_user_is_gone() -> None:
    class Owned(np.ndarray):
        pass

    a = np.arange(4, dtype=np.float32).view(Owned)
    gone = weakref.ref(a)
    t = from_dlpack(a)
    view, lazy = t[1:], t * 2
    del a, t
    gc.collect()
    assert gone() is not None and view.tolist() == [1, 2, 3]
    del view
    gc.collect()
    assert gone() is not None and lazy.tolist() == [0, 2, 4, 6]
    del lazy
    gc.collect()
    assert gone() is None


def test_what_is_no_tensor_memory() -> None:
    with pytest.raises(TypeError, match="__dlpack__ is needed, not int"):
        from_dlpack(3)
    with pytest.raises(weft.DTypeError, match="no tensors of DLPack's type"):
        from_dlpack(np.zeros(2, np.complex64))
    assert from_dlpack(np.zeros((0, 2), np.float32)).shape == (0, 2)


def test_foreign_memory_in_a_captured_function() -> None:
    a = np.zeros(4, np.float32)
    t = from_dlpack(a)
    big = np.arange(6, dtype=np.float32)
    whole = from_dlpack(big)

    @jit
    def f(x: Tensor, part: Tensor) -> Tensor:
        t[0] = x
        part += 1
        return t + 1

    for i in range(5):
        lazy = t * 1
        out = f(Tensor(float(i)), whole[i:i + 2])
        assert a.tolist() == [i, 0, 0, 0] and out.tolist() == [i + 1, 1, 1, 1]
        assert lazy.tolist() == [max(i - 1, 0), 0, 0, 0]
        assert big[i] == i + (1 if i == 0 else 2)
    assert f.captures == 1


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(4, dtype=torch.float32)
    t = from_dlpack(x)
    t[0] = 9
    assert x.tolist() == [9, 1, 2, 3]
    assert torch.from_dlpack(t * 2).tolist() == [18, 2, 4, 6]


def test_the_memory_goes_with_the_array() -> None:
    before = weft.counters.live_bytes
    t = Tensor.zeros(1000).realize()
    a = t.numpy(copy=False)
    t[0] = 1
    t.realize()
    assert weft.counters.live_bytes - before >= 8000 and a[0] == 0  # the old content, and the new
    del t
    assert weft.counters.live_bytes - before >= 4000 and a.sum() == 0
    del a
    assert weft.counters.live_bytes == before


def test_memory_is_let_go_while_the_interpreter_has_no_room_for_calls() -> None:
    # In a call that the interpreter was asked to make, it makes no others: they add up to as many as it takes.
    program = """
import ctypes, gc, weakref
import numpy as np
import weft

class Memory(np.ndarray):
    pass

api = ctypes.pythonapi
Call = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
nothing = Call(lambda _: 0)
seen = []

@Call
def inside(_):
    held = [np.full(4, float(i), np.float32).view(Memory) for i in range(3)]
    watched = [weakref.ref(a) for a in held]
    sums = [weft.from_dlpack(a) + 1 for a in held]
    del held
    while api.Py_AddPendingCall(nothing, None) == 0:
        pass
    seen.append([s.realize().tolist() for s in sums])  # lets go of the memory, without the lock
    seen.append(watched)
    return 0

api.Py_AddPendingCall.argtypes = [Call, ctypes.c_void_p]
assert api.Py_AddPendingCall(inside, None) == 0
while len(seen) < 2:
    pass
weft.from_dlpack(np.zeros(1, np.float32))  # what was left is done
gc.collect()
assert seen[0] == [[i + 1.0] * 4 for i in range(3)], seen
assert [w() for w in seen[1]] == [None] * 3
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
