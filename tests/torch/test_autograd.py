"""PyTorch's autograd on tensors of the device."""

import pytest
import torch
from on_both_devices import close_on_both, numbers, raises_on_both, same_on_both
from torch.utils.checkpoint import checkpoint


@close_on_both
def test_writes_to_views_are_differentiated(d):
    x = numbers(d, 3, 3).requires_grad_()
    y = x * 2
    v = y.t()[1:]
    v.mul_(3)
    y.view(-1)[::2].add_(y.view(-1)[0].detach().clone())
    v[0].relu_()
    (y * y).sum().backward()
    return x.grad, y.detach()


@close_on_both
def test_copies_into_parts_are_differentiated(d):
    x, w = numbers(d, 4).requires_grad_(), numbers(d, 2).requires_grad_()
    y = x.clone()
    y[1:3].copy_(w)
    y[0] = 5
    (y * numbers(d, 4)).sum().backward()
    return x.grad, w.grad


@close_on_both
def test_indexed_writes_are_differentiated(d):
    x, w = numbers(d, 4).requires_grad_(), numbers(d, 2).requires_grad_()
    y = x * 1
    y[torch.tensor([0, 3]).to(d)] = w * 2
    (y * y).sum().backward()
    return x.grad, w.grad


@raises_on_both(RuntimeError)
def test_a_saved_tensor_that_was_overwritten_raises(d):
    x = numbers(d, 3).requires_grad_()
    y = x * x
    z = y * y
    y.add_(1)
    z.sum().backward()


@raises_on_both(RuntimeError)
def test_writing_a_leaf_raises(d):
    x = numbers(d, 3).requires_grad_()
    x[0] = 1


@raises_on_both(RuntimeError)
def test_backward_twice_raises(d):
    y = (numbers(d, 3).requires_grad_() ** 2).sum()
    y.backward()
    y.backward()


@close_on_both
def test_gradients_accumulate(d):
    x = numbers(d, 3).requires_grad_()
    (x * x).sum().backward()
    kept = x.grad
    (x * 3).sum().backward()
    return x.grad, kept is x.grad


@close_on_both
def test_double_backward(d):
    x = numbers(d, 3).requires_grad_()
    first, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
    first.sum().backward()
    return x.grad, first.detach()


@close_on_both
def test_hooks_see_and_change_gradients(d):
    x = numbers(d, 3).requires_grad_()
    seen = []
    x.register_hook(lambda g: seen.append(g.sum().item()))
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.retain_grad()
    y.sum().backward()
    return x.grad, y.grad, seen


@close_on_both
def test_hooks_after_accumulation(d):
    x = numbers(d, 3).requires_grad_()
    seen = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    (x * x).sum().backward()
    return seen


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints(reentrant):
    @close_on_both
    def program(d):
        x = numbers(d, 3, 3).requires_grad_()
        checkpoint(lambda t: torch.relu(t @ t).sum(), x, use_reentrant=reentrant).backward()
        return x.grad

    program()


def test_a_checkpoint_with_dropout_draws_the_same_twice():
    torch.manual_seed(1)
    x = torch.ones(1000, device="weft", requires_grad=True)
    y = checkpoint(lambda t: torch.nn.functional.dropout(t, 0.5), x, use_reentrant=False)
    y.sum().backward()
    assert torch.equal(y.detach().cpu(), x.grad.cpu())


@close_on_both
def test_saved_tensor_hooks(d):
    x = numbers(d, 3).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.cpu(), lambda t: t.to(d)):
        y = (x * x).sum()
    y.backward()
    return x.grad


@close_on_both
def test_a_function_of_the_user(d):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        def backward(ctx, gradient):
            x, = ctx.saved_tensors
            return gradient * 3 * x * x

    x = numbers(d, 3).requires_grad_()
    Cube.apply(x).sum().backward()
    return x.grad


def test_gradcheck():
    x = torch.randn(3, 4, dtype=torch.double).to("weft").requires_grad_()
    w = torch.randn(4, 2, dtype=torch.double).to("weft").requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: torch.tanh(a @ b).add(1).mul(2), (x, w))


@same_on_both
def test_inference_mode(d):
    with torch.inference_mode():
        y = numbers(d, 3) * 2
        y.add_(1)
        return y.is_inference(), y.clone()


@close_on_both
def test_gradients_of_gradients_of_a_matrix_product(d):
    a, b = numbers(d, 2, 3).requires_grad_(), numbers(d, 3, 2).requires_grad_()
    first = torch.autograd.grad(torch.tanh(a @ b * 0.01).sum(), (a, b), create_graph=True)
    return torch.autograd.grad(sum(g.pow(2).sum() for g in first), (a, b))


@close_on_both
def test_vmap(d):
    return torch.func.vmap(lambda t: (t * t).sum())(numbers(d, 3, 2))


@close_on_both
def test_grad_of_functorch(d):
    return torch.func.grad(lambda t: (t ** 3).sum())(numbers(d, 3))


@close_on_both
def test_vmap_of_grad(d):
    return torch.func.vmap(torch.func.grad(lambda t: torch.relu(t @ t).sum()))(numbers(d, 2, 3, 3))


@close_on_both
def test_jacobians(d):
    def f(t):
        return t * t[0]

    return torch.func.jacrev(f)(numbers(d, 3)), torch.func.jacfwd(f)(numbers(d, 3)), torch.func.hessian(
        lambda t: (t ** 3).sum())(numbers(d, 3))


@close_on_both
def test_jvp_and_vjp(d):
    value, tangent = torch.func.jvp(torch.sin, (numbers(d, 3),), (numbers(d, 3),))
    _, pull = torch.func.vjp(torch.sin, numbers(d, 3))
    return value, tangent, pull(numbers(d, 3))


def write_first(t: torch.Tensor) -> torch.Tensor:
    t = t.clone()
    t[0].add_(5)
    return t


@same_on_both
def test_writes_under_vmap_and_functionalize(d):
    return torch.func.vmap(write_first)(numbers(d, 3, 2)), torch.func.functionalize(write_first)(numbers(d, 3))


@close_on_both
def test_functional_call(d):
    module = torch.nn.Linear(3, 2).to(d)
    weights = {"weight": numbers(d, 2, 3), "bias": numbers(d, 2)}
    return torch.func.functional_call(module, weights, numbers(d, 1, 3))
