"""Whether the text of a command names a path, and whether such a command may write at all. Pure.

Generous on purpose: a command that may name a path, or may write, does. It decides only between jobs
that had something under way anyway.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from functools import lru_cache

from laneway.jobs.globs import covers, is_glob

MAX_TEXT_CHARS = 64 * 1024
"""Of a command that is looked through; a longer one carries a file's content in it."""
MAX_REMEMBERED = 4096
_WORDS = re.compile(r"[\s'\"`=:;,(){}<>|&]+")
_JOINTS = re.compile(r"&&?|\|\|?|;|\n")
_HARMLESS = re.compile(r"[012]?>&[012]|[012&]?>\s*/dev/null")
_READERS = re.compile(
    "cat|head|tail|nl|wc|ls|stat|tree|pwd|cd|echo|printf|true|test|which|type|uname|grep|egrep|fgrep|rg|ag|fd|cut"
    "|sort|tr|diff|cmp|comm|md5sum|sha1sum|sha256sum|od|jq|basename|dirname|realpath|readlink|whoami|id|du|df"
)
"""Programs that write only to their standard output, but for the options below."""
_GIT_READERS = re.compile("status|diff|log|show|blame|ls-files|rev-parse|describe|shortlog")
_WRITING_OPTIONS = ("-o", "--output", "-x", "-X", "--exec", "--exec-batch", "--pre")
_SHELLS = frozenset({"sh", "bash", "zsh", "dash"})
_SED_PRINT = re.compile(r"[\d,$]*p")


class Mentions:
    """The paths that the commands of one job name, and when each was named first."""

    def __init__(self, texts: Iterable[tuple[str, float]] = ()) -> None:
        self._words: dict[str, float] = {}
        """As they stand: `main.py`, `src/main.py`."""
        self._ends: dict[str, float] = {}
        """And without the names before: `/home/me/tree/src/main.py` names `src/main.py`, too."""
        self._globs: dict[str, float] = {}
        self._texts: list[tuple[str, float]] = []
        for text, at in texts:
            self.add(text, at)

    def add(self, text: str, at: float) -> None:
        text = text[:MAX_TEXT_CHARS]
        self._texts.append((text, at))
        for word in _WORDS.split(text):
            names = [name for name in word.split("/") if name not in ("", ".")]
            if is_glob(word):
                _note(self._globs, word, at)
            elif names:
                _note(self._words, "/".join(names), at)
                for place in range(len(names)):
                    _note(self._ends, "/".join(names[place:]), at)

    def add_path(self, path: str, at: float) -> None:
        """A path that is named as it stands."""
        _note(self._words, path, at)

    def first(self, path: str) -> float | None:
        """When a path was first named: in full, by its last names, by a folder it is in, or by a glob."""
        names = path.split("/")
        ends = ["/".join(names[place:]) for place in range(len(names))]
        folders = ["/".join(names[:place]) for place in range(1, len(names))]
        found = [self._words[end] for end in ends if end in self._words]
        found += [self._ends[name] for name in (path, *folders) if name in self._ends]
        found += [at for glob, at in self._globs.items() if any(covers([glob], end) for end in ends)]
        if _WORDS.search(names[-1]):  # such a name is no single word
            found += [at for text, at in self._texts if names[-1] in text]
        return min(found, default=None)


def mentions(text: str, path: str) -> bool:
    """Whether a command names a path."""
    return Mentions([(text, 0.0)]).first(path) is not None


def _note(first: dict[str, float], word: str, at: float) -> None:
    first[word] = min(at, first.get(word, at))


@lru_cache(MAX_REMEMBERED)
def may_write(text: str) -> bool:
    """Whether a command may change a file: unless all of it is known only to read."""
    if len(text) > MAX_TEXT_CHARS:
        return True
    try:
        words = shlex.split(text)
    except ValueError:
        return True
    if len(words) >= 3 and words[0].rpartition("/")[2] in _SHELLS and words[1] in ("-c", "-lc"):
        return len(words) > 3 or may_write(words[2])
    bare = _HARMLESS.sub(" ", text)
    if any(mark in bare for mark in (">", "$(", "`", "<(")):
        return True
    return any(_one_may_write(part) for part in _JOINTS.split(bare) if part.strip())


def _one_may_write(part: str) -> bool:
    try:
        words = shlex.split(part)
    except ValueError:
        return True  # a joint within quotes: not taken apart
    program, rest = words[0].rpartition("/")[2], words[1:]
    if any(word.startswith(_WRITING_OPTIONS) for word in rest):
        return True
    if program == "sed":
        return rest[:1] != ["-n"] or len(rest) < 2 or not _SED_PRINT.fullmatch(rest[1])
    if program == "git":
        return not rest or not _GIT_READERS.fullmatch(rest[0])
    return not _READERS.fullmatch(program)
