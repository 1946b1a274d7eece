"""torch.compile on the device: whole graphs, forward and backward, captured and replayed."""
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("weft.torch", reason="the build has no weft.torch", exc_type=ImportError)

import weft
from weft.torch._compile import backend, compile_graph


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def inputs(*shapes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.rand(shape, generator=generator) for shape in shapes]


def on_weft(tensors):
    return [t.to("weft") for t in tensors]


def writes_through_views(x, w):
    y = (x @ w).exp()
    y[0].mul_(2)
    v = y.t()
    v.add_(1)
    return y, v * 2


@pytest.mark.parametrize("name", ["weft", "eager", "aot_eager"])
def test_a_graph_gives_what_the_function_gives(name):
    compiled = torch.compile(writes_through_views, backend=name, fullgraph=True)
    for seed in range(4):
        given = inputs((3, 4), (4, 3), seed=seed)
        expected = writes_through_views(*given)
        for a, b in zip(expected, compiled(*on_weft(given))):
            assert b.device.type == "weft" and a.stride() == b.stride()
            torch.testing.assert_close(b.cpu(), a)


def test_inputs_that_are_written_are_written():
    def function(x, y):
        x.add_(y)
        return x * 2

    compiled = torch.compile(function, backend=backend, fullgraph=True)
    x = torch.zeros(3, device="weft")
    for i in range(1, 5):
        assert compiled(x, torch.ones(3, device="weft")).tolist() == [2 * i] * 3
        assert x.tolist() == [i] * 3


def test_results_that_alias_inputs_alias_them():
    def function(x):
        return x.view(-1), x + 1

    compiled = torch.compile(function, backend=backend, fullgraph=True)
    for _ in range(4):
        x = torch.zeros(2, 2, device="weft")
        flat, more = compiled(x)
        flat[0] = 5
        assert x.tolist() == [[5, 0], [0, 0]] and more.tolist() == [[1, 1], [1, 1]]


def test_training():
    def function(x, w):
        return (x @ w).exp().mul(2)

    compiled = torch.compile(function, backend=backend, fullgraph=True)
    (w,) = inputs((4, 2))
    ours, theirs = w.to("weft").requires_grad_(), w.clone().requires_grad_()
    for seed in range(4):
        (x,) = inputs((3, 4), seed=seed)
        compiled(x.to("weft"), ours).backward(torch.ones(3, 2, device="weft"))
        function(x, theirs).backward(torch.ones(3, 2))
        torch.testing.assert_close(ours.grad.cpu(), theirs.grad)


def graph_of(function, *arguments):
    from torch.fx.experimental.proxy_tensor import make_fx
    return make_fx(function)(*arguments)


def test_a_graph_is_captured_once_and_replayed():
    calls = []

    def function(x):
        return [(x * 2).exp() + 1]

    graph = graph_of(function, torch.zeros(3, device="weft"))
    original = graph.forward
    graph.forward = lambda *a: calls.append(1) or original(*a)
    run = compile_graph(graph, [])
    for i in range(6):
        (result,) = run([torch.full((3,), float(i), device="weft")])
        torch.testing.assert_close(result.cpu(), (torch.full((3,), float(i)) * 2).exp() + 1)
    assert len(calls) == 2
    (compiled,) = run.kinds.values()
    assert compiled.is_captured and compiled.kernels == 1


def test_other_shapes_are_other_captures():
    graph = graph_of(lambda x: [x * 2], torch.zeros(3, device="weft"))
    run = compile_graph(graph, [])
    for shape in [(3,), (3,), (3,), (5,), (5,), (5,), (3,)]:
        assert run([torch.ones(shape, device="weft")])[0].tolist() == [2.0] * shape[0]


def test_graphs_that_need_values_run_as_they_are():
    run = compile_graph(graph_of(lambda x: [torch.masked_select(x, x > 0)], torch.ones(3, device="weft")), [])
    for i in range(1, 5):
        assert run([torch.arange(-i, i + 1.0, device="weft")])[0].tolist() == list(range(1, i + 1))


def test_random_graphs_draw_anew():
    compiled = torch.compile(lambda x: x + torch.rand_like(x), backend=backend)
    drawn = {compiled(torch.zeros(1, device="weft")).item() for _ in range(5)}
    assert len(drawn) == 5


def test_kernels_of_a_call_do_not_grow():
    compiled = torch.compile(lambda x: (x * 2 + 1).exp(), backend=backend)
    counts = []
    for _ in range(5):
        x = torch.ones(8, device="weft")
        torch.weft.synchronize()
        before = weft.counters.kernels
        compiled(x)
        torch.weft.synchronize()
        counts.append(weft.counters.kernels - before)
    assert counts[-1] == 1, counts


@pytest.mark.parametrize("dropout", [0.0, 1.0])
def test_attention_is_trained(dropout):
    def attend(x, w):
        q, k, v = (t.view(2, 5, 3, 4).transpose(1, 2) for t in (x @ w).split(12, -1))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        return y.transpose(1, 2).reshape(2, 5, 12).tanh().sum()

    compiled = torch.compile(attend, backend="weft", fullgraph=True)
    for seed in range(3):
        given = inputs((2, 5, 12), (12, 36), seed=seed)
        here, there = ([t.to(d).requires_grad_() for t in given] for d in ("cpu", "weft"))
        expected, found = attend(*here), compiled(*there)
        torch.testing.assert_close(found.detach().cpu(), expected.detach())
        for e, f in zip(torch.autograd.grad(expected, here), torch.autograd.grad(found, there)):
            torch.testing.assert_close(f.cpu(), e, rtol=1e-4, atol=1e-5)
