"""Whatever asks somebody at a terminal asks through one module, which throws away what was typed before."""

from __future__ import annotations

import ast
from pathlib import Path

import laneway

SOURCE = Path(laneway.__file__).parent
READS_PIPES = {
    "cli/ask/inputs.py",
    "cli/bots/setup_bot.py",
    "cli/config_edit.py",
    "cli/jobs/node.py",
    "cli/mail.py",
    "cli/waiting.py",
}
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
    files = [path for folder in ("cli", "terminal") for path in (SOURCE / folder).rglob("*.py")]
    readers = {str(path.relative_to(SOURCE)) for path in files if reads(ast.parse(path.read_text()))}
    assert readers == {"terminal/prompting/keyboard.py", *READS_PIPES}
