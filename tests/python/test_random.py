"""Random numbers: which ones, how they are spread, and that every way to compute them gives the same."""

import numpy as np
import pytest

import weft
from weft import Tensor, dtypes, jit

DEVICES = ["REF", "CPU:C", "CPU"]
COUNT = 100_000


@pytest.fixture(autouse=True)
def seeded():
    Tensor.manual_seed(1234)
    yield
    Tensor.training = False


def threefry(counter: int, key: int) -> int:
    """Threefry-2x32 of 20 rounds, after its paper."""
    mask = 0xFFFFFFFF
    keys = [key & mask, key >> 32]
    keys.append(keys[0] ^ keys[1] ^ 0x1BD11BDA)
    x, y = (counter & mask) + keys[0] & mask, (counter >> 32) + keys[1] & mask
    for group in range(5):
        for rotation in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x = x + y & mask
            y = (y << rotation | y >> 32 - rotation) & mask ^ x
        x, y = x + keys[(group + 1) % 3] & mask, y + keys[(group + 2) % 3] + group + 1 & mask
    return y << 32 | x


@pytest.mark.parametrize("device", DEVICES)
def test_numbers_are_those_of_the_docs(device):
    for seed in (0, 7, -1, 2**62 + 5):
        Tensor.manual_seed(seed)
        bits = [threefry(i, seed % 2**64) for i in range(9)]
        assert Tensor.rand(2, 2, device=device).flatten().tolist() == [(b >> 40) / 2**24 for b in bits[:4]]
        assert Tensor.rand(2, dtype="float64", device=device).tolist() == [(b >> 11) / 2**53 for b in bits[4:6]]
        assert Tensor.rand(1, dtype="float16", device=device).tolist() == [(bits[6] >> 53) / 2**11]
        assert Tensor.randint(2, low=-3, high=40, device=device).tolist() == [-3 + (b * 43 >> 64) for b in bits[7:]]
        assert Tensor.get_rng_state(device).tolist() == [seed % 2**64, 9]


def test_large_integers():
    Tensor.manual_seed(5)
    low, high = -(2**62), 2**62 + 12345
    expected = [low + (threefry(i, 5) * (high - low) >> 64) for i in range(50)]
    assert Tensor.randint(50, low=low, high=high, dtype="int64").tolist() == expected


@pytest.mark.parametrize("make", [Tensor.rand, Tensor.randn, Tensor.randint, Tensor.kaiming_normal], ids=["rand", "randn", "randint", "kaiming_normal"])
def test_same_on_every_device(make):
    results = []
    for device in DEVICES:
        Tensor.manual_seed(3)
        results.append([make(3, 5, device=device).numpy() for _ in range(2)])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_allclose(a, b, 1e-6, 1e-6)
    assert not np.array_equal(results[0][0], results[0][1])


def test_order_of_computation_does_not_matter():
    def draw():
        Tensor.manual_seed(9)
        return Tensor.rand(4), Tensor.randn(3) * 2, Tensor.rand(2, 2).sum()

    eager = [t.realize().tolist() for t in draw()]
    assert [t.tolist() for t in reversed(draw())] == eager[::-1]
    a, b, c = draw()
    assert np.array_equal((a[:3] + b).numpy(), a[:3].numpy() + b.numpy()) and c.item() == eager[2]


def test_reads_twice_are_the_same():
    x = Tensor.rand(5)
    assert (x - x).abs().max().item() == 0 and x.tolist() == x.tolist()


def test_state():
    state = Tensor.get_rng_state()
    first = Tensor.rand(3).tolist()
    state_after = Tensor.get_rng_state()
    Tensor.set_rng_state(state)
    assert Tensor.rand(3).tolist() == first
    Tensor.set_rng_state(state_after.clone())
    assert Tensor.rand(3).tolist() != first
    with pytest.raises(weft.ShapeError, match=r"\[set_rng_state\]"):
        Tensor.set_rng_state(Tensor([1, 2]))


