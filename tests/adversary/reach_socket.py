"""What a hostile command does with the socket of a Laneway: `python reach_socket.py SOCKET REPORT KEY HOW`.

Tries every method that sees or ends sessions, then KEY on the bridge, and writes what it was answered
to REPORT: a line of JSON for each. HOW is `plainly`; or `orphaned`, from a process whose parents have
ended; or `by proxy`, over a connection whose maker has ended.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from typing import Any

METHODS = ("sessions/list", "sessions/watch", "sessions/stop", "sessions/close")


def main() -> None:
    path, report, key, how = sys.argv[1:]
    if how == "orphaned" and os.fork():
        while not os.path.exists(report):
            time.sleep(0.01)  # or the sandbox would end with us, and the orphan in it
        os._exit(0)
    if how == "orphaned":
        os.setsid()
        if os.fork():
            os._exit(0)
    answers = []
    for method in METHODS:
        params = {} if method == "sessions/list" else {"identity": "bob"}
        asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answers.append(ask(path, how, asked))
    answers.append(open_bridge(path, key, how))
    # Whole or not at all, for whoever waits for it.
    with open(report + ".part", "w") as lines:
        lines.writelines(json.dumps(answer) + "\n" for answer in answers)
    os.rename(report + ".part", report)


def open_bridge(path: str, key: str, how: str) -> Any:
    opening = {"jsonrpc": "2.0", "method": "bridge/open", "params": {"key": key}}
    return ask(path, how, opening, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})


def ask(path: str, how: str, *messages: dict[str, Any]) -> Any:
    """The answer; or that there was none."""
    try:
        with connected(path, how) as there:
            there.sendall(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
            answer = there.makefile("rb").readline()
    except OSError as problem:
        return {"broken": problem.strerror}
    return json.loads(answer) if answer else {"broken": "closed"}


def connected(path: str, how: str) -> socket.socket:
    there = socket.socket(socket.AF_UNIX)
    if how == "by proxy":
        pid = os.fork()
        if not pid:
            there.connect(path)  # the descriptor is ours, too
            os._exit(0)
        os.waitpid(pid, 0)
    else:
        there.connect(path)
    return there


if __name__ == "__main__":
    main()
