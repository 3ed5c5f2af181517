"""A program in the place of Codex that prints whatever a test wants a worker to print."""

from __future__ import annotations

import sys
from pathlib import Path

HEAD = """\
import json, os, sys
if "--version" in sys.argv:
    print("codex-cli 0.163.0")
    sys.exit()
sys.stdin.read()
def out(value):
    os.write(1, (json.dumps(value) + "\\n").encode())
def item(number, **fields):
    out({"type": "item.completed", "item": {"id": f"i{number}", **fields}})
def end(text="Done."):
    item("end", type="agent_message", text=text)
    out({"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}})
out({"type": "thread.started", "thread_id": "0199a213-81c0-7800-8aa1-bbab2a035a53"})
out({"type": "turn.started"})
"""


def false_codex(folder: Path, name: str, body: str) -> str:
    """Its path. `body` is Python that prints what follows the first two lines."""
    path = folder / name
    path.write_text(f"#!{sys.executable} -IS\n{HEAD}{body}")
    path.chmod(0o755)
    return str(path)
