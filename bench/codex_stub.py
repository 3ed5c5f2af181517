"""An app-server that answers at once, as a program: `python -m bench.codex_stub app-server`.

Threads and turns as the real one tells them, with nothing behind: every turn says one word. What
a caller then waits for is the way to it and back. Where `BENCH_STAMPS` names a pipe, it says there when
each turn was asked for.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import msgspec

from bench import stub

STAMPS = "BENCH_STAMPS"


def main() -> None:
    codex = stub.StubCodex()
    stamps = os.open(os.environ[STAMPS], os.O_WRONLY) if STAMPS in os.environ else None
    write = sys.stdout.buffer.write
    turns = 0
    for line in sys.stdin.buffer:
        asked = msgspec.json.decode(line)
        if "id" not in asked:
            continue
        result = codex.answer(asked["method"], asked.get("params"))
        if asked["method"] == "turn/start":
            if stamps is not None:
                os.write(stamps, b"%f\n" % time.perf_counter())
            turns += 1
            result["turn"]["id"] = stub.turn_id(turns)
        write(msgspec.json.encode({"id": asked["id"], "result": result}) + b"\n")
        if asked["method"] == "turn/start":
            write(whole_turn(asked["params"], result["turn"]))
        sys.stdout.buffer.flush()


def whole_turn(params: dict[str, Any], turn: dict[str, Any]) -> bytes:
    """What follows the answer to `turn/start`, in one write."""

    def told(method: str, **fields: Any) -> bytes:
        body = {"method": method, "params": {"threadId": params["threadId"], "turnId": turn["id"], **fields}}
        return msgspec.json.encode(body) + b"\n"

    said = {"type": "userMessage", "id": "item-1", "clientId": params.get("clientUserMessageId")}
    said["content"] = params["input"]
    spoken = {"type": "agentMessage", "id": "msg_2", "text": "hi ", "phase": None}
    return b"".join(
        (
            told("turn/started", turn=turn),
            told("item/started", item=said),
            told("item/completed", item=said),
            told("item/started", item={**spoken, "text": ""}),
            told("item/agentMessage/delta", itemId="msg_2", delta="hi "),
            told("item/completed", item=spoken),
            told("turn/completed", turn={**turn, "status": "completed"}),
        )
    )


if __name__ == "__main__":
    main()
