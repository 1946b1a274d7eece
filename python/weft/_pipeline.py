"""The compiler's passes by name, and passes of users among them."""

from __future__ import annotations

import inspect
import threading
from dataclasses import dataclass
from typing import Callable, Optional, Union

from weft import _core
from weft._core import RuleSet, Stage, UOp

PassFunction = Union[Callable[[UOp], UOp], Callable[[UOp, "PassContext"], UOp]]


@dataclass(frozen=True)
class PassInfo:
    """One pass of weft: what it does, and the stages of the graph before and after it.

    A stage of None: no pass of a user may stand there, because what the passes hand on beside the graph
    names its nodes.
    """

    name: str
    what: str
    before: Optional[Stage]
    after: Optional[Stage]


class PassContext:
    """What a pass of a user is told beside the graph: rules with a parameter `ctx` get it, too.

    graph is the graph as the pass found it; users() are those that nodes had there.
    """

    def __init__(self, name: str, graph: UOp, stage: Stage) -> None:
        self.name = name
        self.graph = graph
        self.stage = stage
        self._users: dict[UOp, list[UOp]] | None = None

    def users(self, node: UOp) -> tuple[UOp, ...]:
        """The nodes that have this one as a source."""
        if self._users is None:
            self._users = {}
            for user in self.graph.toposort():
                for source in dict.fromkeys(user.src):
                    self._users.setdefault(source, []).append(user)
        return tuple(self._users.get(node, ()))

    def ranges(self, node: UOp) -> tuple[UOp, ...]:
        """The RANGEs in scope: those that the node depends on and that are not closed beneath it."""
        return node.ranges


@dataclass(frozen=True)
class _Inserted:
    name: str
    beside: str
    is_before: bool
    work: PassFunction | RuleSet
    file: str
    line: int

    def run(self, graph: UOp, stage: Stage) -> tuple[UOp] | tuple[RuleSet, PassContext]:
        context = PassContext(self.name, graph, stage)
        if isinstance(self.work, RuleSet):
            return self.work, context
        result = self.work(graph, context) if _takes_context(self.work) else self.work(graph)  # type: ignore[call-arg]
        if not isinstance(result, UOp):
            raise TypeError(f"[pipeline] the pass {self.name} returned {type(result).__name__}, not a UOp")
        return (result,)


def _takes_context(function: PassFunction) -> bool:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds for p in inspect.signature(function).parameters.values()) > 1


def _rows(rows: list[tuple[str, str, Optional[Stage], Optional[Stage]]]) -> tuple[PassInfo, ...]:
    return tuple(PassInfo(*row) for row in rows)


_of_thread = threading.local()
_process: Pipeline | None = None


class Pipeline:
    """The list of passes: those of weft, and those of users among them.

    A pass of a user is a RuleSet, or a function that takes a graph (and a PassContext, if it has two
    parameters) and returns one. What it returns is checked against the spec. Everything that is compiled
    in a `with` block of this thread goes through it, and so does everything after install(); schedules and
    kernels made with other passes are not used, nor those made with it elsewhere.

    >>> seen = []
    >>> def look(graph):
    ...     seen.append(graph.op)
    ...     return graph
    >>> with Pipeline().after("transform", look):
    ...     (Tensor([1.0, 2.0]) * 7).tolist()
    [7.0, 14.0]
    >>> seen
    [Ops.SINK]
    >>> [p.name for p in Pipeline.schedule_passes()][-4:]
    ['split kernels', 'order kernels', 'share kernels', 'plan memory']
    """

    def __init__(self) -> None:
        current = Pipeline.current()
        self._inserted: tuple[_Inserted, ...] = current._inserted if current is not None else ()
        self._compiled: _core.UserPasses | None = None

    @staticmethod
    def schedule_passes() -> tuple[PassInfo, ...]:
        """The passes from a tensor graph to a schedule."""
        return _rows(_core.schedule_pass_rows())

    @staticmethod
    def codegen_passes() -> tuple[PassInfo, ...]:
        """The passes from a kernel to a program."""
        return _rows(_core.codegen_pass_rows())

    @staticmethod
    def current() -> Pipeline | None:
        """The innermost one of this thread, or what install() set; None: weft's passes alone."""
        stack = getattr(_of_thread, "stack", ())
        return stack[-1] if stack else _process

    def before(self, beside: str, work: PassFunction | RuleSet, name: str | None = None) -> Pipeline:
        """Inserts a pass before one of weft, after those inserted there so far; returns the pipeline."""
        return self._insert(beside, work, name, True)

    def after(self, beside: str, work: PassFunction | RuleSet, name: str | None = None) -> Pipeline:
        """Inserts a pass behind one of weft, after those inserted there so far; returns the pipeline."""
        return self._insert(beside, work, name, False)

    def _insert(self, beside: str, work: PassFunction | RuleSet, name: str | None, is_before: bool) -> Pipeline:
        if not (isinstance(work, RuleSet) or callable(work)):
            raise TypeError(f"[pipeline] a pass is a RuleSet or a function, not {type(work).__name__}")
        if self._compiled is not None:
            raise ValueError("[pipeline] it is in use: make another one")
        own = name or str(work.name if isinstance(work, RuleSet) else getattr(work, "__name__", "pass"))
        infos = [p for p in (*self.schedule_passes(), *self.codegen_passes()) if p.name == beside]
        if not infos:
            raise ValueError(f"[pipeline] weft has no pass {beside!r}; print(Pipeline()) lists them")
        if not any(p.before if is_before else p.after for p in infos):
            side = "before" if is_before else "after"
            raise ValueError(f"[pipeline] no pass may stand {side} {beside!r}: what is handed on there names nodes")
        if any(p.name == own for p in (*self.schedule_passes(), *self.codegen_passes())) or any(
                p.name == own for p in self._inserted):
            raise ValueError(f"[pipeline] there is a pass {own!r} already: give this one a name")
        file, line = _place_of(work)
        self._inserted += (_Inserted(own, beside, is_before, work, file, line),)
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """All passes in the order in which they run."""
        out: list[str] = []
        for info in (*self.schedule_passes(), *self.codegen_passes()):
            out += [p.name for p in self._inserted if p.beside == info.name and p.is_before and info.before]
            out.append(info.name)
            out += [p.name for p in self._inserted if p.beside == info.name and not p.is_before and info.after]
        return tuple(out)

    def __str__(self) -> str:
        own = {p.name: f"{p.file}:{p.line}" for p in self._inserted}
        what = {p.name: p.what for p in (*self.schedule_passes(), *self.codegen_passes())}
        return "\n".join(f"{name:<20} {own.get(name) or what[name]}" for name in self.names)

    def _use(self) -> _core.UserPasses:
        if self._compiled is None:
            rows = [(p.name, p.beside, p.is_before, p.run, p.file, p.line) for p in self._inserted]
            self._compiled = _core.make_user_passes(rows)
        return self._compiled

    def __enter__(self) -> Pipeline:
        _core.enter_user_passes(self._use())
        if not hasattr(_of_thread, "stack"):
            _of_thread.stack = []
        _of_thread.stack.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _of_thread.stack.pop()
        _core.leave_user_passes()

    def install(self) -> None:
        """Everything that the process compiles from now on goes through this pipeline."""
        global _process
        _core.set_user_passes(self._use())
        _process = self

    @staticmethod
    def reset() -> None:
        """Undoes install()."""
        global _process
        _core.set_user_passes(None)
        _process = None


def _place_of(work: PassFunction | RuleSet) -> tuple[str, int]:
    code = getattr(work, "__code__", None)
    if code is not None:
        return code.co_filename, code.co_firstlineno
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("", 0)
