"""The other process of the tests: `python worker.py MODE ARGS…`, told when to go on by lines on its stdin."""

from __future__ import annotations

import itertools
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from laneway.base.errors import IdentityHeld, StoreError
from laneway.core.conversations import ConversationRecord, OutputRecord
from laneway.core.named.records import AuditLine
from laneway.store.conversation_locks import ConversationLockFiles
from laneway.store.conversations import StoredConversations
from laneway.store.database import Database
from laneway.store.registry import Entry
from laneway.store.releases import ReleaseFiles
from laneway.store.store import Store
from tests.full_disk import fill

TEAM = "crew"


def entry(number: int, agent_id: str = "a", **fields: Any) -> Entry:
    return Entry(agent_id=agent_id, identity="codex", team=TEAM, tag=str(number), **fields)


def event(text: str) -> AuditLine:
    return AuditLine(event_type="codex", agent_id="a", identity="codex", prompt_summary=text)


def say(value: object) -> None:
    print(json.dumps(value), flush=True)


def hold(root: str, identity: str) -> None:
    """Claim at the word of command, tell the outcome, and hold until the end of stdin."""
    say("ready")
    sys.stdin.readline()
    try:
        claim = Store(Path(root), TEAM).claim(identity, agent_id=f"agent of {os.getpid()}")
    except IdentityHeld as held:
        say({"held_by": held.pid})
    else:
        say({"won": os.getpid()})
        sys.stdin.read()
        claim.release()


def release(folder: str, home: str, thread_id: str) -> None:
    """Begin the release of a thread, and never end it."""
    record = ReleaseFiles(Path(folder), Path(home)).begin(thread_id)
    say("begun")
    signal.pause()
    record.remove()


def parent(root: str) -> None:
    """Claim, then start a program that lives until the end of stdin, and tell its number."""
    with Store(Path(root), TEAM).claim("codex"):
        say(subprocess.Popen(["cat"]).pid)
        signal.pause()


def look(root: str) -> None:
    """Ask who holds an identity, without end."""
    store = Store(Path(root), TEAM)
    say("ready")
    while True:
        store.holder("codex")


def append(root: str, name: str, lines: str, max_bytes: str) -> None:
    """Add lines to the audit log, of many lengths; old files are put away meanwhile."""
    from laneway.store.retention import Retention

    store = Store(
        Path(root),
        TEAM,
        retention=Retention(audit_max_bytes=int(max_bytes), audit_files=100, audit_age=None),
    )
    say("ready")
    sys.stdin.readline()
    for number in range(int(lines)):
        store.audit.append(event(f"{name}:{number}:" + "x" * (number % 150)))
    say("done")


def write(root: str) -> None:
    """Change everything as fast as it goes, and tell after each round what is safe."""
    with Store(Path(root), TEAM).claim("codex") as claim:
        say("ready")
        number = 0
        while True:
            number += 1
            claim.registry.update(entry(number, extra={"ballast": "x" * (number * 997 % 20_000)}))
            claim.audit.append(event(str(number)))
            claim.summaries.write("thread", f"{number} " * 50)
            say(number)


def count(path: str, times: str) -> None:
    """Raise a number in the database so many times."""
    say("ready")
    sys.stdin.readline()
    with Database(Path(path)) as database:
        for _ in range(int(times)):
            database.write(
                lambda c: c.execute(
                    "INSERT INTO meta VALUES ('n', '1') ON CONFLICT DO UPDATE SET value = value + 1"
                )
            )
    say("done")


def increase(path: str) -> None:
    """The same without end, telling each number once it is safe."""
    with Database(Path(path)) as database:
        say("ready")
        for number in itertools.count(1):
            put(database, str(number))
            say(number)


def conversations(database: Database) -> StoredConversations:
    return StoredConversations(database, ConversationLockFiles(database.path.parent / "conversations"))


def conversation(conversation_id: str = "c") -> ConversationRecord:
    return ConversationRecord(
        conversation_id=conversation_id, cwd="/tmp", default_lane="claude", created_at=1.0, used_at=1.0
    )


def open_conversation(folder: str, conversation_id: str) -> None:
    """Hold a conversation until the end of stdin."""
    release = ConversationLockFiles(Path(folder)).hold(conversation_id)
    say("holding")
    sys.stdin.read()
    release()


def take(path: str, conversation_id: str, messages: str) -> None:
    """Store messages that others store, too; tell those that were new."""
    with Database(Path(path)) as database:
        store = conversations(database)
        say("ready")
        sys.stdin.readline()
        numbers = range(int(messages))
        say([n for n in numbers if store.add_input(conversation_id, "web:1", str(n), 1.0, b"x")])


