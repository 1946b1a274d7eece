"""Runs one fuzz case in a process of its own: a crash or a hang is a failure too."""

import os
import signal
from collections.abc import Callable


def failure_in_child(case: Callable[[], None], failed: type[Exception], seconds: int) -> str | None:
    """What `case` says when it raises `failed`, or how its process ended; None when it is right or no case at all."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(seconds)
            case()
        except failed as error:
            os.write(write, str(error).encode()[:60_000])
        except BaseException:  # a program that was cut too far
            pass
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return f"ran over {seconds} seconds" if name == "SIGALRM" else f"ended by {name}"
    return text or None