def test_one_kernel_each():
    for make in (Tensor.rand, Tensor.randn, Tensor.randint, Tensor.uniform, Tensor.glorot_uniform):
        assert make(10, 7, device="CPU:C").kernel_count() == 1
    weft.counters.reset()
    for _ in range(20):
        Tensor.rand(4).realize()
    assert weft.counters.kernels == 20


# ------------------------------------------------------------------------------------------------ jit


@pytest.mark.parametrize("device", DEVICES)
def test_jit_gives_new_numbers(device):
    def function(x):
        return x + Tensor.rand(3, device=device), Tensor.randint(2, device=device)

    def numbers(f):
        Tensor.manual_seed(3)
        results = [[t.tolist() for t in f(Tensor.zeros(3, device=device))] for _ in range(6)]
        return [*results, Tensor.rand(2, device=device).tolist()]

    replayed = jit(function)
    plain = numbers(function)
    assert plain == numbers(replayed) and replayed.captures == 1
    assert len({tuple(r[0]) for r in plain[:6]}) == 6
    assert plain == numbers(replayed) and replayed.captures == 1  # a new seed is no new capture


def test_jit_sees_training():
    @jit
    def function(x):
        return x.dropout(0.5).sum()

    x = Tensor.ones(1000)
    assert [function(x).item() for _ in range(3)] == [1000] * 3
    with Tensor.train():
        trained = [function(x).item() for _ in range(5)]
    assert all(800 < v < 1200 for v in trained) and len(set(trained)) >= 4
    assert function(x).item() == 1000


def test_jit_seeds_inside():
    @jit
    def function():
        Tensor.manual_seed(8)
        return Tensor.rand(3)

    assert len({tuple(function().tolist()) for _ in range(4)}) == 1


# ------------------------------------------------------------------------------------------- how spread


def test_uniform_is_spread():
    x = Tensor.rand(COUNT, device="CPU").numpy().astype(np.float64)
    assert 0 <= x.min() and x.max() < 1
    counts = np.histogram(x, 100, (0, 1))[0]
    assert ((counts - COUNT / 100) ** 2 / (COUNT / 100)).sum() < 150  # chi squared of 99 degrees: p below 0.001
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.01 and abs(x.mean() - 0.5) < 0.005


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_is_spread(dtype):
    x = Tensor.randn(COUNT, dtype=dtype, device="CPU").numpy().astype(np.float64)
    assert abs(x.mean()) < 0.015 and abs(x.var() - 1) < 0.02
    assert abs((x**3).mean()) < 0.05 and abs((x**4).mean() - 3) < 0.1
    assert abs((np.abs(x) < 1).mean() - 0.6827) < 0.005 and np.isfinite(x).all()


def test_integers_are_spread():
    x = Tensor.randint(COUNT, low=-3, high=4, device="CPU").numpy()
    assert x.dtype == np.int32
    counts = np.bincount(x + 3)
    assert len(counts) == 7 and np.abs(counts - COUNT / 7).max() < 5 * (COUNT / 7) ** 0.5


def test_ranges():
    x = Tensor.uniform(10_000, low=-2, high=5).numpy()
    assert -2 <= x.min() < -1.9 and 4.9 < x.max() < 5
    assert set(Tensor.uniform(1000, low=0, high=3, dtype=dtypes.int32).tolist()) == {0, 1, 2}
    x = Tensor.normal(10_000, mean=3, std=0.5).numpy()
    assert abs(x.mean() - 3) < 0.02 and abs(x.std() - 0.5) < 0.02
    bounds = {"scaled_uniform": 1 / 500**0.5, "glorot_uniform": (6 / 70) ** 0.5,
              "kaiming_uniform": (6 / (1 + 0.01**2) / 50) ** 0.5}
    for name, bound in bounds.items():
        largest = np.abs(getattr(Tensor, name)(*((10, 50) if name == "scaled_uniform" else (20, 50))).numpy()).max()
        assert 0.95 * bound < largest <= bound * (1 + 1e-6), name
    x = Tensor.kaiming_normal(64, 10, 5).numpy()
    assert abs(x.std() - (2 / (1 + 0.01**2) / 50) ** 0.5) < 0.01


