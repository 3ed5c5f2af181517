"""The bridge from one Codex thread back to its Laneway: an MCP server that only copies bytes both ways.

Codex starts it for a thread, and for each of its subagents, by a server entry in the thread's
config. It sends the session's key to the local socket and then copies bytes both ways; the requests
are answered in our process. Run by its path with `python -I -S`: it may import nothing but the
standard library, and nothing from a folder that a model can write to.
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
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(path)
        connection.sendall(b'{"jsonrpc":"2.0","method":"bridge/open","params":{"key":"%s"}}\n' % key.encode())
    except OSError as problem:
        sys.stderr.write(f"The Laneway of this session does not answer: {problem.strerror}.\n")
        return 1
    _thread.start_new_thread(copy_stdin, (connection,))
    try:
        while data := connection.recv(CHUNK_BYTES):
            while data:
                data = data[os.write(1, data) :]
    except OSError:
        pass  # one side has gone, so we end
    return 0


def copy_stdin(connection: socket.socket) -> None:
    """Copy from Codex to Laneway. At its end the main thread reads the end of the socket, and stops too."""
    try:
        while data := os.read(0, CHUNK_BYTES):
            connection.sendall(data)
    except OSError:
        pass
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


if __name__ == "__main__":
    # Not by the interpreter's normal exit, which would wait for a thread that reads.
    code = main()
    sys.stderr.flush()
    os._exit(code)
