"""Activations: the table of tests/python/op_table.py."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F

from op_table import FLOATS, Op

WIDE = (-8.0, 8.0)
AXES = ((1,), (7,), (3, 5), (2, 3, 4))

OPS = [
    Op("relu", lambda x: x.relu(), F.relu, domain=WIDE, grad=True, dtypes=(*FLOATS, "int32"), special=True, signs=False),
    Op("relu6", lambda x: x.relu6(), F.relu6, domain=WIDE, grad=True, special=True, signs=False),
    Op("leaky_relu", lambda x: x.leaky_relu(), F.leaky_relu, grad=True, special=True),
    Op("leaky_relu_0.2", lambda x: x.leaky_relu(0.2), partial(F.leaky_relu, negative_slope=0.2), grad=True),
    Op("elu", lambda x: x.elu(), F.elu, grad=True, special=True),
    Op("elu_0.5", lambda x: x.elu(alpha=0.5), partial(F.elu, alpha=0.5), grad=True),
    Op("celu", lambda x: x.celu(2.0), partial(F.celu, alpha=2.0), grad=True, special=True),
    Op("selu", lambda x: x.selu(1.6732632423543772, 1.0507009873554805), F.selu, grad=True, special=True),
    Op("selu_rounded", lambda x: x.selu(), F.selu, tolerance=(2e-2, 1e-5)),
    Op("gelu", lambda x: x.gelu(), partial(F.gelu, approximate="tanh"), domain=WIDE, grad=True),
    Op("gelu_erf", lambda x: x.gelu("none"), F.gelu, domain=WIDE, grad=True, dtypes=("float32", "float64")),
    Op("quick_gelu", lambda x: x.quick_gelu(), lambda x: x * torch.sigmoid(1.702 * x), domain=WIDE, grad=True,
       dtypes=("float32", "float64")),
    Op("silu", lambda x: x.silu(), F.silu, domain=WIDE, grad=True, special=True, signs=False),
    Op("swish", lambda x: x.swish(), F.silu, domain=WIDE, grad=True),
    Op("mish", lambda x: x.mish(), F.mish, domain=WIDE, grad=True),
    Op("sigmoid", lambda x: x.sigmoid(), torch.sigmoid, domain=WIDE, grad=True, dtypes=(*FLOATS, "int32"),
       special=True),
    Op("logsigmoid", lambda x: x.logsigmoid(), F.logsigmoid, domain=WIDE, grad=True, special=True, signs=False),
    Op("softplus", lambda x: x.softplus(), F.softplus, domain=WIDE, grad=True, special=True),
    Op("softplus_3", lambda x: x.softplus(beta=3.0), partial(F.softplus, beta=3.0), domain=(-6.0, 6.0), grad=True),
    Op("softsign", lambda x: x.softsign(), F.softsign, grad=True, special=True),
    Op("hardsigmoid", lambda x: x.hardsigmoid(), F.hardsigmoid, domain=WIDE, grad=True, special=True, signs=False),
    Op("hardswish", lambda x: x.hardswish(), F.hardswish, domain=WIDE, grad=True),
    Op("hardtanh", lambda x: x.hardtanh(), F.hardtanh, grad=True, special=True),
    Op("hardtanh_2", lambda x: x.hardtanh(-2, 0.5), partial(F.hardtanh, min_val=-2, max_val=0.5), grad=True),
    Op("softmax", lambda x: x.softmax(), partial(torch.softmax, dim=-1), AXES, domain=WIDE, grad=True, special=True),
    Op("softmax_0", lambda x: x.softmax(0), partial(torch.softmax, dim=0), ((), *AXES), grad=True),
    Op("softmax_double", lambda x: x.softmax(0, dtype="float64"), lambda x: torch.softmax(x, 0, torch.float64), AXES,
       dtypes=("float32", "int32")),
    Op("softmin", lambda x: x.softmin(), lambda x: F.softmin(x, dim=-1), AXES, grad=True),
    Op("log_softmax", lambda x: x.log_softmax(), partial(torch.log_softmax, dim=-1), AXES, domain=WIDE, grad=True,
       special=True),
    Op("log_softmax_0", lambda x: x.log_softmax(axis=0), partial(torch.log_softmax, dim=0), ((), *AXES), grad=True),
    Op("softmax_empty", lambda x: x.softmax(1), partial(torch.softmax, dim=1), ((3, 0), (0, 3))),
    Op("layernorm", lambda x: x.layernorm(), lambda x: F.layer_norm(x, x.shape[-1:]), AXES[2:], grad=True,
       tolerance=(2e-2, 1e-2)),
    Op("layernorm_32", lambda x: x.layernorm(eps=1e-3), lambda x: F.layer_norm(x, x.shape[-1:], eps=1e-3), AXES[2:],
       grad=True, dtypes=("float32", "float64")),
    Op("layernorm_axes", lambda x: x.layernorm(axis=(-1, -2)), lambda x: F.layer_norm(x, x.shape[-2:]), AXES[2:],
       grad=True, dtypes=("float32", "float64")),
    Op("normalize", lambda x: x.normalize(), F.normalize, AXES[2:], grad=True),
    Op("normalize_1", lambda x: x.normalize(p=1.0, dim=0), partial(F.normalize, p=1.0, dim=0), AXES, grad=True,
       domain=(0.1, 3.0)),
    Op("normalize_3", lambda x: x.normalize(p=3.0, dim=-1), partial(F.normalize, p=3.0, dim=-1), AXES, grad=True,
       domain=(0.1, 3.0), dtypes=("float32", "float64")),
    Op("normalize_inf", lambda x: x.normalize(p=float("inf")), partial(F.normalize, p=float("inf")), AXES[2:],
       grad=True),
]
