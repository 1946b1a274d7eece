"""A target of a user: kernels of weft as Python source, one line per node, run on NumPy arrays."""

import math
from typing import Any

import numpy

from weft import Tensor
from weft.ir import Ops, UOp, lower, make_schedule

BINARY = {Ops.ADD: "{} + {}", Ops.SUB: "{} - {}", Ops.MUL: "{} * {}", Ops.FDIV: "{} / {}", Ops.MAX: "max({}, {})",
          Ops.CMPLT: "{} < {}", Ops.IDIV: "{} // {}", Ops.MOD: "{} % {}", Ops.AND: "{} & {}", Ops.SHL: "{} << {}",
          Ops.WHERE: "({1} if {0} else {2})", Ops.SQRT: "math.sqrt({})", Ops.NEG: "-{}", Ops.MULACC: "{} * {} + {}"}


def render(linear: UOp) -> str:
    """The program, a list of nodes in the order in which they run, as the text of a function."""
    lines, depth = ["def kernel(buffers):"], 1
    names: dict[UOp, str] = {}

    def line(text: str) -> None:
        lines.append("    " * depth + text)

    def name(node: UOp) -> str:
        return repr(node.arg) if node.op is Ops.CONST else names[node]

    for number, node in enumerate(linear.src):
        own, srcs = f"v{number}", node.src
        names[node] = own
        if node.op is Ops.DEFINE_GLOBAL:
            line(f"{own} = buffers[{node.arg}]")
        elif node.op is Ops.RANGE:
            line(f"for {own} in range({name(srcs[0])}):")
            depth += 1
        elif node.op is Ops.END:
            depth -= len(srcs) - 1
        elif node.op is Ops.INDEX:
            names[node] = f"{name(srcs[0])}[{name(srcs[1])}]"
        elif node.op is Ops.LOAD:
            line(f"{own} = {name(srcs[0])}")
        elif node.op is Ops.STORE:  # to memory, or to a register
            line(f"{name(srcs[0])} = {name(srcs[1])}")
            names[node] = name(srcs[0])
        elif node.op is Ops.AFTER:  # the same place, later
            names[node] = name(srcs[0])
        elif node.op is Ops.CAST:
            line(f"{own} = {'float' if node.dtype.name.startswith('float') else 'int'}({name(srcs[0])})")
        elif node.op in BINARY:
            line(f"{own} = {BINARY[node.op].format(*map(name, srcs))}")
        elif node.op not in (Ops.CONST, Ops.DEFINE_REG, Ops.SINK):
            raise NotImplementedError(f"{node.op.name} has no text")
    return "\n".join(lines)


def run(tensor: Tensor, inputs: list[numpy.ndarray]) -> numpy.ndarray:
    """The values of a tensor, by kernels in Python; inputs are its BUFFERs by number."""
    schedule = make_schedule(UOp.sink(tensor.uop), target="C")
    rest = iter(inputs)
    memory = [next(rest) if b.kind == "input" else numpy.zeros(b.size, b.dtype.name) for b in schedule.buffers]
    for call in schedule.calls:
        scope: dict[str, Any] = {"math": math}
        exec(render(lower(schedule.kernels[call.kernel], "", target="C")), scope)
        scope["kernel"]([memory[i] for i in call.arguments])
    return memory[schedule.outputs[0]].reshape(tensor.shape)


if __name__ == "__main__":
    x = numpy.linspace(-1, 1, 24, dtype=numpy.float32).reshape(4, 6)
    y = Tensor(x).realize()
    print(run((y * y).sum(axis=1).sqrt(), [x.ravel()]), (x * x).sum(axis=1) ** 0.5)
