"""Python's own protocols: copies, pickles, buffers, NumPy, numbers, text; and the graph of a tensor."""

import copy
import operator
import pickle

import numpy as np
import pytest

import weft
from weft import Tensor, dtypes
from weft.ir import Ops

ALL = [dtypes.bool, *dtypes.ints, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64]


# ------------------------------------------------------------------------------------------ pickles

@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_pickle_of_every_dtype(dtype: weft.ir.DType, protocol: int) -> None:
    for shape in [(), (0,), (2, 3), (2, 0, 3)]:
        t = Tensor.arange(6)[:Tensor.empty(shape).numel()].reshape(shape).cast(dtype)
        back = pickle.loads(pickle.dumps(t, protocol))
        assert (back.shape, back.dtype, back.device, back.requires_grad) == (t.shape, dtype, t.device, t.requires_grad)
        assert back.tolist() == t.tolist() and not back.shares_memory_with(t)


def test_pickle_keeps_requires_grad() -> None:
    w = Tensor([1.0, 2.0], requires_grad=True)
    plain, other = pickle.loads(pickle.dumps([w.detach(), w]))
    said, unsaid = pickle.loads(pickle.dumps([Tensor([1.0], requires_grad=False), Tensor([1.0])]))
    assert said.requires_grad is False and unsaid.requires_grad is None
    assert other.requires_grad and other.is_leaf and not plain.requires_grad and plain.shares_memory_with(other)
    (other * other).sum().backward()
    assert other.grad.tolist() == [2, 4] and w.grad is None


def test_tensors_on_one_memory_are_so_after_a_pickle() -> None:
    a = Tensor.arange(12).reshape(3, 4)
    b, c, d, alone, again = pickle.loads(pickle.dumps([a[1], a.T[::-1], a.bitcast("float32"), Tensor([1])[:1], a[1]]))
    b += 100
    assert c.tolist() == np.array([[0, 1, 2, 3], [104, 105, 106, 107], [8, 9, 10, 11]]).T[::-1].tolist()
    assert d.dtype == dtypes.float32 and d.shares_memory_with(c) and alone.tolist() == [1]
    assert again.tolist() == [104, 105, 106, 107]
    assert a.tolist()[1] == [4, 5, 6, 7]


def test_a_view_alone_on_its_memory_is_pickled_without_the_rest() -> None:
    part = Tensor.arange(100_000)[500:510]
    back = pickle.loads(text := pickle.dumps(part))
    assert len(text) < 1000 and back.tolist() == list(range(500, 510))


def test_bytes_out_of_band() -> None:
    t = Tensor(np.arange(1000, dtype=np.float64))
    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(t, 5, buffer_callback=buffers.append)
    assert len(text) < 500 and len(buffers) == 1
    assert pickle.loads(text, buffers=buffers).tolist() == list(range(1000))


def test_a_pickle_that_leaves_its_memory_is_refused() -> None:
    from weft import _protocols

    whole = Tensor.arange(4)
    with pytest.raises(weft.ShapeError, match="read elements 1 to 4 of 4"):
        _protocols._tensor(whole, "int32", (4,), (1,), 1, 0)
    with pytest.raises(weft.DTypeError, match="bitcast"):
        _protocols._tensor(whole, "int64", (2,), (1,), 0, 0)
    with pytest.raises(weft.ShapeError, match="12 bytes"):
        weft._core.from_bytes(b"0" * 8, dtypes.int32, [3], "")


# ------------------------------------------------------------------------------------------- copies

def test_copy_is_another_handle() -> None:
    t = Tensor([1, 2])
    u = copy.copy(t)
    u += 1
    assert u is not t and t.tolist() == [2, 3]


def test_deepcopy_computes_nothing_and_is_independent() -> None:
    t = Tensor([1, 2]) + 1
    weft.counters.reset()
    u = copy.deepcopy(t)
    assert weft.counters.kernels == 0
    u += 1
    t *= 10
    assert (t.tolist(), u.tolist()) == ([20, 30], [3, 4])


