"""Operators of many operations are recorded as one step: what is wrong with their operands is said when they are called,
and what they give is of the operands as they were then."""

import pytest
import torch
from on_both_devices import close_on_both, numbers
from torch.nn import functional


def ones(*shape, dtype=torch.float32):
    return torch.ones(*shape, dtype=dtype, device="weft")


def attention(mask=None, key=(2, 2, 4, 8)):
    return functional.scaled_dot_product_attention(ones(2, 2, 4, 8), ones(*key), ones(2, 2, 4, 8), attn_mask=mask)


def attention_itself(key, mask=None):
    operator = torch.ops.aten._scaled_dot_product_fused_attention_overrideable
    return operator(ones(2, 2, 4, 8), ones(*key), ones(*key), mask)


def convolution(weight=(4, 3, 3, 3), transposed=False, **options):
    function = functional.conv_transpose2d if transposed else functional.conv2d
    return function(ones(1, 3, 8, 8), ones(*weight), **options)


def convolution_itself(weight, bias=None, groups=1):
    operator = torch.ops.aten.convolution_overrideable
    return operator(ones(1, 3, 8, 8), ones(*weight), bias, [1, 1], [0, 0], [1, 1], False, [0, 0], groups)


def convolution_backward(gradient):
    operator = torch.ops.aten.convolution_backward_overrideable
    return operator(ones(*gradient), ones(1, 3, 8, 8), ones(4, 3, 3, 3), [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True] * 3)


def batch_norm_backward(gradient=(2, 3, 4), mean=3, weight=3):
    operator = torch.ops.aten.native_batch_norm_backward
    return operator(ones(*gradient), ones(2, 3, 4), ones(weight), None, None, ones(mean), ones(3), True, 1e-5, [True] * 3)


def layer_norm_backward(gradient=(2, 3), mean=(2, 1)):
    operator = torch.ops.aten.native_layer_norm_backward
    return operator(ones(*gradient), ones(2, 3), [3], ones(*mean), ones(2, 1), ones(3), None, [True, True, False])


def group_norm_backward(gradient=(2, 6, 3), mean=(2, 2), weight=6):
    operator = torch.ops.aten.native_group_norm_backward
    return operator(ones(*gradient), ones(2, 6, 3), ones(*mean), ones(2, 2), ones(weight), 2, 6, 3, 2, [True] * 3)


def rms_norm_backward(gradient=(2, 3), deviation=(2, 1), weight=3):
    operator = torch.ops.aten._fused_rms_norm_backward
    return operator(ones(*gradient), ones(2, 3), [3], ones(*deviation), ones(weight), [True, True])


def grid_sample_backward(gradient):
    return torch.ops.aten.grid_sampler_2d_backward(ones(*gradient), ones(1, 2, 4, 4), ones(1, 3, 3, 2), 0, 0, False, [True, True])


def max_pool3d_backward(gradient):
    operator = torch.ops.aten.max_pool3d_with_indices_backward
    indices = torch.zeros(1, 2, 2, 2, 2, dtype=torch.int64, device="weft")
    return operator(ones(*gradient), ones(1, 2, 4, 4, 4), [2], [2], [0], [1], False, indices)


def nll_loss2d_backward(gradient):
    target = torch.zeros(2, 4, 4, dtype=torch.int64, device="weft")
    return torch.ops.aten.nll_loss2d_backward(ones(*gradient), ones(2, 3, 4, 4), target, None, 0, -100, ones(()))


