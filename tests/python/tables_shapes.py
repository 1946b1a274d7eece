"""Operations that arrange, multiply and slide over tensors, and what they are in PyTorch."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
import torch.nn.functional as F

from op_table import Op
from weft import Tensor

ANY = ("float32", "int8", "bool")
REAL = ("float32", "float64")
PLANES = ((2, 3, 9, 8), (1, 1, 4, 5), (3, 7, 6))
SUMS = (2e-5, 1e-5)


def op(name: str, weft: Any, theirs: Any, shapes: Any, **more: Any) -> Op:
    return Op(name, weft, theirs, shapes, **{"dtypes": REAL, "grad": True, **more})


def method(name: str, *args: Any, torch_name: str = "", shapes: Any, **more: Any) -> Op:
    text = f"{name}{args if args else ''}".replace(" ", "")
    return op(text, lambda x: getattr(x, name)(*args), lambda x: getattr(x, torch_name or name)(*args), shapes,
              **{"dtypes": ANY, **more})


def reduced_qr(x: torch.Tensor) -> Any:
    return torch.linalg.qr(x, "reduced")


# ------------------------------------------------------------------------------------ arrangements

MATRICES = ((3, 5), (1, 1), (2, 4, 3), (5, 2), (0, 3))

ARRANGEMENTS = [
    *[method("tril", d, shapes=MATRICES) for d in (0, -1, 2, 100)],
    *[method("triu", d, shapes=MATRICES) for d in (0, -1, 2, -100)],
    *[method("diag", d, shapes=((4,), (0,), (3, 5))) for d in (0, 1, -2)],
    method("split", 2, shapes=((5,), (4, 3), (1, 2))),
    method("split", [1, 3], 1, shapes=((2, 4), (0, 4, 2))),
    method("split", 3, -1, shapes=((2, 7), (3, 0))),
    *[method("chunk", n, 0, shapes=((5,), (6, 2), (1,), (0, 3))) for n in (1, 2, 3, 7)],
    method("repeat", 2, 3, shapes=((2,), (3, 2), (1, 0))),
    method("repeat", 0, 2, 1, shapes=((2, 3),)),
    method("repeat_interleave", 3, shapes=((2,), (2, 3), ())),
    method("repeat_interleave", 2, 1, shapes=((2, 3), (1, 1, 4))),
    method("unflatten", 1, (2, -1), shapes=((3, 6), (1, 4, 2))),
    method("unflatten", -1, (3, 1), shapes=((3,), (2, 3))),
    method("movedim", 0, -1, shapes=((2, 3, 4), (5,))),
    method("movedim", (0, 1), (2, 0), shapes=((2, 3, 4),)),
    method("swapaxes", 0, -1, shapes=((2, 3, 4), (5,))),
    method("t", shapes=((3,), (2, 3), ())),
    op("stack", lambda x, y: x.stack(y, dim=1), lambda x, y: torch.stack([x, y], 1), (((2, 3), (2, 3)), ((1,), (1,)))),
    op("meshgrid", lambda x, y: x.meshgrid(y), lambda x, y: torch.meshgrid(x, y, indexing="ij"),
       (((3,), (4,)), ((), (2,)))),
    op("meshgrid_xy", lambda x, y: x.meshgrid(y, indexing="xy"), lambda x, y: torch.meshgrid(x, y, indexing="xy"),
       (((3,), (4,)),)),
    op("rearrange", lambda x: x.rearrange("a (b c) d -> (d a) c b", b=2),
       lambda x: x.reshape(x.shape[0], 2, -1, x.shape[2]).permute(3, 0, 2, 1).reshape(-1, x.shape[1] // 2, 2),
       ((3, 4, 5), (1, 2, 1))),
    op("rearrange_ellipsis", lambda x: x.rearrange("a ... b -> b 1 (... a)"),
       lambda x: x.movedim(-1, 0).movedim(1, -1).reshape(x.shape[-1], 1, -1), ((2, 3, 4, 5), (2, 3))),
    *[op(f"pad_{mode}", lambda x, mode=mode: x.pad((2, 1, 0, 3), mode),
         lambda x, mode=mode: F.pad(x, (2, 1, 0, 3), mode), ((1, 2, 4, 5), (2, 4, 3), (0, 2, 4, 3))) for mode in
      ("constant", "reflect", "replicate", "circular")],
    op("pad_pairs", lambda x: x.pad(((1, 0), None, (-1, 2)), value=7), lambda x: F.pad(x, (-1, 2, 0, 0, 1, 0), value=7),
       ((2, 3, 4),), dtypes=("float32", "int32")),
    op("pad_to", lambda x: x.pad_to(None, 6), lambda x: F.pad(x, (0, 6 - x.shape[1])), ((2, 3), (3, 6))),
    op("shrink_to", lambda x: x.shrink_to(2, None), lambda x: x[:2], ((2, 3), (3, 6))),
]

# ---------------------------------------------------------------------------------------- products

FORMULAS = (
    ("ij,jk->ik", ((3, 4), (4, 5))), ("ij,jk", ((3, 1), (1, 5))), ("ii->i", ((4, 4),)), ("ii", ((4, 4),)),
    ("ij->ji", ((3, 4),)), ("ba", ((3, 4),)), ("...ij,...jk->...ik", ((2, 3, 4), (2, 4, 5))),
    ("...ij,...jk->...ik", ((6, 2, 3, 4), (2, 4, 5))), ("b...i,ji->b...j", ((2, 3, 5, 4), (6, 4))),
    ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 5))), ("i,j->ij", ((2,), (3,))), ("iij,jk->ik", ((3, 3, 4), (4, 2))),
    ("ij,kl->", ((2, 3), (4, 5))), ("i...->...", ((2, 3, 4),)), ("iji->j", ((2, 3, 2),)),
    ("abc,bd->acd", ((2, 3, 4), (3, 5))),
    ("ij,ij->ij", ((3, 4), (3, 4))), (" i j , j -> i ", ((3, 4), (4,))), ("iijj->ij", ((2, 2, 3, 3),)),
    (",i->i", ((), (3,))),
)

PRODUCTS = [
    *[op(f"einsum:{formula}:{i}", lambda *x, f=formula: Tensor.einsum(f, *x), lambda *x, f=formula: torch.einsum(f, *x),
         (shapes,), tolerance=SUMS) for i, (formula, shapes) in enumerate(FORMULAS)],
    op("linear", lambda x, w, b: x.linear(w, b), lambda x, w, b: F.linear(x, w.T, b),
       (((2, 3), (3, 4), (4,)), ((2, 5, 3), (3, 1), (1,))), tolerance=SUMS),
    op("linear_vector", lambda x, w: x.linear(w), lambda x, w: x * w, (((2, 3), (3,)),)),
    op("batchnorm", lambda x, w, b, m, s: x.batchnorm(w, b, m, s),
       lambda x, w, b, m, s: (x - m.view(-1, 1, 1)) * s.view(-1, 1, 1) * w.view(-1, 1, 1) + b.view(-1, 1, 1),
       (((2, 3, 4, 5), (3,), (3,), (3,), (3,)),), tolerance=SUMS),
]


def attention(name: str, shapes: Any, **options: Any) -> Op:
    return op(name, lambda q, k, v: q.scaled_dot_product_attention(k, v, **options),
              lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options), (shapes,), tolerance=SUMS)


ATTENTION = [
    attention("attention", ((2, 4, 5, 8), (2, 4, 7, 8), (2, 4, 7, 6))),
    attention("attention_of_nothing", ((2, 5, 4), (2, 0, 4), (2, 0, 3))),
    attention("attention_2d", ((5, 8), (7, 8), (7, 6))),
    attention("attention_causal", ((1, 2, 5, 4), (1, 2, 7, 4), (1, 2, 7, 4)), is_causal=True),
    attention("attention_gqa", ((2, 6, 5, 4), (2, 3, 7, 4), (2, 3, 7, 4)), enable_gqa=True),
    op("attention_bias", lambda q, k, v, m: q.scaled_dot_product_attention(k, v, m),
       lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m),
       (((2, 3, 5, 4), (2, 3, 6, 4), (2, 3, 6, 4), (5, 6)),), tolerance=SUMS),
    op("attention_mask", lambda q, k, v, m: q.scaled_dot_product_attention(k, v, m.tril() > 0),
       lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m.tril() > 0),
       (((2, 3, 5, 4), (2, 3, 6, 4), (2, 3, 6, 4), (5, 6)),), tolerance=SUMS,
       domain=((-3, 3), (-3, 3), (-3, 3), (-1, 1))),
]

# ----------------------------------------------------------------------------------------- windows

POOLS: tuple[dict[str, Any], ...] = (
    {"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": (3, 2), "stride": (2, 3), "padding": (1, 1), "ceil_mode": True},
    {"kernel_size": 3, "stride": 2, "ceil_mode": True},
    {"kernel_size": 2, "stride": 3, "padding": 1, "ceil_mode": True},
)


def pool(name: str, options: dict[str, Any], **more: Any) -> Op:
    text = ",".join(f"{key}={value}" for key, value in options.items()).replace(" ", "")
    return op(f"{name}:{text}", lambda x: getattr(x, name)(**options), lambda x: getattr(F, name)(x, **options), PLANES,
              **more)


def conv(name: str, shapes: Any, theirs: Any, **options: Any) -> Op:
    text = ",".join(f"{key}={value}" for key, value in options.items()).replace(" ", "")
    return op(f"{name}:{len(shapes[0]) - 2}d:{text}", lambda x, *w: getattr(x, name)(*w, **options),
              lambda x, *w: theirs(x, *w, **options), (shapes,), tolerance=(1e-4, 2e-5))


IMAGE = (2, 4, 7, 6)
NOTHING = (0, 4, 7, 6)
WINDOWS = [
    *[pool("avg_pool2d", options, tolerance=SUMS) for options in POOLS],
    *[pool("avg_pool2d", {**options, "count_include_pad": False}, tolerance=SUMS) for options in POOLS],
    *[pool("max_pool2d", options, distinct=True) for options in POOLS],
    *[pool("max_pool2d", {**options, "return_indices": True}, distinct=True, grad=False) for options in POOLS],
    pool("max_pool2d", {"kernel_size": 2, "stride": 1, "dilation": 2}, distinct=True),
    op("max_pool_1d", lambda x: x.max_pool2d((3,), 2), lambda x: F.max_pool1d(x, 3, 2), ((2, 3, 8), (2, 5)),
       distinct=True),
    op("avg_pool_3d", lambda x: x.avg_pool2d((2, 3, 2), 1), lambda x: F.avg_pool3d(x, (2, 3, 2), 1),
       ((1, 2, 4, 4, 3),)),
    op("max_pool_ints", lambda x: x.max_pool2d(2, padding=1),
       lambda x: F.max_pool2d(x.double(), 2, padding=1).to(x.dtype),
       ((1, 2, 4, 3),), dtypes=("int32", "uint8"), grad=False),
    conv("conv2d", (IMAGE, (6, 4, 3, 3), (6,)), F.conv2d, padding=1),
    conv("conv2d", (NOTHING, (6, 4, 3, 3), (6,)), F.conv2d, groups=1),
    conv("conv2d", (IMAGE, (6, 4, 3, 2)), F.conv2d, stride=(2, 1), dilation=(1, 2)),
    conv("conv2d", (IMAGE, (6, 2, 3, 3), (6,)), F.conv2d, groups=2, padding=(1, 2)),
    conv("conv2d", (IMAGE, (4, 1, 2, 2)), F.conv2d, groups=4),
    conv("conv2d", (IMAGE, (3, 4, 1, 1)), F.conv2d),
    conv("conv2d", ((2, 4, 9), (3, 4, 3), (3,)), F.conv1d, padding=2, stride=2),
    conv("conv2d", ((1, 2, 4, 3, 5), (3, 2, 2, 3, 2)), F.conv3d, padding=1),
    op("conv_asymmetric", lambda x, w: x.conv2d(w, padding=(1, 2, 0, 1)),
       lambda x, w: F.conv2d(F.pad(x, (1, 2, 0, 1)), w),
       ((IMAGE, (2, 4, 3, 3)),), tolerance=(1e-4, 2e-5)),
    conv("conv_transpose2d", (IMAGE, (4, 3, 3, 3), (3,)), F.conv_transpose2d),
    conv("conv_transpose2d", (IMAGE, (4, 3, 3, 2), (3,)), F.conv_transpose2d, stride=2, padding=1, output_padding=1),
    conv("conv_transpose2d", (IMAGE, (4, 2, 3, 3)), F.conv_transpose2d, groups=2, stride=(3, 2), dilation=2, padding=2),
    conv("conv_transpose2d", ((2, 3, 5), (3, 2, 4)), F.conv_transpose1d, stride=3),
    conv("conv_transpose2d", ((1, 2, 3, 2, 3), (2, 2, 2, 2, 2)), F.conv_transpose3d, stride=2),
]



def interpolation(mode: str, shape: Any, size: Any, align: bool = False) -> Op:
    axes = len(size)
    theirs = {"linear": ("linear", "bilinear", "trilinear")[axes - 1], "cubic": "bicubic"}.get(mode, mode)
    corners = align if mode in ("linear", "cubic") else None
    return op(f"interpolate:{mode}:{size}:{align}".replace(" ", ""), lambda x: x.interpolate(size, mode, align),
              lambda x: F.interpolate(x, size, mode=theirs, align_corners=corners), (shape,), tolerance=(1e-4, 2e-5))


INTERPOLATIONS = [
    *[interpolation("linear", (1, 2, 4, 5), size, align) for size in ((8, 10), (3, 7), (4, 5), (1, 1))
      for align in (False, True)],
    *[interpolation("cubic", (1, 2, 4, 5), size, align) for size in ((8, 10), (3, 7)) for align in (False, True)],
    *[interpolation(mode, shape, size) for mode in ("nearest", "nearest-exact")
      for shape, size in (((2, 3, 7), (5,)), ((1, 2, 4, 5), (9, 10)), ((1, 1, 2, 3, 4), (4, 2, 7)))],
    interpolation("linear", (2, 3, 7), (11,)), interpolation("linear", (1, 2, 2, 3, 4), (3, 2, 6)),
]

UNPOOLS = [
    op(f"max_unpool2d:{stride}:{size}", lambda x, s=stride, size=size: x.max_pool2d(2, s).max_unpool2d(
        x.max_pool2d(2, s, return_indices=True)[1], 2, s, output_size=size),
       lambda x, s=stride, size=size: F.max_unpool2d(
           *F.max_pool2d(x, 2, s, return_indices=True), 2, s, output_size=size),
       (shape,), distinct=True)
    for stride, size, shape in ((None, None, (1, 2, 6, 4)), (3, None, (2, 5, 8)), (None, (7, 5), (1, 1, 7, 5)))
]

DECOMPOSITIONS = [
    op("qr_r", lambda x: x.qr("reduced")[1], lambda x: reduced_qr(x)[1], ((4, 3), (3, 3), (2, 5, 2), (3, 5)),
       grad=False, tolerance=(1e-4, 1e-5)),
    op("qr_product", lambda x: x.qr()[0] @ x.qr()[1], lambda x: x * 1, ((4, 3), (2, 3, 3), (1, 4)), grad=True,
       tolerance=(1e-4, 1e-5)),
    op("svd_s", lambda x: x.svd()[1], torch.linalg.svdvals, ((3, 3), (4, 2), (2, 2, 3), (1, 1)), grad=True,
       tolerance=(1e-4, 1e-5)),
]

# In 16 bits, where the default dtypes above are of 32 and 64.
HALVES = [dataclasses.replace(entry, name=f"{entry.name}:16", dtypes=("float16", "bfloat16"), tolerance=None,
                              grad=False)
          for entry in [PRODUCTS[0], *PRODUCTS[-3:], *ATTENTION[:3], WINDOWS[1], WINDOWS[11], *WINDOWS[-11:-8]]]

OPS = [*ARRANGEMENTS, *PRODUCTS, *ATTENTION, *WINDOWS, *INTERPOLATIONS, *UNPOOLS, *DECOMPOSITIONS, *HALVES]
IN_LAYOUTS = [entry for entry in OPS[::2] if entry not in DECOMPOSITIONS + HALVES]
ON_THE_CPU = ARRANGEMENTS[::5] + PRODUCTS[::4] + WINDOWS[::4] + ATTENTION[::2]
