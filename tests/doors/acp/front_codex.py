"""The real Codex with an account of ours in front: `python front_codex.py FIFO LOG CODEX app-server`.

Offline the real one cannot give out device codes. All that is said goes through to it, but for the
account: a login by code begins when it is asked for and succeeds when a line comes out of FIFO. LOG gets
the methods that were answered here, one a line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import IO, Any

URL, CODE, LOGIN = "https://auth.test/device", "ABCD-1234", "01a1e49a-0000-7000-8000-000000000001"
ACCOUNT = {"type": "chatgpt", "email": "ann@example.invalid", "planType": "plus"}


class Front:
    def __init__(self, log: int, codex: subprocess.Popen[bytes]) -> None:
        self._log = log
        self._codex = codex
        self._lock = threading.Lock()
        self._account: dict[str, Any] | None = None

    def say(self, data: bytes) -> None:
        with self._lock:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def write(self, message: dict[str, Any]) -> None:
        self.say(json.dumps(message).encode() + b"\n")

    def hear(self, source: IO[bytes], into: IO[bytes]) -> None:
        for line in source:
            asked = json.loads(line)
            result = self._result(str(asked.get("method")), asked.get("params") or {})
            if result is None:
                into.write(line)
                into.flush()
            else:
                os.write(self._log, f"{asked['method']}\n".encode())
                self.write({"id": asked["id"], "result": result})
        into.close()

    def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if method == "account/read":
            return {"account": self._account, "requiresOpenaiAuth": True}
        if method == "account/logout":
            self._account = None
            return {}
        if method == "account/login/cancel":
            return {"status": "canceled"}
        if method == "account/login/start" and params.get("type") == "chatgptDeviceCode":
            answer = {"type": "chatgptDeviceCode", "loginId": LOGIN}
            return answer | {"verificationUrl": URL, "userCode": CODE}
        return None

    def wait_logins(self, fifo: str) -> None:
        with open(fifo) as lines:
            for _ in lines:
                self._account = ACCOUNT
                params = {"loginId": LOGIN, "success": True, "error": None}
                self.write({"method": "account/login/completed", "params": params})


def main() -> int:
    fifo, log, *command = sys.argv[1:]
    codex = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert codex.stdin
    assert codex.stdout
    front = Front(os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), codex)
    for target, args in ((front.hear, (sys.stdin.buffer, codex.stdin)), (front.wait_logins, (fifo,))):
        threading.Thread(target=target, args=args, daemon=True).start()
    for line in codex.stdout:
        front.say(line)
    return codex.wait()


if __name__ == "__main__":
    sys.exit(main())
