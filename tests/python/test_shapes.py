"""What makes tensors, windows and decompositions: what the tables do not say."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import weft  # noqa: E402
from weft import Tensor, dtypes  # noqa: E402

# ------------------------------------------------------------------------------------------- creation


@pytest.mark.parametrize("start, stop, steps", [(0, 1, 5), (1, 10, 4), (-3, 7, 6), (2, 5, 1), (5, -5, 0), (0, 1e6, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_linspace(start, stop, steps, dtype):
    theirs = torch.linspace(start, stop, steps, dtype=getattr(torch, dtype)).numpy()
    np.testing.assert_allclose(Tensor.linspace(start, stop, steps, dtype=dtype).numpy(), theirs, 1e-6)


def test_unpool_to_a_size():
    x = Tensor.arange(25).reshape(1, 1, 5, 5)
    largest, indices = x.max_pool2d(return_indices=True)
    whole = largest.max_unpool2d(indices, output_size=(1, 1, 5, 5))
    assert whole.shape == x.shape and whole.sum().item() == largest.sum().item()
    assert x.interpolate((2, 2), "nearest").tolist() == [[[[0, 2], [10, 12]]]]


def test_eye():
    for n, m in [(3, None), (2, 4), (4, 2), (0, 3), (1, 1)]:
        np.testing.assert_array_equal(Tensor.eye(n, m).numpy(), np.eye(n, m, dtype=np.float32))
    assert Tensor.eye(2, dtype=dtypes.bool).tolist() == [[True, False], [False, True]]


def test_parts_are_views():
    x = Tensor.arange(12).reshape(3, 4)
    for part in x.split(2, dim=1) + x.chunk(2) + (x.diag(), x.movedim(0, 1), x.shrink_to(2, 2), x.T.t()):
        assert part.shares_memory_with(x)
    x.split([1, 3], 1)[1][0, 0] = 100
    assert x[0, 1].item() == 100
    for copy in (x.repeat(1, 1), x.repeat_interleave(1, 0), x.pad((0, 0), "reflect"), x.tril()):
        assert not copy.shares_memory_with(x)


# ------------------------------------------------------------------------------------- decompositions


def random_matrices(shape, dtype, rank=None):
    random = np.random.default_rng(list(shape))
    if rank is None:
        return random.standard_normal(shape).astype(dtype)
    left, right = random.standard_normal((*shape[:-1], rank)), random.standard_normal((*shape[:-2], rank, shape[-1]))
    return (left @ right).astype(dtype)


MATRICES = [(1, 1), (3, 3), (5, 3), (3, 5), (2, 4, 4), (8, 8), (7, 1), (1, 6), (2, 1, 3, 2)]


def is_orthogonal(q, tolerance):
    return np.abs(np.swapaxes(q, -1, -2) @ q - np.eye(q.shape[-1])).max() < tolerance


@pytest.mark.parametrize("dtype, tolerance", [("float32", 2e-5), ("float64", 1e-13)])
@pytest.mark.parametrize("shape", MATRICES)
def test_qr(shape, dtype, tolerance):
    a = random_matrices(shape, dtype)
    q, r = (t.numpy() for t in Tensor(a).qr())
    assert np.abs(q @ r - a).max() < tolerance and is_orthogonal(q, tolerance)
    assert np.array_equal(r, np.triu(r)) and q.dtype == r.dtype == np.dtype(dtype)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 3e-5), ("float64", 1e-13)])
@pytest.mark.parametrize("shape, rank", [(s, None) for s in MATRICES] + [((4, 4), 2), ((5, 3), 1), ((2, 3, 3), 0)])
def test_svd(shape, rank, dtype, tolerance):
    a = random_matrices(shape, dtype, rank)
    count = min(shape[-2:])
    for full in (True, False):
        u, s, vt = (t.numpy() for t in Tensor(a).svd(full_matrices=full))
        assert np.abs((u[..., :count] * s[..., None, :]) @ vt[..., :count, :] - a).max() < tolerance
        assert is_orthogonal(u, tolerance) and is_orthogonal(np.swapaxes(vt, -1, -2), tolerance)
        assert u.shape[-1] == (shape[-2] if full else count) and vt.shape[-2] == (shape[-1] if full else count)
        assert np.abs(s - np.linalg.svd(a, compute_uv=False)).max() < tolerance and (s >= 0).all()


def test_qr_of_large_and_small_numbers():
    for scale in (1e-30, 1e30):
        q, _ = Tensor(np.float32([[1, 2], [3, 4]]) * np.float32(scale)).qr()
        assert is_orthogonal(q.numpy(), 1e-6)
    q, r = Tensor.zeros(3, 2).qr()
    assert np.array_equal(np.abs(q.numpy()), np.eye(3)) and not r.numpy().any()


# ------------------------------------------------------------------------------------------- kernels


def on_cpu(*shape):
    return Tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32), device="CPU:C")


@pytest.mark.parametrize("make, most", [
    (lambda: on_cpu(2, 4, 8, 8).conv2d(on_cpu(8, 4, 3, 3), on_cpu(8), padding=1).clamp(0), 1),
    (lambda: on_cpu(2, 4, 8, 8).conv2d(on_cpu(8, 2, 3, 3), groups=2, stride=2, padding=1), 1),
    (lambda: on_cpu(2, 4, 8, 8).conv_transpose2d(on_cpu(4, 8, 3, 3), on_cpu(8), stride=2, padding=1), 1),
    (lambda: on_cpu(2, 4, 8, 8).avg_pool2d(3, 2, padding=1, ceil_mode=True), 1),
    (lambda: on_cpu(2, 4, 8, 8).max_pool2d(3, 2, padding=1), 1),
    (lambda: on_cpu(2, 4, 16, 8).scaled_dot_product_attention(on_cpu(2, 4, 16, 8), on_cpu(2, 4, 16, 8)), 3),
    (lambda: on_cpu(4, 16, 8).scaled_dot_product_attention(on_cpu(4, 16, 8), on_cpu(4, 16, 8), is_causal=True), 3),
    (lambda: Tensor.einsum("ij,jk->ki", on_cpu(4, 5), on_cpu(5, 6)), 1),
    (lambda: on_cpu(6, 6).tril() + 1, 1),
    (lambda: on_cpu(6, 6).qr()[1], 30),
])  # fmt: skip
def test_kernel_counts(make, most):
    assert make().kernel_count() <= most


def test_nothing_is_realised():
    weft.counters.reset()
    x = Tensor.ones(4, 4)
    for t in (*x.qr(), *x.svd(), x.reshape(1, 1, 4, 4).conv2d(Tensor.ones(1, 1, 2, 2)), x.to("CPU:C")):
        assert not t.is_realized()
    assert weft.counters.kernels == 0


# -------------------------------------------------------------------------------------------- errors

X = Tensor.ones(2, 3)
IMAGE = Tensor.ones(1, 2, 4, 4)


@pytest.mark.parametrize("call, text", [
    (lambda: X.split((1, 1), 1), r"\[split\] sizes \(1,1\) of axis 1 of \(2,3\)"),
    (lambda: X.split(0), r"\[split\] parts of size 0"),
    (lambda: X.split(-1), r"\[split\] parts of size -1"),
    (lambda: X.chunk(0), r"\[chunk\] 0 chunks"),
    (lambda: X.stack(Tensor.ones(2)), r"\[stack\] shapes \(2,3\) and \(2\) differ"),
    (lambda: X.repeat(2), r"\[repeat\] \(2,3\) has 2 axes; given are repeats of 1"),
    (lambda: X.repeat(-1, 2), r"\[repeat\] .* negative"),
    (lambda: X.unflatten(1, (2, 2)), r"\[unflatten\] cannot view axis 1 of \(2,3\) as \(2,2\)"),
    (lambda: X.unflatten(1, (-1, -1)), r"\[unflatten\]"),
    (lambda: X.pad_to(1, 3), r"\[pad_to\] \(2,3\) is larger than \(1,3\) in axis 0"),
    (lambda: X.shrink_to(2, 4), r"\[shrink\]"),
    (lambda: X.shrink_to(2), r"\[shrink_to\] \(2,3\) has 2 axes; given are sizes of 1"),
    (lambda: X.pad((3, 0), "reflect"), r"\[pad\] cannot pad axis 1 of \(2,3\) by 3 and 0"),
    (lambda: X.pad((4, 0), "circular"), r"\[pad\] cannot pad axis 1"),
    (lambda: X.pad((1, 0), "mirror"), r"\[pad\] mode 'mirror'"),
    (lambda: X.rearrange("a b"), r"\[rearrange\] 'a b': there is no '->'"),
    (lambda: X.rearrange("a b c -> a b c"), r"3 axes on the left"),
    (lambda: X.rearrange("a b -> a c"), r"both sides have the same names"),
    (lambda: X.rearrange("a (b c) -> a b c"), r"the sizes of 'c'"),
    (lambda: X.rearrange("a (b c) -> a b c", b=2), r"axis 1 of \(2,3\)"),
    (lambda: X.rearrange("(a b -> a b"), r"parentheses"),
    (lambda: X.diagonal().diag(0).reshape(1, 2, 2).diag(), r"\[diag\] a vector or a matrix"),
    (lambda: X[0].tril(), r"\[tril\] a matrix is needed, not \(3\)"),
    (lambda: X[0].qr(), r"\[qr\] a matrix is needed"),
    (lambda: X.meshgrid(X), r"\[meshgrid\] vectors are needed"),
    (lambda: X[0].meshgrid(X[1], indexing="ab"), r"\[meshgrid\] indexing 'ab'"),
    (lambda: Tensor.einsum("ij,jk", X), r"\[einsum\] 'ij,jk': 2 terms for 1 tensors"),
    (lambda: Tensor.einsum("i", X), r"'i' does not name the 2 axes"),
    (lambda: Tensor.einsum("ij->k", X), r"no operand has index 'k'"),
    (lambda: Tensor.einsum("ij->ii", X), r"an index twice"),
    (lambda: Tensor.einsum("ij1", X), r"'1' is no index"),
    (lambda: Tensor.einsum("ii", X), r"one index and two sizes"),
    (lambda: IMAGE.conv2d(Tensor.ones(3, 3, 2, 2)), r"\[conv2d\] .* channels do not fit"),
    (lambda: IMAGE.conv2d(Tensor.ones(3, 2, 5, 2)), r"\[conv2d\] a kernel that reaches over 5 elements of 4"),
    (lambda: IMAGE.conv2d(Tensor.ones(3, 2, 2)), r"\[conv2d\] \(1,2,4,4\) with a weight of \(3,2,2\)"),
    (lambda: IMAGE.conv2d(Tensor.ones(3, 2, 2, 2), Tensor.ones(2)), r"\[conv2d\] a bias of \(2\) for 3 channels"),
    (lambda: IMAGE.conv2d(Tensor.ones(3, 2, 2, 2), stride=0), r"\[conv2d\] .* stride 0"),
    (lambda: IMAGE.conv2d(Tensor.ones(3, 2, 2, 2), stride=(1, 1, 1)), r"\[conv2d\] stride of \(1,1,1\); it has 1 or 2"),
    (lambda: IMAGE.conv_transpose2d(Tensor.ones(2, 2, 2, 2), output_padding=1), r"output_padding 1"),
    (lambda: IMAGE.max_pool2d(5), r"\[max_pool2d\] a kernel that reaches"),
    (lambda: IMAGE.max_pool2d().max_unpool2d(IMAGE), r"\[max_unpool2d\] indices of \(1,2,4,4\) for \(1,2,2,2\)"),
    (lambda: IMAGE.interpolate((0, 2)), r"\[interpolate\] .* at least 1"),
    (lambda: IMAGE.interpolate((2,), mode="area"), r"\[interpolate\] mode 'area'"),
    (lambda: X.interpolate((1, 2, 3)), r"\[interpolate\] \(2,3\) to sizes \(1,2,3\)"),
    (lambda: X.scaled_dot_product_attention(X, Tensor.ones(4, 3)), r"\[scaled_dot_product_attention\]"),
    (lambda: X.scaled_dot_product_attention(X, X, attn_mask=X, is_causal=True), r"not both"),
    (lambda: X.replace(X.T), r"\[replace\] shapes \(2,3\) and \(3,2\) differ"),
])  # fmt: skip
def test_errors(call, text):
    with pytest.raises(weft.ShapeError, match=text):
        call()


def test_axes_are_checked():
    for call in (lambda: X.split(1, 2), lambda: X.chunk(1, -3), lambda: X.movedim(2, 0), lambda: X.unflatten(5, (1,))):
        with pytest.raises(IndexError):
            call()


def test_a_window_may_end_past_the_end_where_they_are_rounded_up() -> None:
    x = Tensor([[[[1.0, 2.0]]]])
    assert x.max_pool2d((1, 3), stride=(1, 2), ceil_mode=True).tolist() == [[[[2.0]]]]
    assert x.avg_pool2d((1, 3), stride=(1, 2), ceil_mode=True).tolist() == [[[[1.5]]]]
    for options in ({"kernel_size": (1, 3), "stride": (1, 2)}, {"kernel_size": (1, 4), "stride": (1, 2), "ceil_mode": True}):
        with pytest.raises(weft.ShapeError, match="reaches over"):
            x.max_pool2d(**options)
