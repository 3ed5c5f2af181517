"""The real Codex, halted before one call: `python halting_codex.py MARK METHOD CODEX app-server`.

If the file MARK is not there, it passes everything on up to the first call of METHOD, which never arrives,
nor anything behind it. When Codex has answered all that came before, it makes MARK. If MARK is there, it
passes everything on.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO


class Gate:
    def __init__(self, mark: Path, method: str) -> None:
        self._mark = mark
        self._method = method
        self._halts = not mark.exists()
        self._is_halted = False
        self._unanswered: set[object] = set()
        self._lock = threading.Lock()

    def feed(self, source: IO[bytes], into: IO[bytes]) -> None:
        for line in source:
            asked = json.loads(line)
            with self._lock:
                if self._halts and asked.get("method") == self._method:
                    self._is_halted = True
                    self._note()
                    return
                if "id" in asked and "method" in asked:
                    self._unanswered.add(asked["id"])
            into.write(line)
            into.flush()
        into.close()

    def tell(self, source: IO[bytes]) -> None:
        for line in source:
            said = json.loads(line)
            if "method" not in said:
                with self._lock:
                    self._unanswered.discard(said.get("id"))
                    self._note()
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()

    def _note(self) -> None:
        if self._is_halted and not self._unanswered:
            self._mark.touch()


def main() -> int:
    mark, method, *command = sys.argv[1:]
    codex = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert codex.stdin
    assert codex.stdout
    gate = Gate(Path(mark), method)
    threading.Thread(target=gate.feed, args=(sys.stdin.buffer, codex.stdin), daemon=True).start()
    gate.tell(codex.stdout)
    return codex.wait()


if __name__ == "__main__":
    sys.exit(main())
