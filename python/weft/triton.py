"""weft.triton: kernels as functions of Triton, in its interpreter or on a GPU.

A kernel of Tensor.schedule(), or one built with weft.ir, becomes the text of a Python module, which can be
run on arrays and compiled ahead of time. Needs PyPI's triton and torch. Triton's own switch chooses where it runs:
TRITON_INTERPRET=1, set before Triton is imported, is its interpreter on the CPU.

>>> from weft import Tensor, triton
>>> kernel = triton.Kernel((Tensor([1.0, 2.0, 3.0]) * 2).schedule()[0])
>>> print(kernel.source.splitlines()[4])
@triton.jit
"""

from __future__ import annotations

import importlib
import itertools
import linecache
from collections.abc import Mapping
from typing import Any

import numpy as np

from weft._arrays import Array, numpy_dtype
from weft._core import DType, Ops, ScheduledKernel, UOp, lower, parse, render
from weft.errors import DTypeError

_POINTERS = {"bool": "u8", "float16": "u16", "bfloat16": "u16", "float8_e4m3": "u8", "float8_e5m2": "u8",
             "float32": "fp32", "float64": "fp64"}
_count = itertools.count()


def _element(dtype: DType) -> str:
    """Triton's name of what lies in memory."""
    name = dtype.element.name
    return _POINTERS.get(name) or name.replace("uint", "u").replace("int", "i")


class Kernel:
    """A kernel as a function of Triton, one program of which is a workgroup.

    `kernel` is a ScheduledKernel, or a SINK of weft.ir; the optimisations are those given, or those that weft chooses.

    >>> from weft.ir import UOp, dtypes
    >>> i = UOp.range(100, 0)
    >>> x, y = (UOp.define_global(dtypes.float32, 100, n) for n in range(2))
    >>> twice = Kernel(UOp.sink(y.index(i).assign(x.index(i).load() * 2).end(i)), opts="")
    >>> print(twice.source.splitlines()[5])
    def kernel(data0, data1):
    """

    def __init__(self, kernel: ScheduledKernel | UOp, opts: str | None = None) -> None:
        graph = parse(kernel.graph) if isinstance(kernel, ScheduledKernel) else kernel
        self.program: UOp = graph if graph.op is Ops.LINEAR else lower(graph, opts, "TRITON")
        self.source: str = render(self.program, "triton", "kernel")
        listed = {n for u in self.program.src for n in (u, *u.src)}
        self._memory = sorted(((n.arg, n.dtype.pointee if n.dtype.is_pointer else n.dtype)
                               for n in listed if n.op is Ops.DEFINE_GLOBAL), key=lambda pair: pair[0])
        self._variables = sorted((n.arg, n.dtype) for n in listed if n.op is Ops.VARIABLE)
        self._sizes = {n.arg: n.src[0] for n in self.program.src if n.op is Ops.SPECIAL}
        self._function: Any = None

    def grid(self, variables: Mapping[str, int] | None = None) -> tuple[int, int, int]:
        """The number of workgroups in each dimension."""
        x, y, z = (self._size(f"gidx{k}", variables) for k in range(3))
        return x, y, z

    def run(self, memory: dict[int, Array], variables: Mapping[str, int] | None = None) -> None:
        """Runs it on arrays by the number of their argument, which it writes, as UOp.evaluate does."""
        torch = importlib.import_module("torch")
        interprets = bool(importlib.import_module("triton").knobs.runtime.interpret)
        tensors = []
        for number, dtype in self._memory:
            array = memory[number]
            if array.dtype != numpy_dtype(dtype):
                raise DTypeError(f"[triton] argument {number} has dtype {array.dtype}; {dtype.name} is needed, "
                                 f"which is NumPy's {numpy_dtype(dtype)}")
            held = array.view(f"u{array.dtype.itemsize}") if _element(dtype).startswith("u") else array
            tensors.append(torch.from_numpy(held).to("cpu" if interprets else "cuda"))
        numbers = [(variables or {})[name] for name, _ in self._variables]
        grid = self.grid(variables)
        if 0 in grid:
            return
        options = {} if interprets else {"num_warps": self.warps, "enable_fp_fusion": False}
        with np.errstate(all="ignore"):
            self.function[grid](*tensors, *numbers, **options)
        for (number, dtype), tensor in zip(self._memory, tensors):
            if not interprets:
                memory[number][...] = tensor.cpu().numpy(copy=False).view(numpy_dtype(dtype))

    def compile(self, machine: int = 90) -> Mapping[str, Any]:
        """The kernel compiled for sm_<machine>, which need not be there: its text in each of Triton's languages, its
        "ptx" among them, and its "cubin"."""
        triton = importlib.import_module("triton")
        compiler, backends = (importlib.import_module(f"triton.{name}") for name in ("compiler", "backends.compiler"))
        types = [f"*{_element(dtype)}" for _, dtype in self._memory] + [_element(dtype) for _, dtype in self._variables]
        source = compiler.ASTSource(fn=self.function, signature=dict(zip(self.function.arg_names, types)), constexprs={})
        compiled = triton.compile(source, target=backends.GPUTarget("cuda", machine, 32),
                                  options={"num_warps": self.warps, "enable_fp_fusion": False})
        return dict(compiled.asm)

    @property
    def warps(self) -> int:
        """Of 32 threads, in a workgroup."""
        threads = self._size("lidx0", None) * self._size("lidx1", None) * self._size("lidx2", None)
        return 1 << max(0, (threads - 1).bit_length() - 5)

    @property
    def function(self) -> Any:
        """What @triton.jit makes of the source."""
        if self._function is None:
            name = f"<weft.triton {next(_count)}>"
            lines = self.source.splitlines(keepends=True)
            linecache.cache[name] = (len(self.source), None, lines, name)  # where Triton reads the source
            scope: dict[str, Any] = {"__name__": name}
            exec(compile(self.source, name, "exec"), scope)
            self._function = scope["kernel"]
        return self._function

    def _size(self, special: str, variables: Mapping[str, int] | None) -> int:
        size = self._sizes.get(special)
        if size is None:
            return 1
        return int(size.arg) if size.op is Ops.CONST else int(size.evaluate({}, dict(variables or {})))
