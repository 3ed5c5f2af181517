"""What a session's model said it had done, one Markdown file a thread: read when it is resumed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from laneway.store.files import make_folder, read_whole, trouble, write_whole

MAX_SUMMARY_BYTES = 64 * 1024
"""It is put in front of a prompt: more would push out what it is meant to recall."""
CUT = "\n\n[cut: the summary was too long]\n"


def read_summary(path: Path) -> str | None:
    """The summary, or `None`: not there, or nothing but space (which says nothing)."""
    data = read_whole(path, MAX_SUMMARY_BYTES)
    text = (data or b"").decode("utf-8", "replace")
    return text if text.strip() else None


class Summaries:
    """Of one identity; the holder of its lock writes."""

    def __init__(self, place: Callable[[str], Path], check: Callable[[], object]) -> None:
        self._place = place
        self._check = check

    def write(self, backend_id: str, text: str) -> None:
        """Replace the thread's summary; a longer one than allowed is cut and says so."""
        path = self._place(backend_id)
        self._check()
        make_folder(path.parent)
        write_whole(path, _bounded(text))

    def read(self, backend_id: str) -> str | None:
        return read_summary(self._place(backend_id))

    def remove(self, backend_id: str) -> None:
        """Also the thread's folder, unless something else lies in it."""
        path = self._place(backend_id)
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
    mark = CUT.encode()
    whole = data[: MAX_SUMMARY_BYTES - len(mark)].decode("utf-8", "ignore")  # no half characters
    return whole.encode() + mark
