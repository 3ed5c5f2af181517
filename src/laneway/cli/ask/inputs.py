"""The input of `laneway ask`: prompt, standard input, images, output schema and output file."""

from __future__ import annotations

import codecs
import os
import select
import sys
from pathlib import Path
from typing import Any

from laneway.base.errors import UsageError

MAX_PROMPT_CHARS = 1 << 20
"""Codex refuses a longer input (0.163)."""
MAX_STDIN_BYTES = 4 * MAX_PROMPT_CHARS
"""No more is read: a character takes four bytes at most."""
MAX_SCHEMA_BYTES = 1024 * 1024
QUIET_S = 1.0
"""How long standard input may be silent before we say that we wait for it."""
FROM_STDIN = "-"


def prompt_of(argument: str | None) -> str:
    """The whole prompt: the argument, standard input, or both, joined as `codex exec` joins them."""
    is_piped = not is_terminal()
    if argument is None and not is_piped:
        raise UsageError('There is nothing to ask. Try: laneway ask "what does this folder do?"')
    if argument is None or argument == FROM_STDIN:
        text = read_stdin()
    else:
        text = with_stdin(argument, read_stdin()) if is_piped else argument
    if not text.strip():
        raise UsageError("There is nothing to ask: the prompt is empty.")
    if len(text) > MAX_PROMPT_CHARS:
        raise UsageError(
            f"The prompt is too long: it has {len(text)} characters, and Codex takes {MAX_PROMPT_CHARS}."
        )
    return text


def with_stdin(prompt: str, piped: str) -> str:
    """As `codex exec` does it (0.163): in tags after the prompt; empty input adds nothing."""
    if not piped.strip():
        return prompt
    return f"{prompt}\n\n<stdin>\n{piped}{'' if piped.endswith(chr(10)) else chr(10)}</stdin>"


def read_stdin() -> str:
    """All of standard input, up to one byte more than Codex takes."""
    if sys.stdin is None:
        return ""
    try:
        _announce()
        data = sys.stdin.buffer.read(MAX_STDIN_BYTES + 1)
    except OSError as problem:
        raise UsageError(f"Standard input cannot be read: {problem.strerror}.") from problem
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    if len(data) > MAX_STDIN_BYTES:
        raise UsageError(f"Standard input is too long: Codex takes {MAX_PROMPT_CHARS} characters.")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        raise UsageError("Standard input is not text in UTF-8: only text can be piped in.") from None


def _announce() -> None:
    """Say that we read standard input: with a silent pipe the program would seem to hang."""
    if is_terminal():
        if sys.stderr.isatty():
            print("Type what you want to ask; Ctrl-D on an empty line ends it.", file=sys.stderr)
    elif not select.select([sys.stdin], [], [], QUIET_S)[0]:
        print(
            "laneway: reading standard input until it ends (use `</dev/null` for no input)", file=sys.stderr
        )


def is_terminal() -> bool:
    """Whether a person would type what standard input has."""
    return sys.stdin is not None and sys.stdin.isatty()


def images_of(names: list[str]) -> tuple[Path, ...]:
    """The image files, which must exist. One flag may name several, separated by commas."""
    images: list[Path] = []
    for name in names:
        parts = [name] if os.path.exists(os.path.expanduser(name)) else name.split(",")
        images += [_readable(part, "image") for part in parts]
    return tuple(images)


def schema_of(name: str | None) -> Any:
    """The JSON Schema in a file; None if no file was named."""
    if name is None:
        return None
    import json

    file = _readable(name, "schema")
    if file.stat().st_size > MAX_SCHEMA_BYTES:
        raise UsageError(f"The schema {name} is larger than {MAX_SCHEMA_BYTES} bytes.")
    try:
        schema = json.loads(file.read_bytes())
    except ValueError as problem:
        raise UsageError(f"The schema {name} is not valid JSON: {problem}.") from problem
    if not isinstance(schema, dict):
        raise UsageError(f"The schema {name} is not a JSON object.")
    return schema


def output_file(name: str | None) -> Path | None:
    """Where the last message goes: checked before the turn, or the answer could be lost."""
    if name is None:
        return None
    file = Path(name).expanduser().absolute()
    if file.is_dir() or not file.parent.is_dir():
        raise UsageError(f"{name} cannot be written: its folder does not exist, or it is a folder itself.")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise UsageError(f"{name} cannot be written: permission denied.")
    return file


def _readable(name: str, what: str) -> Path:
    file = Path(name).expanduser().absolute()
    if not file.is_file():
        if not name.strip():
            raise UsageError(f"The name of the {what} file is empty.")
        if file.is_dir():
            raise UsageError(f"{name} is a folder: give the {what} as a file.")
        if file.exists():
            raise UsageError(f"{name} is not a regular file: give the {what} as a file.")
        raise UsageError(f"There is no {what} {name}.")
    if not os.access(file, os.R_OK):
        raise UsageError(f"The {what} {name} cannot be read: permission denied.")
    return file