def test_deepcopy_keeps_what_shares_memory() -> None:
    a = Tensor.arange(4)
    b, c, (d, e) = copy.deepcopy([a[:2], a.flip(0), {"a": a, "again": a}.values().__iter__() and (a, a)])
    b += 10
    assert c.tolist() == [3, 2, 11, 10] and d is e and a.tolist() == [0, 1, 2, 3]


def test_deepcopy_keeps_gradients() -> None:
    w = Tensor([1.0, 2.0], requires_grad=True)
    (w * w).sum().backward()
    model = copy.deepcopy({"w": w, "seen": w.detach()})
    assert model["w"].requires_grad and model["w"].is_leaf and model["w"].grad.tolist() == [2, 4]
    assert not model["seen"].requires_grad and model["seen"].shares_memory_with(model["w"])
    (model["w"] * 3).sum().backward()
    assert model["w"].grad.tolist() == [5, 7] and w.grad.tolist() == [2, 4]
    with pytest.raises(weft.Error, match="computed from tensors that require"):
        copy.deepcopy(w * 2)


def test_deepcopy_of_a_layer() -> None:
    layer = weft.nn.Linear(3, 2)
    other = copy.deepcopy(layer)
    assert other.weight.tolist() == layer.weight.tolist() and other.weight is not layer.weight
    other.weight.assign(0)
    assert any(layer.weight.flatten().tolist())


# ---------------------------------------------------------------------------------- NumPy and buffers

def test_array_protocol() -> None:
    t = Tensor([[1.0, 2.0]])
    assert np.asarray(t).dtype == np.float32 and not np.asarray(t).flags.writeable
    assert t.__array__(dtype=np.float64).tolist() == [[1, 2]]
    mine = t.__array__(copy=True)
    mine[0, 0] = 5
    assert t.tolist() == [[1, 2]] and np.array(t).flags.writeable
    with pytest.raises(ValueError, match="copy=False forbids"):
        t.__array__(dtype=np.int32, copy=False)
    assert not t.__array__(copy=False).flags.writeable
    assert np.asarray(Tensor([1.0], dtype="bfloat16")).astype(np.float32).tolist() == [1]


def test_numpy_leaves_operators_to_tensors_and_refuses_ufuncs() -> None:
    t = Tensor([1.0, 2.0])
    assert isinstance(np.ones(2, np.float32) + t, Tensor) and isinstance(np.float32(2) * t, Tensor)
    with pytest.raises(TypeError, match="does not support ufuncs"):
        np.add(np.ones(2), t)
    array = np.ones(2)
    with pytest.raises(TypeError):
        array += t


CODES = {"bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H",
         "uint32": "I", "uint64": "Q", "float16": "e", "float32": "f", "float64": "d"}


@pytest.mark.parametrize(("dtype", "code"), CODES.items())
def test_memoryview(dtype: str, code: str) -> None:
    t = Tensor([[0, 1, 2], [3, 4, 5]]).cast(dtype)
    view = memoryview(t)
    assert (view.format, view.shape, view.readonly) == (code, (2, 3), True)
    assert np.asarray(view).tolist() == t.tolist()
    assert np.asarray(memoryview(t[:, ::-1])).tolist() == t.numpy()[:, ::-1].tolist()
    assert bytes(t.T) == t.numpy().T.tobytes()
    assert memoryview(Tensor(3, dtype=dtype)).shape == () and memoryview(t[:0]).nbytes == 0


def test_a_memoryview_keeps_its_values() -> None:
    t = Tensor([1, 2])
    view = memoryview(t)
    t += 1
    assert (view.tolist(), t.tolist(), t.data().tolist()) == ([1, 2], [2, 3], [2, 3])


