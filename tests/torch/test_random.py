"""Random numbers of the device: its own, equal run to run, by generators with a state."""

import pytest
import torch

DRAWS = {
    "rand": lambda g: torch.rand(1000, device="weft", generator=g),
    "randn": lambda g: torch.randn(1000, device="weft", generator=g),
    "randint": lambda g: torch.randint(0, 100, (1000,), device="weft", generator=g),
    "randperm": lambda g: torch.randperm(1000, device="weft", generator=g),
    "bernoulli": lambda g: torch.bernoulli(torch.full((1000,), 0.3, device="weft"), generator=g),
    "normal_": lambda g: torch.empty(1000, device="weft").normal_(2, 3, generator=g),
    "uniform_": lambda g: torch.empty(1000, device="weft").uniform_(-1, 3, generator=g),
    "exponential_": lambda g: torch.empty(1000, device="weft").exponential_(generator=g),
    "multinomial": lambda g: torch.multinomial(torch.ones(10, device="weft"), 1000, replacement=True, generator=g),
}


def generator(seed: int) -> torch.Generator:
    return torch.Generator(device="weft").manual_seed(seed)


@pytest.mark.parametrize("name", DRAWS)
def test_one_seed_gives_the_same(name):
    first, again, other = (DRAWS[name](generator(seed)).cpu() for seed in (5, 5, 6))
    assert torch.equal(first, again) and not torch.equal(first, other)


@pytest.mark.parametrize("name", DRAWS)
def test_a_generator_goes_on(name):
    g = generator(5)
    assert not torch.equal(DRAWS[name](g).cpu(), DRAWS[name](g).cpu())


@pytest.mark.parametrize("name", DRAWS)
def test_the_seed_of_torch_seeds_the_device(name):
    results = []
    for _ in range(2):
        torch.manual_seed(3)
        results.append(DRAWS[name](None).cpu())
    assert torch.equal(*results)


def test_states_are_kept_and_restored():
    state = torch.weft.get_rng_state()
    first = torch.randn(10, device="weft")
    torch.weft.set_rng_state(state)
    assert torch.equal(first.cpu(), torch.randn(10, device="weft").cpu())


def test_a_generator_copies_its_state():
    g = generator(1)
    torch.rand(3, device="weft", generator=g)
    h = torch.Generator(device="weft")
    h.set_state(g.get_state())
    assert torch.equal(torch.rand(9, device="weft", generator=g).cpu(), torch.rand(9, device="weft", generator=h).cpu())
    assert g.initial_seed() == 1 and g.device == torch.device("weft:0")


def test_fork_rng_keeps_the_state():
    torch.manual_seed(1)
    with torch.random.fork_rng(device_type="weft"):
        torch.rand(3, device="weft")
    first = torch.rand(3, device="weft").cpu()
    torch.manual_seed(1)
    assert torch.equal(first, torch.rand(3, device="weft").cpu())


def test_a_draw_is_of_its_moment():
    """Values that are computed later are those of the state that there was."""
    torch.manual_seed(1)
    first = torch.rand(5, device="weft")
    torch.manual_seed(2)
    second = torch.rand(5, device="weft")
    torch.manual_seed(1)
    assert torch.equal(torch.rand(5, device="weft").cpu(), first.cpu())
    assert not torch.equal(first.cpu(), second.cpu())


@pytest.mark.parametrize("name, mean, variance", [
    ("rand", 1 / 2, 1 / 12), ("randn", 0, 1), ("randint", 49.5, 833.25), ("bernoulli", 0.3, 0.21), ("normal_", 2, 9),
    ("uniform_", 1, 16 / 12), ("exponential_", 1, 1),
])
def test_moments(name, mean, variance):
    g = generator(11)
    x = torch.cat([DRAWS[name](g).double().cpu() for _ in range(20)])
    error = (variance / len(x)) ** 0.5
    assert abs(x.mean() - mean) < 5 * error
    assert abs(x.var() / variance - 1) < 0.1


def test_ranges():
    g = generator(12)
    x = DRAWS["rand"](g).cpu()
    assert 0 <= x.min() and x.max() < 1
    i = DRAWS["randint"](g).cpu()
    assert 0 <= i.min() and i.max() < 100
    assert torch.equal(DRAWS["randperm"](g).cpu().sort().values, torch.arange(1000))


def test_dropout_keeps_the_expected_share():
    torch.manual_seed(0)
    x = torch.nn.functional.dropout(torch.ones(10_000, device="weft"), 0.25).cpu()
    assert set(x.unique().tolist()) == {0.0, torch.tensor(1 / 0.75).item()}
    assert abs((x == 0).float().mean() - 0.25) < 0.03


def test_dropout_follows_the_generator():
    results = []
    for _ in range(2):
        torch.manual_seed(4)
        results.append(torch.nn.functional.dropout(torch.ones(100, device="weft")).cpu())
    assert torch.equal(*results)


def test_a_generator_of_another_device_raises():
    with pytest.raises(RuntimeError):
        torch.rand(3, device="weft", generator=torch.Generator())


def test_initialisers():
    torch.manual_seed(0)
    weight = torch.nn.init.kaiming_uniform_(torch.empty(100, 50, device="weft")).cpu()
    bound = (6 / 50) ** 0.5
    assert weight.abs().max() <= bound and abs(weight.std() - bound / 3 ** 0.5) < 0.02


@pytest.mark.parametrize("count, replacement", [(1, False), (1, True), (2, False), (2, True)])
@pytest.mark.parametrize("weights", [
    [-1.0, 2.0], [float("inf"), 1.0], [float("nan"), 1.0], [0.0, 0.0], [[0.0, 0.0], [1.0, 1.0]],
    [[1.0, 1.0], [-1.0, 3.0]],
])
def test_weights_that_are_no_chances_raise_as_on_the_cpu(weights, count, replacement):
    messages = []
    for device in ("cpu", "weft"):
        with pytest.raises(RuntimeError) as raised:
            torch.multinomial(torch.tensor(weights, device=device), count, replacement)
        messages.append(str(raised.value).split("\n")[0])
    assert messages[0] == messages[1]


def test_weights_without_a_fault_are_drawn_from():
    weights = torch.tensor([[0.0, 1e-30, 0.0], [2.0, 0.0, 0.0]], device="weft")
    assert torch.multinomial(weights, 3, replacement=True).tolist() == [[1, 1, 1], [0, 0, 0]]
