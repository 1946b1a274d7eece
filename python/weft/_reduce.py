"""`weft reduce`: a program that fails, is wrong or is slow, cut down to what it needs for that."""

from __future__ import annotations

import ast
import json
import os
import re
import select
import signal
import sys
import time
import traceback
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Optional

from weft import Tensor, check, counters
from weft.errors import CheckError

Verdict = dict[str, Any]


@dataclass
class Options:
    """What is looked for, and for how long."""

    what: str = "failure"  # failure, wrong, kernels or seconds
    bound: float = 0  # of kernels or seconds: at least so many
    seconds: float = 20  # that one run may take
    budget: float = 300  # of all of them


class Reducer:
    """A script, and the smallest one found so far that does the same."""

    def __init__(self, source: str, arguments: list[str], options: Options,
                 tell: Callable[[str], None] = lambda text: None) -> None:
        self.options, self.arguments, self.tell = options, arguments, tell
        self.runs = 0
        self.end = time.monotonic() + options.budget
        self.tried: set[str] = set()
        self.source = ast.unparse(ast.parse(source))
        first = self.verdict(source)
        self.wanted = self.key(first)
        if self.wanted is None:
            raise ValueError({
                "failure": "the script does not fail",
                "wrong": f"weft.check finds nothing wrong ({first.get('error') or 'the reference gives the same'})",
            }.get(options.what, f"it took {first.get(options.what)} {options.what}, less than {options.bound:g}"))
        self.first = first

    def run(self) -> str:
        """The smallest script that was found."""
        while True:
            size = len(self.source)
            for candidates in (_without_statements, _unwrapped, _inlined, _with_simpler_expressions, _with_smaller_numbers):
                self._take(candidates)
            if len(self.source) >= size or time.monotonic() > self.end:
                return self.source + "\n"

    def _take(self, candidates: Callable[[ast.Module], Iterator[ast.Module]]) -> None:
        found = True
        while found and time.monotonic() < self.end:
            found = False
            for tree in candidates(ast.parse(self.source)):
                if time.monotonic() > self.end:
                    return
                try:
                    text = ast.unparse(ast.fix_missing_locations(tree))
                    compile(text, "reduced", "exec")
                except (SyntaxError, ValueError, RecursionError):
                    continue
                if text in self.tried or len(text) >= len(self.source) + 8:
                    continue
                self.tried.add(text)
                if self.key(self.verdict(text)) == self.wanted:
                    self.source = text
                    self.tell(f"{len(text.splitlines())} lines, {len(text)} characters, {self.runs} runs")
                    found = True
                    break

    def key(self, verdict: Verdict) -> Optional[tuple[Any, ...]]:
        """What has to stay the same; None: it is not what is looked for."""
        if self.options.what == "failure":
            if verdict.get("signal"):
                return "signal", verdict["signal"]
            return ("error", verdict["kind"], _shape_of(verdict["error"])) if verdict.get("kind") else None
        if self.options.what == "wrong":
            return ("wrong",) if verdict.get("kind") == "CheckError" else None
        measured = verdict.get(self.options.what)
        return ("slow",) if measured is not None and measured >= self.options.bound else None

    def verdict(self, source: str) -> Verdict:
        """What a script does, in a process of its own."""
        self.runs += 1
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            code = 1
            try:
                out = os.open(os.devnull, os.O_RDWR)
                for descriptor in (0, 1, 2):
                    os.dup2(out, descriptor)
                with os.fdopen(write, "w") as pipe:
                    json.dump(_verdict_here(source, self.arguments, self.options.what), pipe)
                code = 0
            finally:
                os._exit(code)
        os.close(write)
        end, data = time.monotonic() + self.options.seconds, b""
        while True:
            ready, _, _ = select.select([read], [], [], max(0.0, end - time.monotonic()))
            part = os.read(read, 1 << 16) if ready else b""
            if not part:
                break
            data += part
        timed_out = not ready
        if timed_out:
            os.kill(child, signal.SIGKILL)
        os.close(read)
        _, status = os.waitpid(child, 0)
        if timed_out:
            return {"seconds": self.options.seconds, "timed_out": True}
        if os.WIFSIGNALED(status):
            return {"signal": os.WTERMSIG(status)}
        return dict(json.loads(data)) if data else {"kind": "SystemExit", "error": "it ended by itself"}


def _shape_of(message: str) -> str:
    """A message without its numbers, names in quotes and node texts: they change as the program shrinks."""
    first = (message.strip().splitlines() or [""])[0]
    return re.sub(r"'[^']*'|\"[^\"]*\"|\([^()]*\)|\d[\d.e+-]*", "_", first)[:200]


def _verdict_here(source: str, arguments: list[str], what: str) -> Verdict:
    sys.argv = ["reduced.py", *arguments]
    counters.reset()
    own: dict[str, Any] = {"__name__": "__main__", "__file__": "reduced.py"}

    def run() -> list[Tensor]:
        names = dict(own)
        exec(compile(source, "reduced.py", "exec"), names)  # noqa: S102 - to run it is what was asked for
        return [v for v in names.values() if isinstance(v, Tensor)]

    start = time.perf_counter()
    try:
        if what == "wrong":
            check(run)
        else:
            Tensor.realize(*result) if (result := run()) and what != "failure" else None
    except SystemExit as stop:
        return {} if stop.code in (None, 0) else {"kind": "SystemExit", "error": str(stop.code)}
    except CheckError as error:
        return {"kind": "CheckError", "error": str(error)}
    except BaseException as error:  # noqa: BLE001 - whatever the program raises
        return {"kind": type(error).__name__, "error": str(error), "text": traceback.format_exc()}
    return {"seconds": time.perf_counter() - start, "kernels": counters.kernels}


