"""What a chat at a terminal imports: its packages nobody else imports, and nothing heavy before it begins."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import laneway

SOURCE = Path(laneway.__file__).parent
TERMINAL = SOURCE / "doors" / "chat" / "platforms" / "terminal"
HEAVY = ("prompt_toolkit", "rich", "uvicorn", "sqlite3", "laneway.core.hub", "laneway.doors.chat.service")
LOOK = f"""\
import sys
import laneway.cli.chat
from laneway.cli.main import build_parser
build_parser(["chat", "--help"])
print(*[name for name in {HEAVY!r} if name in sys.modules])
"""


def test_only_the_terminal_imports_what_draws_it() -> None:
    """The extra `chat` is needed for nothing else."""
    named = [path for path in SOURCE.rglob("*.py") if "prompt_toolkit" in path.read_text()]
    found = {path.parent for path in named if _imports(ast.parse(path.read_text()), "prompt_toolkit")}
    assert found == {TERMINAL}


def test_help_loads_nothing_heavy() -> None:
    """In a Python of its own."""
    ran = subprocess.run(
        [sys.executable, "-c", LOOK],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(SOURCE.parent)},
    )
    assert ran.stdout.split() == []


def _imports(tree: ast.AST, package: str) -> bool:
    names = [
        name
        for node in ast.walk(tree)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    ]
    return any(name.split(".")[0] == package for name in names)
