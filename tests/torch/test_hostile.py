"""Arguments that an operator does not take raise as on the CPU: a slice of hostile.py, which must not crash, and calls."""

import os
import pathlib
import subprocess
import sys

import pytest
import torch
from on_both_devices import DEVICES

RUNNER = pathlib.Path(__file__).with_name("hostile.py")


def test_random_and_hostile_calls_end_no_process():
    run = subprocess.run([sys.executable, RUNNER, "--calls=600", "--seed=17", "--crashes-only"], capture_output=True, text=True,
                         env={**os.environ, "WEFT_DEVICE": "REF"}, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr


def ones(*shape: int, **options) -> torch.Tensor:
    return torch.ones(shape, **options)


REFUSED = {
    "glu_backward of a gradient and a tensor without axes": lambda d: torch.ops.aten.glu_backward(
        ones(4, 3, device=d), torch.tensor(1., device=d), 0),
    "glu_backward along an axis that is not there": lambda d: torch.ops.aten.glu_backward(
        ones(1, device=d), ones(2, device=d), 2**31),
    "glu_backward into an output": lambda d: torch.ops.aten.glu_backward.grad_input(
        ones(1, device=d), ones(device=d), 0, grad_input=ones(0, device=d)),
    "glu_backward of halves of another size": lambda d: torch.ops.aten.glu_backward(ones(3, device=d), ones(4, device=d), 0),
    "native_layer_norm_backward over more axes than there are": lambda d: torch.ops.aten.native_layer_norm_backward(
        ones(2, 3, device=d), ones(2, 3, device=d), [4, 2, 3], ones(1, device=d), ones(1, device=d), None, None, [True] * 3),
    "slice_backward with a step back": lambda d: torch.ops.aten.slice_backward(ones(4, device=d), [5], 0, 1, 5, -1),
    "select_backward of an index that is not there": lambda d: torch.ops.aten.select_backward(ones(device=d), [5], 0, 7),
    "unfold_backward along an axis that is not there": lambda d: torch.ops.aten.unfold_backward(
        ones(2, 2, device=d), [4], 3, 2, 2),
    "replication_pad2d_backward of another size": lambda d: torch.ops.aten.replication_pad2d_backward(
        ones(1, 3, 3, device=d), ones(1, 3, 3, device=d), [1, 1, 1, 1]),
    "reflection_pad2d_backward without axes": lambda d: torch.ops.aten.reflection_pad2d_backward(
        ones(0, device=d), ones(0, device=d), [1, 1, 1, 1]),
    "a slope that the dtype does not hold": lambda d: torch.nn.functional.leaky_relu(ones(2, device=d), 1e308),
    "a bound that the dtype does not hold": lambda d: ones(2, device=d).clamp(max=1e308),
    "addmm with a factor that the dtype does not hold": lambda d: torch.addmm(
        ones(2, 2, device=d), ones(2, 2, device=d), ones(2, 2, device=d), alpha=1e308),
    "a shift of floats": lambda d: ones(2, device=d) << 1,
    "gelu by a formula that is not known": lambda d: torch.ops.aten.gelu_backward(ones(2, device=d), ones(2, device=d),
                                                                                 approximate="nonsense"),
    "prelu with slopes of another dtype": lambda d: torch.ops.aten._prelu_kernel(ones(2, device=d), ones(2).double().to(d)),
    "distances in a mode that is not known": lambda d: torch.ops.aten._cdist_forward(
        ones(2, 2, device=d), ones(2, 2, device=d), 2.0, 7),
    "a scale of two numbers": lambda d: torch.ops.aten._amp_foreach_non_finite_check_and_unscale_(
        [ones(2, device=d)], ones(2, device=d), ones(2, device=d)),
    "a formula that is not known, of no elements": lambda d: torch.ops.aten.gelu_backward(
        ones(0, device=d), ones(0, device=d), approximate="nonsense"),
    "an activation of integers, of no elements": lambda d: torch.nn.functional.mish(ones(0, dtype=torch.int64, device=d)),
    "a factor that the dtype does not hold, of no elements": lambda d: ones(0, device=d).sub_(1, alpha=1e308),
    "a shift of floats, of no elements": lambda d: ones(2, 0, device=d) << torch.tensor(1, device=d),
    "a number that the dtype does not hold, of no elements": lambda d: torch.empty(0, dtype=torch.uint8, device=d).fill_(-1.5),
    "a bound of logit that the dtype does not hold": lambda d: torch.logit(ones(2, device=d), 1e308),
    "powers to a number that the dtype does not hold": lambda d: torch.logspace(0, 1e308, 2, device=d),
    "a loss with weights of another dtype": lambda d: torch.nn.functional.nll_loss(
        ones(2, 3, device=d).half(), torch.tensor([0, 1], device=d), ones(3, device=d)),
    "distances' gradient of another dtype": lambda d: torch.ops.aten._pdist_backward(
        ones(1, device=d), ones(2, 2, device=d), 2.0, ones(1, device=d).double()),
    "padding's gradient of another dtype": lambda d: torch.ops.aten.replication_pad2d_backward(
        ones(1, 3, 5, device=d), ones(1, 3, 3, device=d).half(), [0, 2, 0, 0]),
    "windows a step back": lambda d: torch.ops.aten.unfold_backward(ones(4, device=d), [0], -1, 2, -6),
    "slopes between bounds without end": lambda d: torch.ops.aten.rrelu_with_noise(
        -ones(3, device=d), ones(3, device=d), 0.0, float("inf"), True),
    "noise of another dtype": lambda d: torch.ops.aten.rrelu_with_noise(
        ones(3, device=d), ones(3, device=d).half(), 0.0, 1.0, True),
    "a histogram of integers": lambda d: torch.histc(ones(3, dtype=torch.int16, device=d), 2),
    "normal numbers around integers": lambda d: torch.normal(ones(3, dtype=torch.int64, device=d), 1.0),
    "one running statistic alone": lambda d: torch.ops.aten.native_batch_norm(
        ones(2, 3, device=d), None, None, ones(3, device=d), None, True, 0.1, 1e-5),
    "a bias of groups that is a matrix": lambda d: torch.ops.aten.native_group_norm(
        ones(1, 3, device=d), None, ones(3, 1, device=d), 1, 3, 1, 3, 1e-5),
    "a mean of bags with weights": lambda d: torch.ops.aten._embedding_bag_forward_only(
        ones(3, 2, device=d), torch.tensor([0, 1], device=d), torch.tensor([0], device=d), False, 1, False, ones(2, device=d)),
    "pooling's gradient of another dtype": lambda d: torch.ops.aten._adaptive_avg_pool3d_backward(
        ones(1, 1, 1, 1, 1, device=d).double(), ones(1, 1, 2, 2, 2, device=d)),
    "noise of another shape that is not drawn": lambda d: torch.ops.aten.rrelu_with_noise(
        ones(3, device=d), ones(2, device=d), 0.0, 1.0, False),
    "dropout more often than always": lambda d: torch.ops.aten.native_dropout(ones(2, device=d), 1.5, True),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_cpu_refuses_is_refused(name):
    for device in DEVICES:
        with pytest.raises((RuntimeError, IndexError, ValueError)):
            REFUSED[name](device)


# What PyTorch's CPU has no operator for, or ends the process on.
REFUSED_HERE = {
    "batch_norm_backward without statistics": lambda: torch.ops.aten.native_batch_norm_backward(
        *[ones(2, 3, 4, device="weft")] * 2, None, None, None, None, None, False, 1e-5, [True, True, True]),
    "batch_norm_backward in training without them": lambda: torch.ops.aten.native_batch_norm_backward(
        *[ones(2, 3, 4, device="weft")] * 2, None, None, None, None, None, True, 1e-5, [True, True, True]),
    "an LSTM's cell with gates that do not fit": lambda: torch.ops.aten._thnn_fused_lstm_cell(
        ones(1, 3, device="weft"), ones(1, 3, device="weft"), ones(1, 3, device="weft")),
    "its gradient": lambda: torch.ops.aten._thnn_fused_lstm_cell_backward_impl(
        ones(2, 3, device="weft"), None, ones(2, 3, device="weft"), ones(2, 3, device="weft"), ones(2, 3, device="weft"), True),
    "a GRU's cell with gates of one axis": lambda: torch.ops.aten._thnn_fused_gru_cell(
        ones(1, device="weft"), ones(1, 2, device="weft"), ones(1, 2, device="weft")),
    "its gradient of another size": lambda: torch.ops.aten._thnn_fused_gru_cell_backward(
        ones(2, 4, device="weft"), ones(2, 4, device="weft"), True),
    "a gradient of root mean squares over axes that are not there": lambda: torch.ops.aten._fused_rms_norm_backward(
        ones(2, device="weft"), ones(device="weft"), [1, 0], ones(device="weft"), None, [True, True]),
    "derivatives without end": lambda: torch.ops.aten.polygamma(2**40, ones(2, device="weft")),
    "no heads": lambda: torch.ops.aten._transformer_encoder_layer_fwd(
        ones(1, 2, 0, device="weft"), 0, 0, *[ones(0, device="weft")] * 4, False, False, 1e-5,
        *[ones(0, device="weft")] * 8),
}


@pytest.mark.parametrize("name", REFUSED_HERE)
def test_what_cannot_be_is_refused(name):
    with pytest.raises((RuntimeError, ValueError)):
        REFUSED_HERE[name]()


@pytest.mark.parametrize("device", DEVICES)
def test_a_width_that_is_no_number_holds_nothing(device):
    x = torch.arange(-3.0, 4.0, device=device)
    assert torch.nn.functional.hardshrink(x, float("nan")).tolist() == x.tolist()
    assert torch.ops.aten.hardshrink_backward(x, x, float("nan")).tolist() == x.tolist()


@pytest.mark.parametrize("device", DEVICES)
def test_whether_a_number_is_in_a_tensor_is_one_answer(device):
    assert [torch.isin(1, ones(3, device=device)).item(), torch.isin(2, ones(3, device=device)).item()] == [True, False]
