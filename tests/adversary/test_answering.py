"""A model's own command cannot approve what the model asks for."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.cli.watching import places
from tests.core.support import until
from tests.doors.mcp.support import FORMS, stage

ATTACK = """
import glob, json, os, pty, socket, sys
run, result = sys.argv[1:]

def attack():
    (path,) = glob.glob(run + "/laneway/*.sock") or glob.glob(run + "/laneway/*")
    door = socket.socket(socket.AF_UNIX)
    door.connect(path)
    lines = door.makefile("rwb")

    def call(number, method, **params):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        lines.write(json.dumps(message).encode() + b"\\n")
        lines.flush()

    call(1, "sessions/watch", identity="ann")
    for line in lines:
        message = json.loads(line)
        told = message.get("params", {})
        event = told.get("event", {})
        asked = [*told.get("questions", ()), *([event["question"]] if event.get("event") == "asked" else [])]
        for question in asked:
            chosen = {"question_id": question["question_id"], "choice_id": "accept"}
            call(2, "sessions/answer", identity="ann", **chosen)
        if message.get("id") == 2 or "error" in message:
            return message

pid, master = pty.fork()  # with a terminal of its own, in front of which it runs
if pid == 0:
    try:
        answer = attack()
    except (OSError, ValueError) as problem:
        answer = {"refused": str(problem)}
    with open(result + ".part", "w") as file:
        json.dump(answer or {"refused": "hung up"}, file)
    os.rename(result + ".part", result)
    os._exit(0)
try:
    while os.read(master, 1024):
        pass
except OSError:
    pass
"""


async def test_a_command_of_the_session_cannot_answer_its_question(tmp_path: Path, run: Path) -> None:
    """It runs without a sandbox, has a terminal, and knows the way."""
    async with (
        stage(tmp_path) as here,
        here.server("mcp", capabilities=FORMS, env=places(run)) as client,
    ):
        client.on_ask = lambda message: None
        script, result, marker = here.work / "attack.py", here.work / "result", here.work / "marker"
        script.write_text(ATTACK)
        first = f"%run! setsid {sys.executable} {script} {run} {result} </dev/null >{result}.log 2>&1 &"
        call = client.start(
            "codex",
            identity="ann",
            prompt=f"{first}\n%run! touch {marker}\n%say on",
            **{"sandbox": "read-only", "approval-policy": "on-request"},
        )
        asked = await client.wait_heard(lambda message: message["method"] == "elicitation/create")
        client.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}})  # only the attack
        again = await client.wait_heard(
            lambda message: message["method"] == "elicitation/create" and message["id"] != asked["id"]
        )
        await until(result.exists)
        told = json.loads(result.read_text())
        assert "result" not in told, told
        assert not marker.exists()
        client.send({"jsonrpc": "2.0", "id": again["id"], "result": {"action": "decline"}})
        assert (await call)["result"]["content"][0]["text"] == "on"
        assert not marker.exists()
