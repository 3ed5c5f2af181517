"""Whether the text of a command names a path, and whether such a command may write at all. Pure.

Generous on purpose: a command that may name a path, or may write, does. It decides only between jobs
that had something under way anyway.
"""

from __future__ import annotations

import re
import shlex
from functools import lru_cache

from laneway.jobs.globs import covers, is_glob

MAX_TEXT_CHARS = 64 * 1024
"""Of a command that is looked through; a longer one carries a file's content in it."""
MAX_REMEMBERED = 4096
_BEFORE = r"(?<![\w.\-])"
_AFTER = r"(?![\w\-]|\.\w|/[\w.])"
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


def mentions(text: str, path: str) -> bool:
    """Whether a command names a path: in full, by its last names, by a folder it is in, or by a glob."""
    text = text[:MAX_TEXT_CHARS]
    names = path.split("/")
    if names[-1] not in text and not is_glob(text) and not any(name in text for name in names[:-1]):
        return False  # quick, and nearly always so
    ends = ["/".join(names[place:]) for place in range(len(names))]
    folders = ["/".join(names[:place]) for place in range(1, len(names))]
    pattern = "|".join(map(re.escape, [*ends, *folders]))
    if re.search(rf"{_BEFORE}(?:\./|/(?:\S*/)?)?(?:{pattern})/?{_AFTER}", text):
        return True
    globs = [word for word in _WORDS.split(text) if is_glob(word)]
    return any(covers([glob], end) for glob in globs for end in ends)


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
