"""Indices that are tensors, arrays, lists and masks: NumPy's rules, for reading and writing."""

import numpy as np
import pytest
import weft
from weft import Tensor, dtypes

RNG = np.random.default_rng(7)
A = RNG.integers(-50, 100, (4, 5, 6)).astype(np.int32)
I, J, K = np.array([0, 3, -1]), np.array([[1], [2]]), np.array([0, 4, -2])
S, E = slice(None), Ellipsis
MASK = A > 20
KEYS = {
    "first": (I,),
    "second": (S, I),
    "last": (E, K),
    "two": (S, J, K),
    "three": (I, K, K),
    "apart": (I, S, K),
    "apart by None": (I, None, K - 1),
    "apart by ...": (I, E, K),
    "no axes between": (I, K, E, K),
    "int before": (0, S, K),
    "int beside": (S, 0, K),
    "int after": (I, 0),
    "int apart": (0, S, I),
    "None before": (None, I),
    "None after": (E, I, None),
    "None and int": (S, None, I, 0),
    "slices": (slice(1, 3), slice(None, None, -1), I),
    "reversed": (slice(None, None, -2), J),
    "lists": ([0, 1], [1, 2], [2, 3]),
    "nested list": ([[0, 1], [3, 2]],),
    "empty list": ([],),
    "empty array": (S, np.zeros((2, 0), np.int64)),
    "no axes": (np.array(2),),
    "no axes, beside": (np.array(2), S, I),
    "unsigned": (I.astype(np.uint8) % 4,),
    "narrow": (I.astype(np.int8),),
    "mask of one axis": (A[:, 0, 0] > 0,),
    "mask of two": (A[:, :, 0] > 0,),
    "mask of all": (MASK,),
    "mask inside": (S, np.array([True, False, True, True, False])),
    "mask and array": (A[:, 0, 0] > -100, S, np.array([1])),
    "mask list": ([True, False, False, True],),
    "mask of nothing": (np.zeros((4, 5), bool),),
    "True": (True,),
    "False": (False,),
    "array and True": (I, True),
}


def given(key, lazy, device):
    def one(part):
        if not isinstance(part, np.ndarray) or part.dtype == bool:
            return part
        t = Tensor(part, device=device)
        return (t + 0).cast(t.dtype) if lazy else t

    return tuple(one(part) for part in key)


@pytest.mark.parametrize("device", ["REF", "CPU"])
@pytest.mark.parametrize("lazy", [False, True], ids=["in memory", "lazy"])
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_reads_and_writes_are_numpys(key, lazy, device):
    own = given(key, lazy, device)
    expected = A[key]
    got = Tensor(A, device=device)[own]
    assert got.shape == expected.shape and (got.numpy() == expected).all()
    values = RNG.integers(0, 9, expected.shape).astype(np.int32)

    def check(change):
        array, tensor = A.copy(), Tensor(A, device=device)
        change(array, key, values)
        change(tensor, own, Tensor(values, device=device))
        assert (tensor.numpy() == array).all()

    def scalar(x, k, v):
        x[k] = 7

    def whole(x, k, v):
        x[k] = v

    def update(x, k, v):
        x[k] += v

    for change in (scalar, whole, update):
        check(change)


def test_a_key_that_is_a_list_or_an_array():
    t = Tensor(A)
    assert t[[1, 2]].tolist() == A[[1, 2]].tolist()
    assert t[I].tolist() == A[I].tolist()
    assert t[Tensor(I)].tolist() == A[I].tolist()
    assert t[MASK].tolist() == A[MASK].tolist()
    assert t[Tensor(A) > 20].tolist() == A[MASK].tolist()


def test_of_two_at_one_place_the_last_one_stays():
    for device in ("REF", "CPU"):
        t = Tensor.zeros(5, dtype=dtypes.int32, device=device)
        t[[1, 1, 3, 1]] = Tensor([1, 2, 3, 4], device=device)
        assert t.tolist() == [0, 4, 0, 3, 0]
        t[[1, 1]] += 10
        assert t.tolist() == [0, 14, 0, 3, 0]
        n = 100_000
        i = Tensor.arange(n, device=device) % 3
        big = Tensor.zeros(4, dtype=dtypes.int32, device=device)
        if device == "CPU":
            big[i] = Tensor.arange(n, device=device)
            assert big.tolist() == [n - 1, n - 3, n - 2, 0]


