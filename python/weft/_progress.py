"""One line that is drawn anew on a terminal, and plain lines now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TextIO


class Progress:
    """What is done of something long, on stderr.

    >>> with Progress("cases", 2) as progress:
    ...     progress.tell(1, "the first")
    """

    EVERY = 0.1  # seconds between two drawings
    PLAIN_EVERY = 10.0

    def __init__(self, what: str, count: int = 0, stream: TextIO | None = None) -> None:
        self.what, self.count = what, count
        self.stream = stream if stream is not None else sys.stderr
        self.is_terminal = self.stream.isatty()
        self.shown = 0.0 if self.is_terminal else time.monotonic()

    def tell(self, done: int, text: str = "") -> None:
        """So many are done."""
        now = time.monotonic()
        if now - self.shown < (self.EVERY if self.is_terminal else self.PLAIN_EVERY):
            return
        self.shown = now
        if self.count:
            filled = 24 * done // self.count
            line = f"{self.what} [{'#' * filled}{'.' * (24 - filled)}] {done}/{self.count} {text}"
        else:
            line = f"{self.what}: {text or done}"
        self.stream.write(f"\r\x1b[K{line[:110]}" if self.is_terminal else line.rstrip() + "\n")
        self.stream.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.is_terminal:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
