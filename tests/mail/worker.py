"""A mailbox on a disk that turns against it: `python -m tests.mail.worker full|read_only|limited ROOT`."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from laneway.base.errors import StoreError
from laneway.mail.names import Address
from laneway.mail.places import Places
from laneway.mail.post import Post
from laneway.mail.roster import Roster
from laneway.mail.spool import Spool
from tests.full_disk import fill
from tests.mail.box import TEAM, found, inbox, leftovers, letter

CODEX = Address("codex", TEAM)


def trouble(places: Places, hinder: Callable[[], None], relieve: Callable[[], None]) -> None:
    """Write, be hindered, write again; tell how each went and what was on the disk then."""
    box = inbox(places)
    box.append(letter("zero " + "x" * 30_000))
    known = box.read().messages

    def attempts(number: int) -> dict[str, str]:
        told = {}
        actions: dict[str, Callable[[], object]] = {
            "send": lambda: Post(places).send(letter(f"{number} " + "x" * 30_000), CODEX),
            "mark": lambda: box.mark_read(known),
            "register": lambda: Roster(places, TEAM).register(f"n{number}", cwd="/" + "y" * 30_000),
            "spool": lambda: Spool(places).add(CODEX, letter(f"s{number} " + "x" * 30_000)),
        }
        for name, action in actions.items():
            try:
                action()
                told[name] = "ok"
            except StoreError as problem:
                told[name] = str(problem)
        return told

    def disk() -> dict[str, object]:
        entries = box.read(include_read=True)
        return {
            "texts": [message.text.partition(" ")[0] for message in entries.messages],
            "read": [message.is_read for message in entries.messages],
            "problems": len(entries.problems),
            "members": [member.name for member in Roster(places, TEAM).read().members],
            "leftovers": leftovers(places),
        }

    hinder()
    print(json.dumps({"attempts": attempts(1), "disk": disk()}), flush=True)
    relieve()
    print(json.dumps({"attempts": attempts(2), "disk": disk()}), flush=True)


def full(root: Path) -> None:
    """On a small disk of our own, filled up by somebody else."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(root)], check=True)
    filler = root / "filler"

    trouble(found(root, "codex"), lambda: fill(filler), filler.unlink)


def read_only(root: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(root)], check=True)

    def cover() -> None:
        subprocess.run(["mount", "--bind", str(root), str(root)], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", str(root)], check=True)

    def uncover() -> None:
        subprocess.run(["umount", str(root)], check=True)

    trouble(found(root, "codex"), cover, uncover)


def limited(root: Path) -> None:
    """The system cuts every write at its tenth byte."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    trouble(
        found(root, "codex"),
        lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard)),
        lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard)),
    )


if __name__ == "__main__":
    {"full": full, "read_only": read_only, "limited": limited}[sys.argv[1]](Path(sys.argv[2]))
