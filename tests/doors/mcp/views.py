"""What a test of the door looks at from outside: the model's requests, files on disk, a git repository."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from laneway.core.named.briefing import HEAD
from laneway.core.named.closer import SUMMARY_PROMPT
from laneway.rehearsal.answer import Piece, answer, prompt_and_calls
from laneway.rehearsal.server import Answerer
from tests.doors.mcp.support import Client, Message, Stage, event_kind

QUIET = {"LANEWAY_SUMMARIES": "false"}
"""For servers whose end is not what a test is about: a summary is another turn of the model."""


def outputs(request: Message) -> str:
    """What commands have printed, as the model reads it."""
    return "\n".join(str(item["output"]) for item in request["input"] if item["type"].endswith("_output"))


def texts(request: Message) -> list[str]:
    """All texts of a request to the model, in their order."""
    items = request["input"]
    return [part["text"] for item in items if item["type"] == "message" for part in item["content"]]


def without_summaries(piece: Piece) -> Answerer:
    """A model that answers everything but the request for a summary, which it meets with this."""

    def answerer(request: Message) -> Iterator[Piece]:
        prompt, _ = prompt_and_calls(request["input"])
        return iter([piece]) if prompt == SUMMARY_PROMPT else answer(request)

    return answerer


def base_of(request: Message) -> str:
    """The base instructions stand beside the conversation, or at its head."""
    return str(request.get("instructions") or request["input"][0]["content"][0]["text"])


def told(request: Message) -> dict[str, Any]:
    """What the newest context of a request to the model says of the session."""
    context = next(text for text in reversed(texts(request)) if HEAD in text)
    lines = (line.partition(": ") for line in context.splitlines())
    return {name: json.loads(value) for name, mark, value in lines if mark and value[:1] in ('"', "n")}


def registry(here: Stage, identity: str, team: str = "default") -> list[Message]:
    """The sessions of an identity as another program reads them."""
    found: list[Message] = json.loads((here.sessions / team / identity / "registry.json").read_text())[
        "sessions"
    ]
    return found


def audit(here: Stage, team: str = "default") -> list[Message]:
    lines = (here.sessions / team / "audit.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def configure(here: Stage, text: str) -> None:
    """The user's own settings file."""
    path = here.state / ".config" / "atm" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def repository(folder: Path, branch: str = "main") -> Path:
    """A git repository with one commit; its real path."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", f"--initial-branch={branch}")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "first")
    return folder.resolve()


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def of(kind: str, agent_id: str | None = None) -> Callable[[Message], bool]:
    """Whether a message is this `codex/event`, of this session if one is named."""

    def is_it(message: Message) -> bool:
        return event_kind(message) == kind and agent_id in (None, message["params"]["agent_id"])

    return is_it


async def hanging(client: Client, **arguments: Any) -> tuple[str, Any]:
    """A session whose first turn has begun and does not end: its id, and the answer to come."""
    seen = len(client.heard)
    answer = client.start("codex", prompt="%hang", **arguments)
    begun = await client.wait_heard(
        lambda message: message in client.heard[seen:] and event_kind(message) == "task_started"
    )
    return begun["params"]["agent_id"], answer


async def states(client: Client) -> dict[str, tuple[str, str]]:
    """Status and state of every session that is listed, by agent id."""
    rows = (await client.content("agent_sessions"))["sessions"]
    return {row["agent_id"]: (row["status"], row["state"]) for row in rows}
