"""Proves a server entry: reads it from its file, starts it as its client would, and does the handshake."""

from __future__ import annotations

import os
from pathlib import Path

from laneway.base.errors import ClientFileError
from laneway.cli.clients import edit, files
from laneway.cli.clients.entry import start_of
from laneway.cli.handshake import HandshakeResult, shake
from laneway.cli.registrations import parse


async def prove(
    file: Path, keys: tuple[str, ...], deadline_s: float, *, is_agent: bool = False
) -> HandshakeResult:
    """Start what the file says now; `is_agent`: for an editor, over ACP."""
    try:
        node = edit.look(parse(files.read(file).text, file), keys)
    except (ClientFileError, ValueError):
        node = None
    if not isinstance(node, dict):
        return HandshakeResult(problem="Another program has changed the file meanwhile.", remedy="Try again.")
    return await shake(start_of(node, file, keys, os.environ, Path.cwd()), deadline_s, is_agent=is_agent)
