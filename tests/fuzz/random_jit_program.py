"""Random functions of tensors, and random programs that call them: with new inputs, views, the same
tensor twice, tensors that the function uses by name, results of earlier calls; that write between the
calls, keep results, and read lazily what a call overwrites. Many functions have variables, too, which
are bound to another value in each call.

Everything is of int32, so that no order of summation matters.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import weft
from weft import Tensor

SHAPES = [(4,), (4,), (6,), (2, 3), (2, 3), (3, 2), (1,), (2, 2, 2)]
REFUSALS = (weft.Error, TypeError, ValueError)


class Step(NamedTuple):
    where: str  # "setup", "body" or "run"
    text: str


Program = list[Step]


class Generator:
    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self.steps: Program = []
        self.count = 0

    def run(self) -> Program:
        r = self.random
        self.names: dict[str, Any] = {"Tensor": Tensor, "weft": weft}
        self.globals = [f"g{i}" for i in range(r.randint(0, 3))]
        for name in self.globals:
            self.add("setup", f"{name} = {self.data(r.choice(SHAPES))}")
        self.add("setup", f"k = {r.randint(1, 3)}")
        self.variables = [f"v{i}" for i in range(r.choice([0, 0, 0, 1, 2]))]
        for name in self.variables:
            self.add("setup", f"{name.upper()} = weft.Variable('{name}', 0, 6)")
        self.parameters = {f"p{i}": r.choice(SHAPES) for i in range(r.randint(1, 3))}
        self.body()
        self.live: list[str] = list(self.globals)
        for _ in range(r.choice([16, 24, 40] if self.variables else [6, 10, 16, 24])):
            self.driver_step()
        for name in r.sample(self.live, len(self.live)):
            self.steps.append(Step("run", f"n = {name}.tolist()"))
        return self.steps

    def add(self, where: str, text: str) -> bool:
        try:
            exec(text, self.names)
        except REFUSALS:
            return False
        self.steps.append(Step(where, text))
        return True

    def fresh(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def data(self, shape: tuple[int, ...]) -> str:
        n = 1
        for size in shape:
            n *= size
        values = [self.random.randint(-9, 9) for _ in range(n)]
        text = f"Tensor({values})"
        return text if len(shape) == 1 else f"{text}.reshape{shape}"

    # ---- the function

    def body(self) -> None:
        r = self.random
        outside = dict(self.names)
        for name, shape in self.parameters.items():
            self.names[name] = Tensor.zeros(*shape, dtype="int32")
        for name in self.variables:
            self.names[name] = r.randint(1, 3)
        pool = [*self.parameters, *self.globals]
        for _ in range(r.choice([1, 2, 3, 4, 6, 9])):
            for _ in range(10):
                text, made = self.statement(pool, "t")
                if self.add("body", text):
                    pool += [made] if made else []
                    break
        chosen = r.choices(pool, k=r.choice([0, 1, 1, 2, 2, 3]))
        texts = [f"{name}{self.slice(name)}" if r.random() < 0.2 else name for name in chosen]
        self.results = [eval(text, self.names).shape for text in texts]
        form = r.randint(0, 2)
        if form == 0:
            self.steps.append(Step("body", f"return [{', '.join(texts)}]"))
            self.place = "[{}]"
        elif form == 1:
            self.steps.append(Step("body", f"return {{'a': ({''.join(t + ', ' for t in texts)}), 'b': None}}"))
            self.place = "['a'][{}]"
        else:
            self.steps.append(Step("body", f"return (k, ({''.join(t + ', ' for t in texts)}))"))
            self.place = "[1][{}]"
        self.names = outside

    def slice(self, name: str) -> str:
        r = self.random
        shape = self.names[name].shape
        if not shape:
            return "[...]"
        n = shape[0]
        if any(name in self.names for name in self.variables) and r.random() < 0.6:
            text = self.slice_by_variable(n)
            try:
                eval(f"{name}{text}", self.names)
                return text
            except REFUSALS:
                pass
        if n == 0:
            return "[:]"
        start = r.randrange(n)
        return r.choice([f"[{start}]", f"[{start}:]", f"[:{start + 1}]", "[::-1]", "[::2]", f"[{start}:{min(n, start + 2)}]"])

    def number(self) -> str:
        """Of variables."""
        r = self.random
        v, w = r.choice(self.variables), r.choice(self.variables)
        return r.choice([v, v, v, f"{v} + 1", f"{v} - 1", f"{v} + {w}", f"{v} * 2", f"{v} // 2", f"{v} % 3",
                         f"min({v}, {w}, 2)", f"-{v}"])

    def slice_by_variable(self, n: int) -> str:
        r = self.random
        at, end = self.number(), self.number()
        return r.choice([f"[{at}]", f"[:{at}]", f"[:{at}]", f"[{at}:]", f"[{at}:{end}]", f"[{at}:{at} + 2]",
                         f"[:{at}:2]", f"[{at} if {end} < {n} else 0]"])

    def operand(self, pool: list[str], like: Any = None) -> str:
        r = self.random
        name = r.choice(pool)
        text = name + (self.slice(name) if r.random() < 0.3 else "")
        if like is None:
            return text
        fitting = [n for n in pool if self.names[n].shape == like] or [None]
        found = r.choice(fitting)
        return found if found is not None and r.random() < 0.8 else str(r.randint(-3, 3))

    def statement(self, pool: list[str], kind: str) -> tuple[str, str]:
        """A statement, and the name that it makes."""
        r = self.random
        a = r.choice(pool)
        shape = self.names[a].shape
        if r.random() < 0.45:
            part = a + (self.slice(a) if r.random() < 0.7 else "")
            like = eval(part, self.names).shape
            b = self.operand(pool, like)
            if part == a:
                return r.choice([f"{a}.assign({a} + {b})", f"{a}.assign({b} * 1 + {a} * 0)", f"{a} += {b}",
                                 f"{a}.assign({b} * k + {a} * 0)", f"{a}[...] = {b}"]), ""
            if r.random() < 0.3:
                return f"{part} += {b}", ""
            return f"{part} = {b}", ""
        made = self.fresh(kind)
        b = self.operand(pool, shape)
        choices = [f"{a} + {b}", f"{a} * {b}", f"{a} * k", f"{a}.sum()", f"{a}.max()", f"{a}{self.slice(a)}",
                   f"{a}{self.slice(a)}", f"{a}.reshape(-1)", f"{a}.flip(0)", f"{a}.clone()", f"{a} - {a}.max()",
                   f"({a} > {b}).where({a}, 0)", self.data(r.choice(SHAPES)),
                   f"{a}.T" if len(shape) == 2 else f"{a} + 1", f"{a}.sum(0)", f"{a}.contiguous()",
                   f"Tensor.zeros(*{tuple(shape)}, dtype='int32')", f"{a} + (1 if k > 2 else 2)"]
        if any(name in self.names for name in self.variables):
            n = self.number()
            choices += [f"{a} * ({n})", f"{a} + (1 if {n} > 2 else 2)", f"Tensor.zeros({n}, dtype='int32')",
                        f"Tensor.arange({n})", f"{a}.sum() + ({n})", f"{a} * {a}.numel()", f"{a}.cumsum(0)",
                        f"{a}.reshape(1, -1).expand(abs({n}) + 1, {a}.numel())", f"{a}.sort()[0]",
                        f"Tensor.cat({a}, {a}{self.slice(a)})", f"{a}.mean().cast('int32')",
                        f"{a}[Tensor.arange({n}) % max({a}.shape[0], 1)]" if shape else f"{a} * ({n})"]
        return f"{made} = {r.choice(choices)}", made

    # ---- the program around it

    def argument(self, shape: tuple[int, ...]) -> str:
        r = self.random
        fitting = [n for n in self.live if self.names[n].shape == shape]
        if fitting and r.random() < 0.5:
            return r.choice(fitting)
        n = 1
        for size in shape:
            n *= size
        larger = [m for m in self.live if self.names[m].numel() > n and self.names[m].ndim == 1]
        if larger and r.random() < 0.6:
            name = r.choice(larger)
            start = r.randint(0, self.names[name].numel() - n)
            text = f"{name}[{start}:{start + n}]"
            return text if len(shape) == 1 else f"{text}.reshape{shape}"
        return self.data(shape)

    def driver_step(self) -> None:
        r = self.random
        kind = r.choices(["call", "make", "statement", "read", "realize", "delete", "number", "rebind", "twice"],
                         [90 if self.variables else 50, 8, 18, 8, 5, 4, 3, 3, 1])[0]
        if kind == "call":
            self.call()
        elif kind == "make":
            name = self.fresh("x")
            if self.add("run", f"{name} = {self.data(r.choice([*SHAPES, (9,), (12,)]))}"):
                self.live.append(name)
        elif kind == "statement" and self.live:
            text, made = self.statement(self.live, "l")
            if self.add("run", text) and made:
                self.live.append(made)
        elif kind == "read" and self.live:
            self.add("run", f"n = {r.choice(self.live)}.tolist()")
        elif kind == "realize" and self.live:
            self.add("run", f"{r.choice(self.live)}.realize()")
        elif kind == "delete" and self.live:
            name = r.choice(self.live)
            if name not in self.globals:
                self.live.remove(name)
                self.add("run", f"del {name}")
        elif kind == "number":
            self.add("run", f"k = {r.randint(1, 3)}")
        elif kind == "rebind" and self.globals:
            name = r.choice(self.globals)
            self.add("run", f"{name} = {self.argument(self.names[name].shape)}")

    def call(self) -> None:
        """The results are here what they look like alone."""
        r = self.random
        arguments = [self.argument(shape) for shape in self.parameters.values()]
        arguments += [f"{name}={name.upper()}.bind({r.randint(0, 6)})" for name in self.variables]
        out = self.fresh("o")
        self.steps.append(Step("run", f"{out} = f({', '.join(arguments)})"))
        for number, shape in enumerate(self.results):
            if r.random() < 0.7:
                name = self.fresh("r")
                self.names[name] = Tensor.zeros(*shape, dtype="int32")
                self.live.append(name)
                self.steps.append(Step("run", f"{name} = {out}{self.place.format(number)}"))
        if r.random() < 0.5:
            self.steps.append(Step("run", f"del {out}"))


def random_jit_program(seed: str) -> Program:
    return Generator(seed).run()


def script_of(program: Program, decorator: str = "@weft.jit\n") -> str:
    """The program as a text; without `body` there is no function."""
    setup = "".join(s.text + "\n" for s in program if s.where == "setup")
    return setup + function_of(program, decorator) + "".join(s.text + "\n" for s in program if s.where == "run")


def function_of(program: Program, decorator: str) -> str:
    names = sorted({p for s in program for p in ("p0", "p1", "p2") if s.where == "body" and p in s.text} | _given(program))
    names += [f"{v}=1" for v in ("v0", "v1") if any(v in s.text for s in program)]
    body = "".join(f"    {s.text}\n" for s in program if s.where == "body") or "    return [], []\n"
    written = sorted({s.text.partition(" ")[0] for s in program if s.where == "body" and s.text[0] == "g" and "+= " in s.text})
    plain = [name for name in written if name.isalnum()]
    outer = f"    global {', '.join(plain)}\n" if plain else ""
    return f"{decorator}def f({', '.join(names)}):\n{outer}{body}"


def _given(program: Program) -> set[str]:
    """As many parameters as calls have arguments."""
    call = next((s.text for s in program if " = f(" in s.text), "")
    depth, count = 0, 0
    for c in call.partition(" = f(")[2].partition(", v0=")[0]:
        count = max(count, 1) + (c == "," and depth == 0)
        depth += (c in "([{") - (c in ")]}")
    return {f"p{i}" for i in range(count)}
