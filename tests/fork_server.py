"""The server of `tests.forked`: loads all of Laneway once, then forks a `laneway` for each request.

Run with the number of a socket. A request is a length of four bytes, which carries the descriptors of the
new process (its three streams, and one on which we report), and that much JSON: words, environment,
folder, umask. Reported are its process id and, once it has ended, its exit code. Ends with its client.
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import os
import pkgutil
import select
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any, TextIO

import laneway

FILES = 4
"""Standard input, output and error of the new process, and the socket of its report."""
LENGTH_BYTES = 4


def load_all() -> None:
    """Import what any command may need; not what needs packages that only tests have."""
    for module in pkgutil.walk_packages(laneway.__path__, "laneway."):
        if not module.name.startswith("laneway.testing") and not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def serve(control: socket.socket) -> list[str] | None:
    """Fork on request. Returns words in a child, which is to run them, and none at the end."""
    woken, wake = socket.socketpair()
    for end in (woken, wake):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler nothing is written to `wake`
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for whoever started us
    signal.set_wakeup_fd(wake.fileno())
    reports: dict[int, int] = {}
    while True:
        readable, _, _ = select.select([control, woken], [], [])
        if woken in readable:
            woken.recv(4096)
            reap(reports)
        if control in readable:
            header, files, _, _ = socket.recv_fds(control, LENGTH_BYTES, FILES)
            if not header:
                return None
            request = json.loads(read_exactly(control, int.from_bytes(header)))
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                return become(request, files)
            for file in files[:3]:
                os.close(file)
            reports[pid] = files[3]
            os.write(files[3], b"%d\n" % pid)


def reap(reports: dict[int, int]) -> None:
    """Report and forget the processes that have ended."""
    for pid, report in list(reports.items()):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            try:
                os.write(report, b"%d\n" % os.waitstatus_to_exitcode(status))
            except BrokenPipeError:
                pass  # nobody waits for it
            os.close(report)
            del reports[pid]


def read_exactly(control: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        data += control.recv(length - len(data))
    return data


def become(request: dict[str, Any], files: list[int]) -> list[str]:
    """Be in the state in which a Python that was started for these words begins."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for stream, file in enumerate(files[:3]):
        os.dup2(file, stream)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    os.umask(request["umask"])
    time.tzset()
    sys.stdin = text_stream(0, "r", sys.stdin)
    sys.stdout = text_stream(1, "w", sys.stdout)
    sys.stderr = text_stream(2, "w", sys.stderr, is_line_buffered=True)
    sys.argv = [str(Path(laneway.__file__).with_name("__main__.py")), *request["words"]]
    words: list[str] = request["words"]
    return words


def text_stream(file: int, mode: str, like: TextIO, *, is_line_buffered: bool = False) -> TextIO:
    """As Python opens it at its start; buffered by lines in a terminal."""
    is_line_buffered = is_line_buffered or os.isatty(file)
    binary: Any = io.FileIO(file, mode, closefd=False)
    binary = io.BufferedReader(binary) if mode == "r" else io.BufferedWriter(binary)
    return io.TextIOWrapper(
        binary, encoding=like.encoding, errors=like.errors, line_buffering=is_line_buffered
    )


def main() -> int:
    gc.disable()
    load_all()
    gc.freeze()
    assert threading.active_count() == 1, "a fork would leave locks behind that nobody releases"
    words = serve(socket.socket(fileno=int(sys.argv[1])))
    if words is None:
        return 0
    from laneway.cli.main import main as run

    return run(words)


if __name__ == "__main__":
    raise SystemExit(main())