WRONG = {
    "mask of another length": lambda: attention(ones(3, 3)),
    "mask of more axes": lambda: attention(ones(5, 2, 2, 4, 4)),
    "mask of more batches": lambda: attention(ones(6, 1, 4, 4)),
    "keys of another size": lambda: attention(key=(2, 2, 4, 6)),
    "keys of another size, called itself": lambda: attention_itself((2, 2, 4, 6)),
    "keys of other heads, called itself": lambda: attention_itself((2, 3, 4, 8)),
    "mask of another length, called itself": lambda: attention_itself((2, 2, 4, 8), ones(3, 3)),
    "channels": lambda: convolution((4, 2, 3, 3)),
    "kernel larger than the input": lambda: convolution((4, 3, 9, 9)),
    "dilation": lambda: convolution(dilation=0),
    "stride": lambda: convolution(stride=0),
    "output padding": lambda: convolution((3, 4, 3, 3), transposed=True, output_padding=2),
    "groups": lambda: convolution(groups=2),
    "bias": lambda: convolution(bias=ones(3)),
    "weight of another dtype": lambda: functional.conv2d(ones(1, 3, 8, 8), ones(4, 3, 3, 3, dtype=torch.float64)),
    "channels, called itself": lambda: convolution_itself((4, 2, 3, 3)),
    "bias, called itself": lambda: convolution_itself((4, 3, 3, 3), ones(3)),
    "axes, called itself": lambda: convolution_itself((4, 3, 3)),
    "gradient of a convolution": lambda: convolution_backward((1, 4, 5, 5)),
    "added rows": lambda: torch.addmm(ones(2), ones(2, 3), ones(3, 4)),
    "gradient of a batch norm": lambda: batch_norm_backward((2, 3, 5)),
    "mean of a batch norm": lambda: batch_norm_backward(mean=2),
    "weight of a batch norm": lambda: batch_norm_backward(weight=2),
    "gradient of a layer norm": lambda: layer_norm_backward((2, 5)),
    "mean of a layer norm": lambda: layer_norm_backward(mean=(3, 1)),
    "weight of a layer norm": lambda: functional.layer_norm(ones(2, 3), (3,), ones(2)),
    "weight of a group norm": lambda: functional.group_norm(ones(2, 6, 3), 2, ones(5)),
    "gradient of a group norm": lambda: group_norm_backward((2, 6, 4)),
    "mean of a group norm": lambda: group_norm_backward(mean=(2, 3)),
    "weight in the gradient of a group norm": lambda: group_norm_backward(weight=5),
    "gradient of a norm of squares": lambda: rms_norm_backward((2, 4)),
    "deviation of a norm of squares": lambda: rms_norm_backward(deviation=(3, 1)),
    "weight in the gradient of a norm of squares": lambda: rms_norm_backward(weight=2),
    "gradient of samples": lambda: grid_sample_backward((1, 2, 3, 4)),
    "gradient of means of other axes": lambda: torch.ops.aten._adaptive_avg_pool2d_backward(ones(2, 2, 2), ones(1, 2, 4, 4)),
    "gradient of means of more channels": lambda: torch.ops.aten._adaptive_avg_pool2d_backward(
        ones(1, 3, 2, 2), ones(1, 2, 4, 4)),
    "gradient of means of windows": lambda: torch.ops.aten.avg_pool2d_backward(
        ones(1, 2, 3, 3), ones(1, 2, 4, 4), [2], [2], [0], False, True, None),
    "gradient of a resized plane": lambda: torch.ops.aten.upsample_bilinear2d_backward(
        ones(1, 2, 3, 3), [4, 4], [1, 2, 2, 2], False),
    "gradient of squares": lambda: torch.ops.aten.mse_loss_backward(ones(3), ones(4), ones(4), 0),
    "targets of squares": lambda: torch.ops.aten.mse_loss(ones(3), ones(4)),
    "gradient of a pool": lambda: max_pool3d_backward((1, 2, 3, 3, 3)),
    "gradient of a loss": lambda: nll_loss2d_backward((2, 4, 5)),
    "targets": lambda: functional.nll_loss(ones(2, 3), torch.zeros(3, dtype=torch.int64, device="weft")),
    "k": lambda: ones(2, 3).topk(4),
    "rank": lambda: ones(2, 3).kthvalue(4),
    "axis of a rank": lambda: ones(2, 3).kthvalue(1, dim=2),
    "axis of a median": lambda: ones(2, 3).median(dim=2),
    "median of nothing": lambda: ones(2, 0).median(dim=1),
    "mode of nothing": lambda: ones(2, 0).mode(dim=1),
    "axis of the best so far": lambda: ones(2, 3).cummax(dim=2),
    "rows of other sizes": lambda: torch.cdist(ones(2, 3), ones(2, 4)),
    "rows of other sizes, called itself": lambda: torch.ops.aten._cdist_forward(ones(2, 3), ones(2, 1), 2.0, None),
    "axis of exponentials": lambda: torch.logsumexp(ones(2, 3), 2),
    "windows larger than the input": lambda: functional.unfold(ones(1, 2, 3, 3), 4),
    "columns of another number": lambda: functional.fold(ones(1, 8, 5), (3, 3), 2),
    "columns of another size": lambda: functional.fold(ones(1, 7, 4), (3, 3), 2),
    "parts of nothing": lambda: functional.adaptive_max_pool2d(ones(1, 2, 0, 3), 2),
    "parts of too few axes": lambda: functional.adaptive_max_pool2d(ones(3, 3), 2),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_said_at_the_call(what):
    with pytest.raises((RuntimeError, ValueError, IndexError)):
        WRONG[what]()


def parameter(device, *shape):
    return torch.linspace(-1, 1, torch.Size(shape).numel()).reshape(shape).to(device)


FUNCTIONS = {
    "gelu": functional.gelu,
    "tanh": torch.tanh,
    "softmax": lambda x: torch.softmax(x, -1),
    "cumsum": lambda x: x.cumsum(0),
    "sort": lambda x: x.sort(dim=-1, descending=True),
    "topk": lambda x: x.topk(2),
    "argmax": lambda x: x.argmax(-1),
    "rank": lambda x: x.kthvalue(2, dim=0),
    "median": lambda x: x.median(dim=1, keepdim=True),
    "median of all": torch.median,
    "median of numbers": lambda x: torch.where(x.detach() > 1.5, torch.nan, x).nanmedian(dim=1),
    "mode": lambda x: x.round().mode(dim=1),
    "largest so far": lambda x: x.cummax(1),
    "least so far": lambda x: x.cummin(0),
    "distances": lambda x: torch.cdist(x, parameter(x.device, 3, 6), p=1.5),
    "exponentials": lambda x: torch.logsumexp(x, (0, 1), keepdim=True),
    "columns": lambda x: functional.unfold(x.reshape(1, 2, 3, 4), 2, padding=1),
    "sums of columns": lambda x: functional.fold(x.reshape(1, 4, 6), (3, 4), 2),
    "largest of parts": lambda x: functional.adaptive_max_pool2d(x.reshape(2, 3, 4), (2, 3), return_indices=True),
    "power": lambda x: x.abs() ** 1.5,
    "layer norm": lambda x: functional.layer_norm(x, (6,), parameter(x.device, 6), parameter(x.device, 6)),
    "group norm": lambda x: functional.group_norm(x.reshape(1, 4, 6), 2),
    "batch norm": lambda x: functional.batch_norm(x, None, None, training=True),
    "convolution": lambda x: functional.conv1d(x.reshape(1, 4, 6), parameter(x.device, 2, 4, 3), padding=1),
    "maximum of windows": lambda x: functional.max_pool1d(x, 2),
    "linear": lambda x: functional.linear(x, parameter(x.device, 3, 6), parameter(x.device, 3)),
    "cross entropy": lambda x: functional.cross_entropy(x, torch.tensor([1, 0, 5, 2], device=x.device)),
    "gather": lambda x: x.gather(1, (x.detach() * 7).long().abs() % 6),
    "mean of windows": lambda x: functional.avg_pool1d(x, 2),
    "mean of parts": lambda x: functional.adaptive_avg_pool1d(x, 4),
    "resized": lambda x: functional.interpolate(x.reshape(1, 2, 3, 4), size=(5, 6), mode="bilinear"),
    "repeated": lambda x: functional.interpolate(x.reshape(1, 2, 3, 4), scale_factor=2),
    "norm of squares": lambda x: functional.rms_norm(x, (6,), parameter(x.device, 6)),
    "squares": lambda x: functional.mse_loss(x, x.detach() * 0.5 + 1),
    "smooth distances": lambda x: functional.smooth_l1_loss(x, x.detach() * 0.5 + 1, beta=0.75),
    "swish": functional.silu,
    "remainder": lambda x: x.remainder(0.75),
    "samples": lambda x: functional.grid_sample(
        x.reshape(1, 2, 3, 4), (x[:3, :4].detach() / 3 - 0.4).reshape(1, 2, 3, 2), align_corners=False),
    "attention": lambda x: functional.scaled_dot_product_attention(*[x.reshape(1, 2, 4, 3)] * 3),
}


def flat(result):
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_operands_that_are_written_afterwards(name):
    """By themselves, through a view and through another alias; a result that was written stays so."""

    @close_on_both
    def program(d):
        x = (numbers(d, 4, 6) * 7 % 11) / 4
        first = flat(FUNCTIONS[name](x))
        x[1:3].mul_(-0.5).add_(first[0].sum())
        second = flat(FUNCTIONS[name](x.detach().abs()))
        x.data.neg_()
        third = flat(FUNCTIONS[name](x))
        first[0].add_(1)
        return (*third, *second, *first, x)

    program()


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"argmax"}))
def test_gradients_of_operands_that_were_written_in_between(name):
    @close_on_both
    def program(d):
        leaf = ((numbers(d, 4, 6) * 7 % 11) / 16 + 0.125).requires_grad_()
        x = leaf * 2
        y = flat(FUNCTIONS[name](x))[0]
        z = flat(FUNCTIONS[name](leaf.clone().mul_(3)[:, :]))[0]
        with torch.no_grad():
            unseen = flat(FUNCTIONS[name](leaf))[0].sum()
        (y.sum() * 0.5 + (z * z).sum() + unseen).backward()
        return leaf.grad

    program()


def test_statistics_are_those_of_the_calls_before_a_write():
    @close_on_both
    def program(d):
        norm = torch.nn.BatchNorm1d(6).to(d)
        x = (numbers(d, 4, 6) * 7 % 11) / 4
        before = norm.running_mean.view(2, 3)
        y = norm(x)
        seen = norm.running_mean.clone()
        x.mul_(2)
        z = norm(x)
        norm.running_var.mul_(2)
        return y.detach(), z.detach(), seen, before, norm.running_mean, norm.running_var

    program()
