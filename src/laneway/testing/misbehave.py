"""A fake app-server that misbehaves on demand, for behaviour that a healthy Codex does not show.

Implements just enough of the protocol for one thread; the prompt of a turn says what goes wrong in it.
Run as `python -m laneway.testing.misbehave [FLAG…]`:

    --mute        never answers `initialize`
    --broken      complains on standard error instead of answering `initialize`, and ends
    --deaf        ignores SIGTERM and the end of its standard input

Prompts: `exit N`, `complain` (says why on standard error, and ends),
`signal NAME`, `hang`, `flood` (20 MB on standard error), `garbage`,
`early` (`turn/started` before the answer), `ask` (a request that nobody knows), `steered`
(answers with the turn that is already running), anything else: a plain turn.
"""

from __future__ import annotations

import faulthandler
import itertools
import json
import os
import signal
import sys
import time
from typing import Any

THREAD = "01a00000-0000-7000-8000-000000000001"
FLOOD_BYTES = 20 * 1024 * 1024
COMPLAINT = "\x1b[31mError:\x1b[0m the gears are stuck, api_key=sk-abcdefghijklmnopqrst\u202e"
OVERLOADS = 2
"""How often `thread/list` is too busy before it answers."""


class MisbehavingServer:
    def __init__(self, flags: list[str]) -> None:
        self.flags = flags
        self.turns = itertools.count(1)
        self.running: str | None = None
        self.overloads = OVERLOADS
        self.answers: dict[Any, Any] = {}

    def serve(self) -> None:
        if "--deaf" in self.flags:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                self.on_answer(message)
            elif "id" in message:
                self.on_request(message["id"], message["method"], message.get("params") or {})
        while "--deaf" in self.flags:
            time.sleep(60)

    def on_request(self, request_id: Any, method: str, params: dict[str, Any]) -> None:
        match method:
            case "initialize":
                if "--broken" in self.flags:
                    self.complain()
                if "--mute" not in self.flags:
                    self.reply(request_id, {"userAgent": "misbehave/0.163.0"})
            case "thread/start" | "thread/resume":
                self.reply(request_id, {"thread": {"id": THREAD, "cwd": "/"}})
            case "thread/list":
                self.overloads -= 1
                if self.overloads >= 0:
                    self.refuse(request_id, -32001, "Server overloaded; retry later.")
                else:
                    self.reply(request_id, {"data": []})
            case "turn/start":
                self.turn(request_id, params["input"][0]["text"])
            case "turn/interrupt" if self.running and "--deaf" not in self.flags:
                self.reply(request_id, {})
                self.end("interrupted")
            case _:
                self.reply(request_id, {})

    def complain(self) -> None:
        """Fail like a program in Rust, with text that must not be shown: colours, a key, a stack."""
        stack = "".join(f"  {number:2}: <unknown>\n" for number in range(20))
        sys.stderr.write(f"{COMPLAINT}\n\nStack backtrace:\n{stack}")
        sys.stderr.flush()
        sys.exit(7)

    def turn(self, request_id: Any, prompt: str) -> None:
        word, _, rest = prompt.partition(" ")
        if word == "overload":
            self.refuse(request_id, -32001, "Server overloaded; retry later.")
            return
        turn_id = self.running if word == "steered" and self.running else f"turn-{next(self.turns)}"
        self.running = turn_id
        if word == "early":
            self.notify("turn/started", {"turn": {"id": turn_id}})
        self.reply(request_id, {"turn": {"id": turn_id}})
        self.notify("turn/started", {"turn": {"id": turn_id}})
        self.notify("item/agentMessage/delta", {"turnId": turn_id, "itemId": "m", "delta": "so far"})
        self.misbehave(word, rest)

    def misbehave(self, word: str, rest: str) -> None:
        match word:
            case "exit":
                sys.exit(int(rest))
            case "complain":
                self.complain()
            case "signal":
                faulthandler.disable()  # it dies without a word, whatever the environment says
                os.kill(os.getpid(), signal.Signals[rest])
            case "hang" | "steered":
                return
            case "flood":
                sys.stderr.write("x" * FLOOD_BYTES)
                sys.stderr.flush()
            case "garbage":
                sys.stdout.write('not json\n[1,2]\n"text"\n\n{"neither": 1}\n' + "[" * 10_000 + "\n")
                self.notify("item/agentMessage/delta", {"wrong": "shape"})
                self.notify("turn/plan/updated", {"plan": 5, "turnId": self.running})
                self.notify("brand/new", {"x": 1})
            case "ask":
                self.send({"id": "ask-1", "method": "brand/new/request", "params": {"threadId": THREAD}})
                return
        self.end("completed")

    def on_answer(self, message: dict[str, Any]) -> None:
        """Repeat the answer that we got, so that a test can see it."""
        answer_json = json.dumps(message.get("error") or message.get("result"))
        self.notify("item/agentMessage/delta", {"turnId": self.running, "itemId": "m", "delta": answer_json})
        self.end("completed")

    def end(self, status: str) -> None:
        turn_id, self.running = self.running, None
        self.notify("turn/completed", {"turn": {"id": turn_id, "status": status, "items": []}})

    def reply(self, request_id: Any, result: Any) -> None:
        self.send({"id": request_id, "result": result})

    def refuse(self, request_id: Any, code: int, message: str) -> None:
        self.send({"id": request_id, "error": {"code": code, "message": message}})

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self.send({"method": method, "params": {"threadId": THREAD, **params}})

    def send(self, message: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    MisbehavingServer(sys.argv[1:]).serve()
