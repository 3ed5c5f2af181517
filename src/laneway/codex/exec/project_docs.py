"""A repository's AGENTS.md as Codex would read it, for a run in which Codex leaves it out.

Codex (0.153 to 0.169) hides it from the model where the folder is marked as untrusted, which
`laneway.codex.exec.config` does only to keep Codex from writing the opposite down. Then the text goes into
the prompt, where the model would have seen it anyway. Blocking; reads small regular files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from laneway.base.foreign_files import open_regular
from laneway.codex.exec.config import MAX_LEVELS

NAMES = ("AGENTS.override.md", "AGENTS.md")
"""Of these, the first one in each folder."""
ROOT_MARKERS = (".git",)
MAX_BYTES = 32 * 1024
"""Of all of them together, as in Codex; `project_doc_max_bytes` says otherwise."""
LIMIT_BYTES = 256 * 1024
"""More than anybody sets; the prompt has room for a million characters."""


def project_docs(cwd: str, user: Mapping[str, Any]) -> str:
    """The documents from the root of the project down to the folder; empty if there are none."""
    left = _size(user.get("project_doc_max_bytes"))
    names = (*NAMES, *_names(user.get("project_doc_fallback_filenames"), ()))
    texts = []
    for folder in _folders(os.path.realpath(cwd), _names(user.get("project_root_markers"), ROOT_MARKERS)):
        data = _first(folder, names, left)
        left -= len(data)
        text = data.decode("utf-8", "replace")
        if text.strip():
            texts.append(text)
    return "\n\n".join(texts)


def _folders(real: str, markers: tuple[str, ...]) -> Iterator[str]:
    """From the root down; without a root only the folder itself."""
    passed, folder = [real], real
    for _ in range(MAX_LEVELS):
        if any(os.path.lexists(os.path.join(folder, marker)) for marker in markers):
            return reversed(passed)
        folder, before = os.path.dirname(folder), folder
        if folder == before:
            break
        passed.append(folder)
    return iter([real])


def _first(folder: str, names: tuple[str, ...], max_bytes: int) -> bytes:
    """The beginning of the first of these files."""
    for name in names if max_bytes > 0 else ():
        try:
            fd = open_regular(os.path.join(folder, name))
        except OSError:
            continue
        try:
            return os.read(fd, max_bytes)
        except OSError:
            continue
        finally:
            os.close(fd)
    return b""


def _size(value: Any) -> int:
    is_size = isinstance(value, int) and not isinstance(value, bool)
    return max(0, min(value, LIMIT_BYTES)) if is_size else MAX_BYTES


def _names(value: Any, otherwise: tuple[str, ...]) -> tuple[str, ...]:
    """File names out of a list in the config; none that leads elsewhere."""
    if not isinstance(value, list):
        return otherwise
    return tuple(name for name in value if isinstance(name, str) and name and "/" not in name)