# ---- smaller programs


def _bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                yield body


def _without_statements(tree: ast.Module) -> Iterator[ast.Module]:
    """Runs of statements left out: halves of each body, quarters, ..., single ones, from the end."""
    sizes = [len(body) for body in _bodies(tree)]
    longest = max(sizes, default=0)
    width = longest
    while width >= 1:
        for which, size in enumerate(sizes):
            if width > size or (width == size and which == 0):
                continue
            for first in range(size - width, -1, -width):
                copy = _copy(tree)
                body = list(_bodies(copy))[which]
                del body[first:first + width]
                if not body and which != 0:
                    body.append(ast.Pass())
                yield copy
        width //= 2


def _unwrapped(tree: ast.Module) -> Iterator[ast.Module]:
    """The body of a loop, a condition or a with block in its place."""
    kinds = (ast.For, ast.While, ast.If, ast.With, ast.Try)
    count = sum(isinstance(s, kinds) for body in _bodies(tree) for s in body)
    for number in range(count):
        copy, seen = _copy(tree), 0
        for body in _bodies(copy):
            for i, s in enumerate(body):
                if isinstance(s, kinds):
                    if seen == number:
                        start: list[ast.stmt] = []
                        if isinstance(s, ast.For):  # its first turn
                            value = ast.Call(ast.Name("next", ast.Load()),
                                             [ast.Call(ast.Name("iter", ast.Load()), [s.iter], [])], [])
                            start = [ast.Assign([s.target], value)]
                        body[i:i + 1] = [*start, *s.body]
                        yield copy
                    seen += 1
            if seen > number:
                break


def _inlined(tree: ast.Module) -> Iterator[ast.Module]:
    """A name that is assigned once, replaced by what it is."""
    stored = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    for which, body in enumerate(_bodies(tree)):
        for i, s in enumerate(body):
            if not (isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name)):
                continue
            name = s.targets[0].id
            if stored.count(name) != 1:
                continue
            copy = _copy(tree)
            own = list(_bodies(copy))[which]
            value = own.pop(i)
            assert isinstance(value, ast.Assign)
            if not own and which != 0:
                own.append(ast.Pass())
            for node, field, index, there in _places(copy):
                if isinstance(there, ast.Name) and there.id == name:
                    _put(node, field, index, value.value)
            yield copy


def _places(tree: ast.AST) -> list[tuple[ast.AST, str, Optional[int], ast.expr]]:
    """Where expressions stand that are read."""
    out: list[tuple[ast.AST, str, Optional[int], ast.expr]] = []
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr) and not isinstance(getattr(value, "ctx", None), (ast.Store, ast.Del)):
                out.append((node, name, None, value))
            elif isinstance(value, list):
                out += [(node, name, i, v) for i, v in enumerate(value)
                        if isinstance(v, ast.expr) and not isinstance(getattr(v, "ctx", None), (ast.Store, ast.Del))]
    return out


def _with_simpler_expressions(tree: ast.Module) -> Iterator[ast.Module]:
    """An expression replaced by one of its own parts, or an argument left out."""
    for number, (_, name, index, value) in enumerate(_places(tree)):
        inner = [v for v in ast.iter_child_nodes(value) if isinstance(v, ast.expr)]
        if isinstance(value, ast.Call):  # x.f(a) to x and to a
            inner = [*([value.func.value] if isinstance(value.func, ast.Attribute) else []), *value.args,
                     *(k.value for k in value.keywords)]
        for part in range(len(inner)):
            copy = _copy(tree)
            node, field, at, there = _places(copy)[number]
            parts = [v for v in ast.iter_child_nodes(there) if isinstance(v, ast.expr)]
            if isinstance(there, ast.Call):
                parts = [*([there.func.value] if isinstance(there.func, ast.Attribute) else []), *there.args,
                         *(k.value for k in there.keywords)]
            _put(node, field, at, parts[part])
            yield copy
        if index is not None and name in ("args", "elts"):
            copy = _copy(tree)
            node, field, _, _ = _places(copy)[number]
            del getattr(node, field)[index]
            yield copy
    for number, call in enumerate(n for n in ast.walk(tree) if isinstance(n, ast.Call)):
        for k in range(len(call.keywords)):
            copy = _copy(tree)
            del [n for n in ast.walk(copy) if isinstance(n, ast.Call)][number].keywords[k]
            yield copy


def _with_smaller_numbers(tree: ast.Module) -> Iterator[ast.Module]:
    """Whole numbers nearer to 1: a shape, a count of turns. Equal ones together first, for they are often one size."""
    def constants(of: ast.AST) -> list[ast.Constant]:
        return [n for n in ast.walk(of) if isinstance(n, ast.Constant) and type(n.value) is int and n.value > 1]

    values = sorted({int(n.value) for n in constants(tree)}, reverse=True)  # type: ignore[arg-type]
    for value in values:
        for smaller in dict.fromkeys((1, 2, value // 2, value - 1)):
            if smaller < value:
                copy = _copy(tree)
                for n in constants(copy):
                    if n.value == value:
                        n.value = smaller
                yield copy
    for number, constant in enumerate(constants(tree)):
        for smaller in dict.fromkeys((1, 2, int(constant.value) // 2)):  # type: ignore[arg-type]
            if smaller < int(constant.value):  # type: ignore[arg-type]
                copy = _copy(tree)
                constants(copy)[number].value = smaller
                yield copy


def _copy(tree: ast.Module) -> ast.Module:
    return ast.parse(ast.unparse(tree))


def _put(node: ast.AST, field: str, index: Optional[int], value: ast.expr) -> None:
    if index is None:
        setattr(node, field, value)
    else:
        getattr(node, field)[index] = value
