"""Programs whose graphs never repeat: kernels that differ from known ones in sizes and scalars are not compiled."""
import numpy as np

from weft import Tensor, counters


def products(sizes, scale):
    """One product for each size: as many kernels, and another graph for another number of them."""
    numbers = np.random.default_rng(len(sizes))
    rows = [numbers.standard_normal((n, 24), dtype=np.float32) for n in sizes]
    weights = [numbers.standard_normal((24, 12), dtype=np.float32) for _ in sizes]
    made = [Tensor(a, device="CPU") @ Tensor(b, device="CPU") * scale for a, b in zip(rows, weights)]
    made[0].realize(*made[1:])
    return made, [a @ b * np.float32(scale) for a, b in zip(rows, weights)]


def test_new_sizes_and_scalars_in_new_graphs_are_served():
    lowered = []
    for step in range(6):
        sizes = [40 + 11 * step + 3 * i for i in range(2 + step)]
        before = counters.lowered
        made, expected = products(sizes, 0.3 + 0.1 * step)
        lowered.append(counters.lowered - before)
        for got, want in zip(made, expected):
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-4)
    assert lowered[-2:] == [0, 0], lowered


def test_sizes_that_come_again_and_do_much_work_get_their_own_kernel():
    for step in range(3):
        products([333 + 7 * step + i for i in range(8 + step)], 1.0)  # served by a general kernel
    before = counters.lowered
    for _ in range(40):
        made, expected = products([391, 397], 1.0)
    np.testing.assert_allclose(made[0].numpy(), expected[0], rtol=1e-4, atol=1e-4)
    assert 1 <= counters.lowered - before <= 6