def test_views_see_writes_and_values_keep_what_they_read():
    a = Tensor([1.0, 2.0, 3.0, 4.0])
    v, before = a.reshape(2, 2), a * 10
    picked = a[[3, 0]]
    a[[0, 2]] = Tensor([9.0, 8.0])
    assert v.tolist() == [[9, 2], [8, 4]]
    assert before.tolist() == [10, 20, 30, 40] and picked.tolist() == [4, 1]
    picked[0] = 7  # a copy
    assert a.tolist() == [9, 2, 8, 4]
    a.T[:][[1]] = 5  # a view of a view
    v.T[[1, 0]] = v  # reads what it writes
    assert v.tolist() == [[8, 9], [4, 5]]


def test_an_index_that_is_what_it_writes_to():
    for device in ("REF", "CPU"):
        x = np.array([3, 0, 1, 2], np.int32)
        t = Tensor(x, device=device)
        t[t] = t + 10
        x[x] = x + 10
        assert t.tolist() == x.tolist()


def test_masked_writes_do_not_realise():
    t = Tensor(A) * 1
    lazy = t > 20
    t[lazy] = -1
    t[lazy] = Tensor([5])
    assert not lazy.is_realized() if hasattr(lazy, "is_realized") else True
    expected = A.copy()
    expected[MASK] = 5
    assert t.tolist() == expected.tolist()
    rows = Tensor(A)
    rows[A[:, 0, 0] > 0] = Tensor(np.arange(30).reshape(5, 6))
    expected = A.copy()
    expected[A[:, 0, 0] > 0] = np.arange(30).reshape(5, 6)
    assert rows.tolist() == expected.tolist()


def test_methods():
    x = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert x.index_select(1, Tensor([2, 0])).tolist() == [[3, 1], [6, 4]]
    assert x.take(Tensor([[5, 0], [-1, 2]])).tolist() == [[6, 1], [6, 3]]
    y = x.index_put((Tensor([0, 0]), Tensor([1, 1])), Tensor([10.0, 20.0]), accumulate=True)
    assert y.tolist() == [[1, 32, 3], [4, 5, 6]]
    assert x.masked_fill(x > 3, 0).tolist() == [[1, 2, 3], [0, 0, 0]]
    z = x.clone()
    assert z.scatter_(1, Tensor([[0], [1]]), -1.0) is z
    assert z.tolist() == [[-1, 2, 3], [4, -1, 6]]
    assert z.index_add_(0, Tensor([1, 1]), Tensor.ones(2, 3), alpha=2).tolist()[1] == [8, 3, 10]


REDUCTIONS = ["sum", "prod", "mean", "amax", "amin"]


@pytest.mark.parametrize("device", ["REF", "CPU"])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_scatters_are_pytorchs(reduce, include_self, device):
    torch = pytest.importorskip("torch")
    for dtype, name in ((np.float32, "float32"), (np.int32, "int32"), (np.int64, "int64")):
        for dim in (0, 1, -1):
            x = RNG.integers(-5, 6, (3, 4)).astype(dtype)
            src = RNG.integers(-5, 6, (3, 4)).astype(dtype)
            i = RNG.integers(0, 3, (2, 4))
            expected = torch.tensor(x).scatter_reduce(
                dim, torch.tensor(i), torch.tensor(src), reduce, include_self=include_self
            )
            got = Tensor(x, device=device).scatter_reduce(
                dim,
                Tensor(i, device=device),
                Tensor(src, device=device),
                reduce,
                include_self=include_self,
            )
            assert got.dtype == getattr(dtypes, name)
            np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-6)
            g = Tensor(x, device=device).gather(dim, Tensor(i, device=device))
            assert (g.numpy() == torch.tensor(x).gather(dim, torch.tensor(i)).numpy()).all()


ERRORS = [
    (lambda t: t[[5]], weft.IndexError, "5 is out of bounds of axis 0 with size 4"),
    (lambda t: t[:, [0, -6]], weft.IndexError, "-6 is out of bounds of axis 1 with size 5"),
    (lambda t: t[[0], [0], [0], [0]], weft.IndexError, "too many"),
    (lambda t: t[[0, 1], [0, 1, 2]], weft.ShapeError, "do not broadcast"),
    (lambda t: t[Tensor([0.5])], weft.DTypeError, "allowed are integers and bool"),
    (lambda t: t["a"], weft.IndexError, "an index is"),
    (lambda t: t[[True, False]], weft.IndexError, "axis 0 has size 4, not 2"),
    (lambda t: t.__setitem__([9], 1), weft.IndexError, "9 is out of bounds"),
    (lambda t: t.__setitem__([1, 2], Tensor([1, 2, 3])), weft.ShapeError, "broadcast"),
    (lambda t: t.__setitem__(MASK, Tensor([1, 2])), weft.ShapeError, "broadcast"),
    (lambda t: t.gather(3, Tensor([0])), weft.IndexError, "no axis 3"),
    (lambda t: t.gather(0, Tensor([0])), weft.ShapeError, "larger than"),
    (lambda t: t.scatter(0, Tensor([[[0]]]), 1, reduce="max"), weft.Error, "no reduction"),
    (lambda t: t.index_add(0, Tensor([0]), Tensor([0])), weft.ShapeError, "it must have"),
    (lambda t: t.masked_fill(Tensor([1]), 0), weft.DTypeError, "must be bool"),
]


