"""The bridge from one Codex thread back to us: an MCP server that is only two pipes.

Codex starts it for a thread, and for each of its subagents, by a server entry in the thread's
config. It shows the session's key at the local door and then carries bytes both ways; what is
answered is answered in our process. Run by its path with `python -I -S`: it may import nothing but
the standard library, and nothing of a folder that a model can write to.
"""

from __future__ import annotations

import _thread
import os
import socket
import sys

CHUNK_BYTES = 65536


def main() -> int:
    path, key = os.environ.get("LANEWAY_BRIDGE_SOCKET"), os.environ.get("LANEWAY_BRIDGE_KEY")
    if not path or not key:
        sys.stderr.write("This is started by Laneway, for a session of its own.\n")
        return 2
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        door.connect(path)
        door.sendall(b'{"jsonrpc":"2.0","method":"bridge/open","params":{"key":"%s"}}\n' % key.encode())
    except OSError as problem:
        sys.stderr.write(f"The Laneway of this session does not answer: {problem.strerror}.\n")
        return 1
    _thread.start_new_thread(carry_in, (door,))
    try:
        while data := door.recv(CHUNK_BYTES):
            while data:
                data = data[os.write(1, data) :]
    except OSError:
        pass  # one of the two has gone, and so do we
    return 0


def carry_in(door: socket.socket) -> None:
    """From Codex to us. Its end is the end of the bridge: the other thread reads the end of the socket."""
    try:
        while data := os.read(0, CHUNK_BYTES):
            door.sendall(data)
    except OSError:
        pass
    try:
        door.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


if __name__ == "__main__":
    # Not by way of the interpreter's own end, which would wait for a thread that reads.
    code = main()
    sys.stderr.flush()
    os._exit(code)
