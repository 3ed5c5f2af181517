"""A tap on an MCP server: `python tap.py LOG COMMAND…` runs it and writes down all that passes.

Each line of LOG is a JSON array: `">"` from the client or `"<"` from the server, and the line.
LOG.pid holds the process id of the newest server.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO


def main() -> int:
    log = os.open(sys.argv[1], os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    Path(f"{sys.argv[1]}.pid").write_text(str(server.pid))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda got, frame: server.send_signal(got))
    assert server.stdin
    assert server.stdout
    there = threading.Thread(target=pass_on, args=(">", sys.stdin.buffer, server.stdin, log), daemon=True)
    there.start()
    pass_on("<", server.stdout, sys.stdout.buffer, log)
    return server.wait()


def pass_on(way: str, source: IO[bytes], target: IO[bytes], log: int) -> None:
    for line in source:
        os.write(log, json.dumps([way, line.decode()]).encode() + b"\n")
        try:
            target.write(line)
            target.flush()
        except BrokenPipeError:
            break
    if way == ">":
        target.close()


if __name__ == "__main__":
    sys.exit(main())
