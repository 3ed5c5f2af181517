"""A tiny ACP agent for the tests of the harness itself: it does what the prompt says, right or wrong.

`say TEXT`, `ask` (a permission), `form` (an elicitation), `wrong` (a message off the schema),
`orphan` (starts a process that outlives it), `die`, `wait` (until it is cancelled). The script
knows no Laneway; it shows what a healthy agent will not.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

Message = dict[str, Any]

SESSION = "sess_01a1e3db-bada-7b41-a602-5d6c0ce39460"
CALL = "call_7"
OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Decline", "kind": "reject_once"},
]


def write(message: Message) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def read() -> Message:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message: Message = json.loads(line)
    return message


def update(kind: str, /, **body: Any) -> None:
    params = {"sessionId": SESSION, "update": {"sessionUpdate": kind, **body}}
    write({"method": "session/update", "params": params})


def say(text: str) -> None:
    update("agent_message_chunk", messageId="msg_12", content={"type": "text", "text": text})


def ask(method: str, params: Message) -> Message:
    write({"id": f"q-{method}", "method": method, "params": {"sessionId": SESSION, **params}})
    return read()


def obey(words: list[str]) -> str:
    """The stop reason."""
    match words:
        case ["say", *rest]:
            for word in rest:
                say(word + " ")
        case ["ask"]:
            update("tool_call", toolCallId=CALL, title="ls", kind="execute", status="pending")
            answer = ask("session/request_permission", {"toolCall": {"toolCallId": CALL}, "options": OPTIONS})
            update("tool_call_update", toolCallId=CALL, status="in_progress")
            update("tool_call_update", toolCallId=CALL, status="completed", rawOutput=answer["result"])
        case ["form"]:
            form = {"mode": "form", "message": "Who?", "requestedSchema": {"properties": {}}}
            say(json.dumps(ask("elicitation/create", form).get("result")))
        case ["wrong"]:
            update("tool_call", toolCallId=CALL, title="ls", status="cancelled")
        case ["orphan"]:
            nothing = subprocess.DEVNULL
            subprocess.Popen(
                ["sleep", "600"], stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
            )
        case ["die"]:
            sys.exit("The end.")
        case ["wait"]:
            say("Waiting.")
            while read()["method"] != "session/cancel":
                pass
            return "cancelled"
    return "end_turn"


def serve(message: Message) -> None:
    match message["method"]:
        case "initialize":
            result: Message = {"protocolVersion": 1, "agentInfo": {"name": "stand-in", "version": "3"}}
        case "session/new":
            result = {"sessionId": SESSION, "configOptions": []}
        case "session/prompt":
            result = {"stopReason": obey(message["params"]["prompt"][0]["text"].split())}
        case _:
            write({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
            return
    write({"id": message["id"], "result": result})
    if message["method"] == "session/new":
        update("available_commands_update", availableCommands=[])


if __name__ == "__main__":
    while True:
        serve(read())
