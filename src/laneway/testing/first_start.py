"""What Codex writes into an empty home at its first start: its databases and skills, made once and copied.

Half of what a Codex in a throw-away home costs is this. Made by the real Codex that is under test, once
for each process of the tests; a home that is filled with it is one in which Codex was started before.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import sqlite3
import subprocess
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path

from laneway.codex import locate
from laneway.rehearsal.home import throwaway_home

NOBODY = "http://127.0.0.1:9"
"""No model is asked for anything."""
HELLO = (
    {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "laneway", "version": "0"}}},
    {"method": "initialized"},
)
DEADLINE_S = 60.0


def fill(home: Path) -> None:
    """Copy it into a home that has nothing but its configuration."""
    for path in _made_by(locate.find().path).iterdir():
        if path.is_dir():
            shutil.copytree(path, home / path.name, copy_function=os.link)  # nobody changes these files
        elif path.name != "config.toml":
            shutil.copy2(path, home)


@cache
def _made_by(codex: str) -> Path:
    held = ExitStack()
    atexit.register(held.close)
    home = held.enter_context(throwaway_home(NOBODY))
    hello = "".join(json.dumps(message) + "\n" for message in HELLO).encode()
    environment = {**os.environ, "CODEX_HOME": str(home)}
    subprocess.run(
        [codex, "app-server"],
        input=hello,
        env=environment,
        capture_output=True,
        check=True,
        timeout=DEADLINE_S,
    )
    for path in home.glob("*.sqlite"):
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return home
