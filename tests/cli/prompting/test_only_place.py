"""Whatever asks somebody at a terminal asks through one module, which throws away what was typed before."""

from __future__ import annotations

import ast
from pathlib import Path

import laneway.cli

CLI = Path(laneway.cli.__file__).parent
READS_PIPES = {"ask/inputs.py", "config_edit.py", "jobs/node.py", "mail.py", "waiting.py"}
"""Read what is piped in (a prompt, a value, a message, a protocol), or only look whether it is a terminal."""


def reads(tree: ast.AST) -> set[str]:
    """What a module uses that could read from a terminal."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="input")):
                found.add("input")
            case ast.Attribute(value=ast.Name(id="sys"), attr="stdin"):
                found.add("sys.stdin")
            case ast.Attribute(value=ast.Name(id="getpass"), attr="getpass"):
                found.add("getpass")
            case ast.Attribute(value=ast.Name(id="termios")):
                found.add("termios")
            case ast.Constant(value="/dev/tty"):
                found.add("/dev/tty")
    return found


def test_nobody_else_reads_what_a_person_types() -> None:
    """Not login, setup, migrate, config, sessions: they ask nothing, or through this."""
    readers = {str(path.relative_to(CLI)) for path in CLI.rglob("*.py") if reads(ast.parse(path.read_text()))}
    assert readers == {"prompting/keyboard.py", *READS_PIPES}
