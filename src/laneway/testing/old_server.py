"""A fake `codex mcp-server` that misbehaves on demand, with the faults of the real one.

Like the real one, it sends a thread's events only while a call on that thread is unanswered, leaves a
cancelled call without an answer, and answers a failed turn before it reports its end. The prompt says
what goes wrong. Run as `python -m laneway.testing.old_server [FLAG…]`:

    --mute        never answers `initialize`
    --deaf        ignores SIGTERM and the end of its standard input

Prompts (the last line counts): `exit N`, `signal NAME`, `hang`, `fail TEXT`, `refuse TEXT` (before
there is a thread or a turn), `silent TEXT` (an answer without an event), `ask` (an approval;
repeats the decision), `patch` (the same for an edit), `call` (a request that nobody knows;
repeats the answer), `news` (notifications that nobody knows), `garbage`, `shuffle` (the end
before the text); anything else is said back. Requests of any other method are answered with the
line that they came in.
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

VERSION = "0.153.4"
BEYOND = '{"n": 1.50e1,"text" : "\\u00e9",  "list":[1, 2 ]}'
"""Params that no encoder would reproduce byte for byte."""


class OldThread:
    def __init__(self, number: int) -> None:
        self.thread_id = f"01a00000-0000-7000-8000-{number:012d}"
        self.turns = itertools.count(1)
        self.turn = ""
        self.open_calls: list[Any] = []
        self.unsent: list[tuple[str, dict[str, Any]]] = []


class OldServer:
    def __init__(self, flags: list[str]) -> None:
        self.flags = flags
        self.threads: dict[str, OldThread] = {}
        self.pending: dict[Any, OldThread] = {}
        self.unanswered: list[Any] = []
        self.ids = itertools.count()

    def serve(self) -> None:
        if "--deaf" in self.flags:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                self.on_answer(message)
            elif "id" in message:
                self.on_request(message["id"], message["method"], message.get("params") or {}, line)
            elif message["method"] == "notifications/cancelled":
                self.on_cancelled(message["params"]["requestId"])
            elif message["method"].startswith("say/"):
                self.send({"jsonrpc": "2.0", "method": "said/back", "params": {"line": line}})
        while "--deaf" in self.flags or any(thread.open_calls for thread in self.threads.values()):
            time.sleep(60)

    def on_request(self, request_id: Any, method: str, params: dict[str, Any], line: str) -> None:
        match method:
            case "initialize":
                if "--mute" not in self.flags:
                    self.reply(request_id, {"serverInfo": {"name": "old", "version": VERSION}})
            case "tools/call":
                self.on_call(request_id, params["name"], params["arguments"])
            case "never/answered":
                self.unanswered.append(request_id)
                self.send({"jsonrpc": "2.0", "method": "never/seen", "params": {"requestId": request_id}})
            case "refused/always":
                error = {"code": -32042, "message": "No.", "data": {"why": [1]}}
                self.send({"jsonrpc": "2.0", "id": request_id, "error": error})
            case _:
                self.reply(request_id, {"line": line})

    def on_call(self, request_id: Any, tool: str, arguments: dict[str, Any]) -> None:
        word, _, rest = arguments["prompt"].rpartition("\n")[2].partition(" ")
        if word == "refuse":
            self.answer(request_id, rest, is_error=True)
            return
        if tool == "codex":
            thread = OldThread(len(self.threads) + 1)
            self.threads[thread.thread_id] = thread
            thread.open_calls.append(request_id)
            self.tell(thread, "session_configured", session_id=thread.thread_id, arguments=arguments)
        else:
            thread = self.threads[arguments["threadId"]]
            thread.open_calls.append(request_id)
            self.send_unsent(thread)
        thread.turn = f"turn-{next(thread.turns)}"
        self.tell(thread, "task_started", turn_id=thread.turn)
        self.tell(thread, "user_message", message=arguments["prompt"])
        self.misbehave(thread, word, rest)

    def send_unsent(self, thread: OldThread) -> None:
        """Send events that had no open call until now; the end of a turn answers the call that is open."""
        events, thread.unsent = thread.unsent, []
        for turn, content in events:
            self.send_event(thread, turn, content)
            if content["type"] == "task_complete":
                self.answer(thread.open_calls.pop(), "")

    def misbehave(self, thread: OldThread, word: str, rest: str) -> None:
        match word:
            case "exit":
                sys.exit(int(rest))
            case "signal":
                faulthandler.disable()  # it dies without a word, whatever the environment says
                os.kill(os.getpid(), signal.Signals[rest])
            case "hang":
                return
            case "fail":
                self.tell(thread, "error", message=rest, codex_error_info="internal_server_error")
                self.answer(thread.open_calls.pop(), rest, is_error=True)
                self.tell(thread, "task_complete", turn_id=thread.turn, last_agent_message=None)
                if thread.open_calls:
                    self.answer(thread.open_calls.pop(), "")
                return
            case "silent":
                self.answer(thread.open_calls.pop(), rest)
                return
            case "ask" | "patch":
                self.ask(thread, word)
                return
            case "call":
                self.pending[request_id := next(self.ids)] = thread
                self.send_raw(f'{{"jsonrpc":"2.0","id":{request_id},"method":"brand/new","params":{BEYOND}}}')
                return
            case "news":
                self.send_raw(f'{{"jsonrpc":"2.0","method":"brand/news","params":{BEYOND}}}')
                self.send({"method": "codex/event", "params": {"msg": {"type": "stray"}, "id": ""}})
            case "garbage":
                sys.stdout.write('not json\n[1,2]\n"text"\n{"neither": 1}\n')
                self.tell(thread, "plan_update", plan=5)
                self.tell(thread, "brand_new", x=1)
                self.send_event(thread, "another-turn", {"type": "agent_message", "message": "stray"})
            case "shuffle":
                self.done(thread, "late")
                self.tell(thread, "agent_message", message="late")
                return
        self.say(thread, f"{word} {rest}".strip())

    def ask(self, thread: OldThread, word: str) -> None:
        self.pending[request_id := next(self.ids)] = thread
        params = {
            "message": "May I?",
            "requestedSchema": {"type": "object", "properties": {}},
            "threadId": thread.thread_id,
            "codex_elicitation": "exec-approval" if word == "ask" else "patch-approval",
            "codex_mcp_tool_call_id": str(thread.open_calls[-1]),
            "codex_event_id": thread.turn,
            "codex_call_id": "call-1",
        }
        if word == "ask":
            params |= {
                "codex_command": ["/bin/bash", "-c", "rm -r x"],
                "codex_cwd": "/",
                "codex_parsed_cmd": [],
            }
        else:
            params["codex_changes"] = {"/a.txt": {"type": "add", "content": "x\n"}}
        self.send({"jsonrpc": "2.0", "id": request_id, "method": "elicitation/create", "params": params})

    def on_answer(self, message: dict[str, Any]) -> None:
        """Repeat the answer that we got, so that a test can see it."""
        thread = self.pending.pop(message["id"])
        result = message.get("error") or message.get("result")
        if result == {"decision": "abort"}:
            self.tell(thread, "turn_aborted", turn_id=thread.turn, reason="interrupted")
        elif thread.turn:
            self.say(thread, json.dumps(result))

    def on_cancelled(self, request_id: Any) -> None:
        if request_id in self.unanswered:
            self.send({"jsonrpc": "2.0", "method": "cancel/seen", "params": {"requestId": request_id}})
        for thread in self.threads.values():
            if request_id in thread.open_calls and thread.turn:
                self.tell(thread, "turn_aborted", turn_id=thread.turn, reason="interrupted")
                thread.turn = ""

    def say(self, thread: OldThread, text: str) -> None:
        self.tell(thread, "agent_message", message=text)
        self.done(thread, text)

    def done(self, thread: OldThread, text: str) -> None:
        self.tell(thread, "task_complete", turn_id=thread.turn, last_agent_message=text)
        # Like the real one, it answers the oldest open call.
        self.answer(thread.open_calls.pop(0), text)

    def tell(self, thread: OldThread, kind: str, **fields: Any) -> None:
        content = {"type": kind, **fields}
        if thread.open_calls:
            self.send_event(thread, thread.turn, content)
        else:
            thread.unsent.append((thread.turn, content))

    def send_event(self, thread: OldThread, turn: str, content: dict[str, Any]) -> None:
        meta = {"requestId": thread.open_calls[0], "threadId": thread.thread_id}
        self.send(
            {"jsonrpc": "2.0", "method": "codex/event", "params": {"_meta": meta, "msg": content, "id": turn}}
        )

    def answer(self, request_id: Any, text: str, *, is_error: bool = False) -> None:
        result: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
        self.reply(request_id, {**result, "isError": True} if is_error else result)

    def reply(self, request_id: Any, result: Any) -> None:
        self.send({"jsonrpc": "2.0", "id": request_id, "result": result})

    def send(self, message: dict[str, Any]) -> None:
        self.send_raw(json.dumps(message))

    def send_raw(self, line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    OldServer(sys.argv[1:]).serve()
