"""A stub app-server that answers at once, as a program: `python -m bench.codex_stub app-server`.

Sends the same messages about threads and turns as the real one, but every turn is one word: a caller
waits only for the transport. If `BENCH_STAMPS` names a pipe, it writes there when each turn was requested.
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
        request = msgspec.json.decode(line)
        if "id" not in request:
            continue
        result = codex.answer(request["method"], request.get("params"))
        if request["method"] == "turn/start":
            if stamps is not None:
                os.write(stamps, b"%f\n" % time.perf_counter())
            turns += 1
            result["turn"]["id"] = stub.turn_id(turns)
        write(msgspec.json.encode({"id": request["id"], "result": result}) + b"\n")
        if request["method"] == "turn/start":
            write(whole_turn(request["params"], result["turn"]))
        sys.stdout.buffer.flush()


def whole_turn(params: dict[str, Any], turn: dict[str, Any]) -> bytes:
    """The notifications after the answer to `turn/start`, in one write."""

    def notification(method: str, **fields: Any) -> bytes:
        body = {"method": method, "params": {"threadId": params["threadId"], "turnId": turn["id"], **fields}}
        return msgspec.json.encode(body) + b"\n"

    user_item = {"type": "userMessage", "id": "item-1", "clientId": params.get("clientUserMessageId")}
    user_item["content"] = params["input"]
    agent_item = {"type": "agentMessage", "id": "msg_2", "text": "hi ", "phase": None}
    return b"".join(
        (
            notification("turn/started", turn=turn),
            notification("item/started", item=user_item),
            notification("item/completed", item=user_item),
            notification("item/started", item={**agent_item, "text": ""}),
            notification("item/agentMessage/delta", itemId="msg_2", delta="hi "),
            notification("item/completed", item=agent_item),
            notification("turn/completed", turn={**turn, "status": "completed"}),
        )
    )


if __name__ == "__main__":
    main()