@pytest.mark.host  # elsewhere nobody looks at indices before they are used
@pytest.mark.parametrize("call, kind, text", ERRORS, ids=range(len(ERRORS)))
def test_errors_are_raised_at_the_call_and_change_nothing(call, kind, text):
    t = Tensor(A)
    with pytest.raises(kind, match=text):
        call(t)
    assert (t.numpy() == A).all()


@pytest.mark.parametrize("device", ["REF", "CPU"])
def test_an_index_that_is_not_known_yet_fails_when_it_is_read(device):
    def index():
        return Tensor(np.array([0, 7]), device=device) + 0

    x = Tensor(np.arange(5, dtype=np.float32), device=device)
    y = x[index()]
    z = y + 1
    for t in (z, z, y):
        with pytest.raises(weft.IndexError, match="out of bounds of axis 0 with size 5"):
            t.numpy()
    w = Tensor.zeros(2, 5, device=device)
    w[:, index()] = 1
    later = w * 2
    for t in (w, later, w):
        with pytest.raises(weft.IndexError, match="out of bounds of axis 1 with size 5"):
            t.tolist()
    w[0] = 3  # not all of it
    with pytest.raises(weft.IndexError):
        w.tolist()
    w.assign(Tensor.ones(2, 5, device=device))
    assert w.tolist() == [[1] * 5] * 2 and x.tolist() == [0, 1, 2, 3, 4]


def test_what_is_surely_in_range_is_not_checked():
    x = Tensor(np.arange(300, dtype=np.float32))
    lazy = Tensor(np.array([0, 255], np.uint8)) + Tensor(np.array([0, 0], np.uint8))
    wide = Tensor(np.array([0, 255], np.int32)) + Tensor(np.array([0, 0], np.int32))
    assert x[lazy].kernel_count() == x[lazy.cast(dtypes.int32)].kernel_count() < x[wide].kernel_count()


@pytest.mark.parametrize("device", ["REF", "CPU"])
def test_masks_select(device):
    x = Tensor(A, device=device)
    m = x > 20
    assert x.masked_select(m).tolist() == A[MASK].tolist()
    count = int(MASK.sum())
    assert x.nonzero().tolist() == np.argwhere(A).tolist()
    assert m.nonzero().tolist() == np.argwhere(MASK).tolist()
    lazy = x.masked_select(m, size=count + 3, fill_value=-7)
    assert lazy.tolist() == [*A[MASK].tolist(), -7, -7, -7]
    assert x.masked_select(m, size=2).tolist() == A[MASK].tolist()[:2]
    places = m.nonzero(size=count + 1, fill_value=-1)
    assert places.tolist() == [*np.argwhere(MASK).tolist(), [-1, -1, -1]]
    assert Tensor([2, 0]).one_hot(3).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_a_write_of_k_elements_costs_k():
    t = Tensor.zeros(1 << 20, dtype=dtypes.int32, device="CPU").contiguous().realize()
    t[Tensor([5, 9, 5, 70, 2], device="CPU")] = Tensor([1, 2, 3, 4, 5], device="CPU")
    (kernel,) = t.schedule()
    assert "RANGE index" in kernel.graph and "CONST index 5" in kernel.graph
    sizes = [line for line in kernel.graph.splitlines() if "RANGE" in line]
    assert len(sizes) == 1  # one loop, over the five
    weft.counters.reset()
    t.realize()
    assert weft.counters.kernels == 1 and t[5].item() == 3 and t[9].item() == 2