def converse(path: str) -> None:
    """Work in a conversation as fast as it goes, and tell after each message what is safe."""
    with Database(Path(path)) as database:
        release = ConversationLockFiles(Path(path).parent / "conversations").hold("c")
        store = conversations(database)
        store.create(conversation())
        say("ready")
        for number in itertools.count(1):
            input_id = store.add_input("c", "terminal:1", str(number), float(number), b"words %d" % number)
            assert input_id is not None
            output = b"x" * (number * 997 % 20_000)
            store.add_outputs([OutputRecord(conversation_id="c", number=number, at=1.0, output=output)])
            store.mark_input(input_id, "begun", lane="codex", ticket=f"t{number}")
            store.add_hand_back("c", ("claude",), 1.0, b"block")
            say(number)
        release()


def put(database: Database, value: str) -> None:
    database.write(lambda c: c.execute("INSERT OR REPLACE INTO meta VALUES ('n', ?)", (value,)))


def trouble(hinder: Callable[[], None], relieve: Callable[[], None], root: Path) -> None:
    """Write, be hindered, and write again; tell how each went and what the files held then."""
    store = Store(root, TEAM)
    path = root / "laneway.db"
    ballast = {"ballast": "x" * 30_000}
    safe: list[str] = []

    def append_some() -> None:
        """More than fits into the last page of a file, which a full disk still has to give."""
        for number in range(20):
            text = f"{attempt} {number} " + "€" * 150
            claim.audit.append(event(text))
            safe.append(text)

    def save() -> None:
        with Database(path) as database:
            row = ("x", f"{attempt} " * 10_000)
            database.write(lambda c: c.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", row))

    def take_words() -> None:
        with Database(path) as database:
            store = conversations(database)
            if attempt == 1:
                store.create(conversation())
            store.add_input("c", "terminal:1", str(attempt), 1.0, b"x" * 30_000)

    def saved(query: str) -> list[str]:
        """By a plain reader, who needs no right to write."""
        with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
            return [str(row[0]) for row in connection.execute(query)]

    def attempts() -> dict[str, str]:
        told = {}
        for name, action in {
            "registry": lambda: claim.registry.update(entry(attempt, extra=ballast)),
            "audit": append_some,
            "summary": lambda: claim.summaries.write("thread", f"{attempt} " * 10_000),
            "database": save,
            "input": take_words,
        }.items():
            try:
                action()
                told[name] = "ok"
            except StoreError as problem:
                told[name] = str(problem)
        return told

    def found() -> dict[str, Any]:
        view = store.view()
        return {
            "tags": [e.tag for e in view.entries],
            "problems": view.problems,
            "audit": [line["prompt_summary"] for line in store.audit.read().lines] == safe,
            "damaged": store.audit.read().damaged,
            "summary": (store.summary("codex", "thread") or "")[:1],
            "database": saved("SELECT value FROM meta WHERE key = 'x'")[0][:1],
            "inputs": saved("SELECT message_id FROM chat_inputs ORDER BY input_id"),
            "leftovers": [p.name for p in root.rglob("*.laneway-tmp")],
        }

    attempt = 1
    claim = store.claim("codex")
    say({"attempts": attempts(), "found": found()})
    attempt = 2
    hinder()
    say({"attempts": attempts(), "found": found()})
    attempt = 3
    relieve()
    say({"attempts": attempts(), "found": found()})
    claim.release()


def full(root: str) -> None:
    """On a small disk of our own, filled up by somebody else."""
    mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", root)
    filler = Path(root) / "filler"

    trouble(lambda: fill(filler), filler.unlink, Path(root))


def read_only(root: str) -> None:
    mount("-t", "tmpfs", "tmpfs", root)

    def cover() -> None:
        """The folder once more, on top of itself: our open files would keep it from being changed."""
        mount("--bind", root, root)
        mount("-o", "remount,bind,ro", root)

    trouble(cover, lambda: mount("--umount", root), Path(root))


def limited(root: str) -> None:
    """Files may not grow past a few bytes: the system refuses in the midst of a write."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    trouble(
        lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard)),
        lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard)),
        Path(root),
    )


def mount(*arguments: str) -> None:
    command = ["umount", *arguments[1:]] if arguments[0] == "--umount" else ["mount", *arguments]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    MODES: dict[str, Callable[..., None]] = {
        mode.__name__: mode
        for mode in (
            *(hold, release, parent, look, append, write, count, increase, full, read_only, limited),
            *(open_conversation, take, converse),
        )
    }
    MODES[sys.argv[1]](*sys.argv[2:])