@pytest.mark.parametrize("device", DEVICES)
def test_permutations(device):
    Tensor.manual_seed(6)
    x = Tensor.randperm(50, device=device)
    keys = [threefry(i, 6) for i in range(50)]
    assert x.dtype == dtypes.int32 and x.tolist() == sorted(range(50), key=keys.__getitem__)
    assert Tensor.randperm(0, device=device).tolist() == [] and Tensor.randperm(1, dtype="int64").tolist() == [0]


def test_choices_are_as_likely_as_their_weights():
    weights = Tensor([1.0, 0.0, 3.0, 4.0])
    counts = np.bincount(weights.multinomial(8000, replacement=True).numpy(), minlength=4)
    assert counts[1] == 0 and np.abs(counts - [1000, 0, 3000, 4000]).max() < 200
    rows = Tensor([[1, 3], [5, 0]]).expand(2, 2).multinomial(4000, True).numpy()
    assert rows.shape == (2, 4000) and abs((rows[0] == 0).mean() - 0.25) < 0.03 and not rows[1].any()


def test_choices_without_replacement():
    weights = Tensor([1.0, 2.0, 0.0, 5.0]).expand(4000, 4)
    x = weights.multinomial(2).numpy()
    assert x.dtype == np.int32 and x.shape == (4000, 2) and (x[:, 0] != x[:, 1]).all() and not (x == 2).any()
    first = np.bincount(x[:, 0], minlength=4) / 4000
    assert np.abs(first - [1 / 8, 2 / 8, 0, 5 / 8]).max() < 0.03
    second = (x[x[:, 0] == 3][:, 1] == 1).mean()
    assert abs(second - 2 / 3) < 0.04
    assert Tensor([0.0, 1.0]).multinomial().tolist() == [1]


def test_dropout():
    x = Tensor.ones(COUNT, device="CPU")
    assert x.dropout(0.5).tolist() == x.tolist()
    Tensor.training = True
    y = x.dropout(0.2).numpy()
    np.testing.assert_array_equal(np.unique(y), np.float32([0, 1 / 0.8]))
    assert abs((y == 0).mean() - 0.2) < 0.01
    assert x.dropout(1.0).sum().item() == 0 and x.dropout(0).tolist() == x.tolist()
    with Tensor.train(False):
        assert not Tensor.training
    assert Tensor.training


def test_like_and_empty():
    x = Tensor.zeros(2, 3, dtype=dtypes.float64)
    assert x.rand_like().dtype == dtypes.float64 and x.randn_like(dtype=dtypes.float16).shape == (2, 3)
    assert Tensor.rand(0, 3).tolist() == [] and Tensor.rand().shape == () and Tensor.rand((2, 3)).shape == (2, 3)
    assert Tensor.rand(4, dtype=dtypes.bfloat16).dtype == dtypes.bfloat16


@pytest.mark.parametrize("call, kind, text", [
    (lambda: Tensor.rand(2, dtype="int32"), weft.DTypeError, r"\[rand\] int32 is no float"),
    (lambda: Tensor.randint(2, low=3, high=3), weft.ShapeError, r"\[randint\] no integers from 3 to 3"),
    (lambda: Tensor.randint(2, high=300, dtype="int8"), weft.DTypeError, r"\[randint\]"),
    (lambda: Tensor.randint(2, dtype="float32"), weft.DTypeError, r"\[randint\] float32"),
    (lambda: Tensor.rand(-1), weft.ShapeError, r"negative"),
    (lambda: Tensor.ones(2).dropout(1.5), weft.ShapeError, r"\[dropout\] probability 1.5"),
    (lambda: Tensor.ones(3).multinomial(4), weft.ShapeError, r"\[multinomial\] 4 samples of 3 weights without"),
    (lambda: Tensor.ones(2, 2, 2).multinomial(), weft.ShapeError, r"\[multinomial\] weights are"),
    (lambda: Tensor.randperm(300, dtype="int8"), weft.DTypeError, r"\[randperm\]"),
    (lambda: Tensor.kaiming_uniform(), weft.ShapeError, r"\[kaiming_uniform\]"),
])  # fmt: skip
def test_errors(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
