"""Session summaries, written by the model at close and read at resume: one Markdown file per thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from laneway.store.files import make_folder, read_whole, trouble, write_whole

MAX_SUMMARY_BYTES = 64 * 1024
"""A summary is put in front of a prompt: a longer one would take too much of the context."""
CUT = "\n\n[cut: the summary was too long]\n"


def read_summary(path: Path) -> str | None:
    """The summary, or `None` if it is missing or blank."""
    data = read_whole(path, MAX_SUMMARY_BYTES)
    text = (data or b"").decode("utf-8", "replace")
    return text if text.strip() else None


class Summaries:
    """The summaries of one identity, written by the holder of its lock."""

    def __init__(self, path_of: Callable[[str], Path], check: Callable[[], object]) -> None:
        self._path_of = path_of
        self._check = check

    def write(self, backend_id: str, text: str) -> None:
        """Replace the thread's summary; one that is too long is cut, with a note."""
        path = self._path_of(backend_id)
        self._check()
        make_folder(path.parent)
        write_whole(path, _bounded(text))

    def read(self, backend_id: str) -> str | None:
        return read_summary(self._path_of(backend_id))

    def remove(self, backend_id: str) -> None:
        """Delete the summary, and the thread's folder if it is empty then."""
        path = self._path_of(backend_id)
        self._check()
        try:
            path.unlink(missing_ok=True)
            if path.parent.is_dir() and not any(path.parent.iterdir()):
                path.parent.rmdir()
        except OSError as problem:
            raise trouble(path, problem) from problem


def _bounded(text: str) -> bytes:
    data = text.encode("utf-8", "replace")
    if len(data) <= MAX_SUMMARY_BYTES:
        return data
    cut_mark = CUT.encode()
    whole = data[: MAX_SUMMARY_BYTES - len(cut_mark)].decode("utf-8", "ignore")  # no half characters
    return whole.encode() + cut_mark
