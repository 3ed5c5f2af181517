"""Types that threads decode: ready before the first thread comes."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import laneway

SOURCE = Path(laneway.__file__).parent
IN_THREADS = [
    *sorted(SOURCE.glob("base/**/*.py")),
    *sorted(SOURCE.glob("mail/**/*.py")),
    *sorted(SOURCE.glob("store/**/*.py")),
    SOURCE / "codex/access.py",
    SOURCE / "codex/thread_files.py",
    SOURCE / "cli/ask/recent.py",
    SOURCE / "cli/session_list.py",
    SOURCE / "doors/acp/sessions/session_factory.py",
    SOURCE / "doors/acp/sessions/mcp_servers.py",
]
"""What is called through `asyncio.to_thread`."""

FIRST_TIME = """if True:
    import os, sys, tempfile
    from laneway.doors.acp.sessions import mcp_servers
    from laneway.mail import spool
    from laneway.store import editor_sessions, listing, locks, registry, releases

    noted = tempfile.TemporaryFile()
    noted.write(b'{"threadId": "t", "codexHome": "/", "beganAt": 1, "pid": 7}')
    noted.flush()
    looked_up = []
    sys.addaudithook(lambda event, args: looked_up.append(args) if event == "compile" else None)

    defaults = '{"mode": "auto", "model": "m", "configured": {"approvalPolicy": "never"}}'
    assert editor_sessions._record(("s", "t", "/", 1, 2, defaults, '["/"]')).defaults.model == "m"
    entry = b'{"agent_id": "a", "identity": "i", "team": "t", "tag": "x"}'
    content = registry.decode(b'{"version": 1, "sessions": [' + entry + b"]}", "here")
    assert content.rows[0].entry.agent_id == "a"
    assert listing.rows_in(b'{"version": 1, "sessions": []}', "here") == ()
    assert locks._read(noted.fileno()).pid == 7
    assert releases._read(noted.fileno()).thread_id == "t"
    assert mcp_servers._pairs({"env": [{"name": "n", "value": "v"}]}, "env") == {"n": "v"}
    try:
        spool._decode_spooled('{"agent": "a", "team": "t", "draft": {}}')
    except spool.msgspec.ValidationError:
        pass  # half a letter, which has to be looked at all the same
    assert looked_up == [], looked_up
"""
"""msgspec compiles the annotations of a class when it meets it for the first time."""


def test_what_threads_decode_was_looked_up_when_its_module_was_loaded() -> None:
    """Two threads that look the same class up at once crash the interpreter: an agent died of it."""
    subprocess.run([sys.executable, "-c", FIRST_TIME], check=True, timeout=60)


@pytest.mark.parametrize("module", IN_THREADS, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_blocking_module_decodes_a_class_that_is_not_ready(module: Path) -> None:
    """A decoder at module level, or the decorator; `type=` takes only what has no class of its own."""
    tree = ast.parse(module.read_text())
    ready = {
        each.name
        for each in ast.walk(tree)
        if isinstance(each, ast.ClassDef) and any(ast.unparse(by) == "prepare" for by in each.decorator_list)
    }
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call)]
    decoded = [
        keyword.value
        for call in calls
        if ast.unparse(call.func) == "msgspec.json.decode"
        for keyword in call.keywords
        if keyword.arg == "type"
    ]
    converted = [call.args[1] for call in calls if ast.unparse(call.func) == "msgspec.convert"]
    names = {
        name.id
        for kind in (*decoded, *converted)
        for name in ast.walk(kind)
        if isinstance(name, ast.Name) and name.id.lstrip("_")[:1].isupper()
    }
    assert names - ready <= {"Any"}
