"""The page on loopback, and the page of a process that ends."""

from __future__ import annotations

import atexit
import http.server
import os
import sys
import threading
import traceback
from pathlib import Path
from types import TracebackType

from weft._explain import Explained, Recording
from weft.viz._page import page_of

LOOPBACK = "127.0.0.1"


class Server:
    """Serves one page to this machine; nobody else can connect.

    >>> server = Server("<p>a page</p>")
    >>> from urllib.request import urlopen
    >>> urlopen(server.url).read()
    b'<p>a page</p>'
    >>> server.close()
    """

    def __init__(self, page: str, port: int = 0) -> None:
        body = page.encode()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # noqa: N802 - the base class says so
                # A name that leads here by another site's DNS is not answered.
                host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
                is_page = self.path.split("?")[0] == "/" and host in (LOOPBACK, "localhost")
                self.send_response(200 if is_page else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body) if is_page else 0))
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                if is_page:
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        self._server = http.server.ThreadingHTTPServer((LOOPBACK, port), Handler)
        self.url = f"http://{LOOPBACK}:{self._server.server_address[1]}/"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Serves until the user interrupts."""
        try:
            self._thread.join()
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Ends it."""
        self._server.shutdown()
        self._server.server_close()


class recorded:
    """What weft does in a `with` block, as a page in a file.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "page.html")
    >>> with recorded(path):
    ...     (Tensor([1.0, 2.0]) * 2).tolist()
    [2.0, 4.0]
    >>> os.path.getsize(path) > 50_000
    True
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __enter__(self) -> recorded:
        self._recording = Recording()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        failure = "".join(traceback.format_exception(kind, error, trace)) if error is not None else ""
        explained = Explained(sys.argv[0] or "-c", failure, self._recording.finish())
        self.path.write_text(page_of(explained), encoding="utf-8")


def watch_process(where: str) -> None:
    """WEFT_VIZ: records this process; at its end the page is saved in a file, or for "1" served if there is a terminal."""
    recording = Recording()
    failure: list[str] = []
    before = sys.excepthook

    def note(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        failure.append("".join(traceback.format_exception(kind, error, trace)))
        before(kind, error, trace)

    sys.excepthook = note
    process = os.getpid()

    def finish() -> None:
        if os.getpid() != process:  # a child that was forked
            return
        page = page_of(Explained(sys.argv[0] or "-c", "".join(failure), recording.finish()))
        if where == "1" and sys.stderr.isatty():
            server = Server(page)
            print(f"weft: {server.url} shows what became of this program; Ctrl-C ends it", file=sys.stderr)
            server.wait()
            return
        path = Path("weft-viz.html" if where == "1" else where)
        path.write_text(page, encoding="utf-8")
        print(f"weft: {path} shows what became of this program", file=sys.stderr)

    atexit.register(finish)
