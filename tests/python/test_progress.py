"""Long work tells how far it is on a terminal, and leaves nothing there."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys

from weft._progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_on_a_terminal_that_is_gone_in_the_end() -> None:
    out = Terminal()
    with Progress("cases", 4, out) as progress:
        progress.EVERY = 0  # type: ignore[misc]
        progress.tell(1, "the first")
    text = out.getvalue()
    assert "cases [######..................] 1/4 the first" in text and text.endswith("\r\x1b[K") and "\n" not in text


def test_plain_lines_elsewhere() -> None:
    out = io.StringIO()
    with Progress("cases", 4, out) as progress:
        progress.tell(1)
        progress.PLAIN_EVERY = 0  # type: ignore[misc]
        progress.tell(2, "the second")
    assert out.getvalue() == "cases [############............] 2/4 the second\n"


def test_compiling_many_kernels_shows_a_bar() -> None:
    """In a terminal, where compilation takes more than a second: 60 kernels that a slow compiler makes."""
    program = ("import weft.ir as ir\nfrom weft import Tensor\nimport time\n"
               "def slow(graph):\n    time.sleep(0.05)\n    return graph\n"
               "with ir.Pipeline().after('canonical', slow):\n"
               "    ts = [(Tensor.ones(n + 3).realize() * (n + 2)).contiguous() for n in range(60)]\n"
               "    Tensor.realize(*[t.sum() + i for i, t in enumerate(ts)])\n")
    parent, child = pty.openpty()
    done = subprocess.Popen([sys.executable, "-c", program], stderr=child, stdout=subprocess.DEVNULL,
                            env={**os.environ, "WEFT_DEVICE": "CPU", "WEFT_CACHE_DIR": ""})
    os.close(child)
    text = b""
    try:
        while part := os.read(parent, 4096):
            text += part
    except OSError:  # the other end is closed
        pass
    assert done.wait() == 0, text
    assert b"weft: compiling kernels [" in text and text.endswith(b"\r\x1b[K"), text[-500:]