def test_buffers_that_there_are_not() -> None:
    with pytest.raises(BufferError, match="no elements of bfloat16"):
        memoryview(Tensor([1.0], dtype="bfloat16"))
    with pytest.raises((BufferError, TypeError)):
        np.frombuffer(b"ab", np.uint8).data.cast("B")[:] = memoryview(Tensor([1, 2], dtype="uint8"))
    with pytest.raises((BufferError, TypeError), match="cannot be written|read-write"):
        import io
        io.BytesIO(b"abcd").readinto(Tensor([1]))


# ------------------------------------------------------------------------------------- numbers and text

def test_rows() -> None:
    t = Tensor.arange(6).reshape(3, 2)
    rows = list(t)
    rows[0] += 10
    assert [r.tolist() for r in rows] == [[10, 11], [2, 3], [4, 5]] and t[0].tolist() == [10, 11]
    assert len(t) == 3 and [r.tolist() for r in reversed(t)] == t.tolist()[::-1]
    with pytest.raises(IndexError):
        t[3]
    for use in (iter, len):
        with pytest.raises(TypeError):
            use(Tensor(1))
    assert list(Tensor.zeros(0, 3)) == []


def test_contains() -> None:
    t = Tensor([[1.0, 2.0], [3.0, float("nan")]])
    assert 2.0 in t and 5 not in t and float("nan") not in t and Tensor([1.0, 7.0]) in t
    with pytest.raises(TypeError, match="not str"):
        assert "a" in t


def test_numbers() -> None:
    assert (int(Tensor(3.7)), float(Tensor([2])), complex(Tensor(1.5)), bool(Tensor([[0]]))) == (3, 2.0, 1.5, False)
    assert operator.index(Tensor([2])) == 2 and [5, 6, 7][Tensor(1)] == 6 and list(range(Tensor(2))) == [0, 1]
    for wrong in (Tensor(1.0), Tensor([1, 2])):
        with pytest.raises(TypeError, match="one integer can be an index"):
            operator.index(wrong)
    with pytest.raises(ValueError):
        bool(Tensor([1, 2]))


def test_format() -> None:
    assert f"{Tensor(1.25):.1f} {Tensor(7):03d} {Tensor(2)}" == "1.2 007 2"
    assert f"{Tensor([1])}" == str(Tensor([1])) and format(Tensor([1])) == repr(Tensor([1]))
    with pytest.raises(TypeError, match=r"shape \(1\)"):
        format(Tensor([1]), ".1f")


def test_repr() -> None:
    t = Tensor([1.0], requires_grad=True)
    assert repr(t) == f"Tensor(shape=(1,), dtype=float32, device={t.device}, values=[1.0], requires_grad=True)"
    assert repr(Tensor.zeros(100)) == f"Tensor(shape=(100,), dtype=float32, device={t.device})"
    assert "requires_grad" in repr(t * 2) and "requires_grad" not in repr(t.detach())


def test_hash_is_by_identity() -> None:
    a, b = Tensor([1]), Tensor([1])
    assert len({a, b, a}) == 2 and {a: 1}[a] == 1


def test_realize_of_several() -> None:
    a, b = Tensor([1]) + 1, Tensor([2]) * 3
    assert Tensor.realize(a, b) is a and a.is_realized() and b.is_realized()


# -------------------------------------------------------------------------------------------- the graph

def test_uop() -> None:
    a = Tensor([1.0, 2.0]).realize()
    graph = (a * 2).sum().uop
    assert [u.op for u in graph.toposort() if u.op in (Ops.BUFFER, Ops.MUL, Ops.REDUCE_AXIS)] == [
        Ops.BUFFER, Ops.MUL, Ops.REDUCE_AXIS]
    assert graph.shape == () and a.uop.op is Ops.RESHAPE or a.uop.op is Ops.BUFFER
    assert a[1:].uop.shape == (1,) and (a + 1).T.uop.shape == (2,)
    b = Tensor.zeros(3).realize()
    b[1] = 5
    assert any(u.op is Ops.STORE for u in b.uop.toposort())
    assert not b.is_realized() and b.tolist() == [0, 5, 0]