def test_sums_are_in_order_on_many_threads():
    n = 200_000
    i = RNG.integers(0, 7, n)
    v = RNG.standard_normal(n).astype(np.float32)
    expected = np.zeros(7, np.float32)
    np.add.at(expected, i, v)
    t = Tensor.zeros(7, device="CPU").index_add(0, Tensor(i, device="CPU"), Tensor(v, device="CPU"))
    assert (t.numpy() == expected).all()
    rows = RNG.integers(0, 50, 300)
    table = RNG.standard_normal((50, 64)).astype(np.float32)
    grads = RNG.standard_normal((300, 64)).astype(np.float32)
    expected = table.copy()
    np.add.at(expected, rows, grads)
    got = Tensor(table, device="CPU").index_add(0, Tensor(rows, device="CPU"), Tensor(grads, device="CPU"))
    assert (got.numpy() == expected).all()


@pytest.mark.parametrize("device", ["REF", "CPU"])
def test_gradients_are_pytorchs(device):
    torch = pytest.importorskip("torch")
    x = RNG.standard_normal((5, 4)).astype(np.float32)
    v = RNG.standard_normal((3, 4)).astype(np.float32)
    w = RNG.standard_normal((3, 4)).astype(np.float32)
    twice, once = np.array([4, 0, 4]), np.array([4, 0, 2])

    def programs(make, number):
        index = number(twice)
        a, b = make(x), make(v)
        yield a, b, (a[index] * make(w)).sum() + (b * 0).sum()
        a, b = make(x), make(v)
        c = a * 1
        c[number(once)] = b
        yield a, b, (c * c).sum()
        a, b = make(x), make(v)
        yield a, b, (a.index_add(0, index, b) * make(x)).sum()
        a, b = make(x), make(v)
        at = number(once).reshape(3, 1).expand(3, 4)
        yield a, b, (a.scatter(0, at, b) * a.gather(0, at).sum()).sum()

    def ours(data):
        t = Tensor(data, device=device)
        return t.requires_grad_(True) if hasattr(t, "requires_grad_") else t

    theirs = programs(lambda d: torch.tensor(d, requires_grad=True), torch.tensor)
    for (a, b, loss), (ta, tb, tloss) in zip(
        programs(ours, lambda d: Tensor(d, device=device)), theirs
    ):
        tloss.backward()
        ga, gb = loss.gradient(a, b)
        np.testing.assert_allclose(ga.numpy(), ta.grad.numpy(), rtol=1e-5, atol=1e-6)
        if tb.grad is not None:
            np.testing.assert_allclose(gb.numpy(), tb.grad.numpy(), rtol=1e-5, atol=1e-6)
    # Of two at one place only what stays has a gradient.
    c, b = Tensor(x, device=device) * 1, ours(v)
    c[Tensor(twice, device=device)] = b
    (gb,) = c.sum().gradient(b)
    assert gb.tolist() == [[0] * 4, [1] * 4, [1] * 4]


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_gradients_of_reductions_are_pytorchs(reduce, include_self):
    torch = pytest.importorskip("torch")
    x = RNG.integers(-2, 3, (3, 4)).astype(np.float32)
    if not include_self:
        x += 0.25  # PyTorch counts equal elements that it does not include
    src = RNG.integers(-2, 3, (3, 4)).astype(np.float32)
    w = RNG.standard_normal((3, 4)).astype(np.float32)
    i = RNG.integers(0, 3, (3, 4))
    tx, ts = torch.tensor(x, requires_grad=True), torch.tensor(src, requires_grad=True)
    out = tx.scatter_reduce(0, torch.tensor(i), ts, reduce, include_self=include_self)
    (out * torch.tensor(w)).sum().backward()
    a, b = Tensor(x, requires_grad=True), Tensor(src, requires_grad=True)
    got = a.scatter_reduce(0, Tensor(i), b, reduce, include_self=include_self)
    ga, gb = (got * Tensor(w)).sum().gradient(a, b)
    np.testing.assert_allclose(ga.numpy(), tx.grad.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gb.numpy(), ts.grad.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("lazy", [False, True])
def test_through_a_view_of_bits(lazy: bool) -> None:
    array = np.float32([1, 2, 3, 4])
    expected = array.view(np.int32)
    x = Tensor(array) + 0 if lazy else Tensor(array)
    bits = x.bitcast("int32")
    index, ones = [0, 2, 0], np.int32([1, 2, 3])
    bits[index] += 1
    expected[index] += 1
    bits.index_add_(0, Tensor(index), Tensor(ones))
    np.add.at(expected, index, ones)
    bits.assign(bits.scatter_reduce(0, Tensor(index), Tensor(ones), "amax"))
    np.maximum.at(expected, index, ones)
    bits[bits > expected[1]] *= 2
    expected[expected > expected[1]] *= 2
    assert x.tolist() == array.tolist() and bits.tolist() == expected.tolist()
