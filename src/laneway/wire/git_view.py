"""A repository as data: its commits, its index and its work tree, without its configuration.

Made for one look and then removed. Git is given a folder of our own in the place of `.git`, with a
copy of the index, the repository's objects to read from, and of its settings only those that say
what bytes mean (line ends, modes, ignored files). So no filter, hook, monitor, driver, helper, remote
or included file of the repository is known to it, whatever that is called and whenever it is written;
nor is one of the user's own, which a repository could feed with anything. Nothing is written to the
repository: what git likes to write while it looks goes into our copy.

Of a submodule only the commit is looked at. Files that go through a filter cannot be compared with
what is stored of them: `filters` has the names. Contents that a partial clone lacks are not fetched.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from laneway.base.foreign_files import NotRegular, open_regular, read_open, read_regular
from laneway.base.repo import find_repo, git_dir
from laneway.wire.git import APART, GIT_S, MAX_OUTPUT_BYTES, NEVER_RAN, GitRun, git, git_apart

MAX_INDEX_BYTES = 512 * 1024 * 1024
"""Of an index: some three million files. It is copied, which takes a tenth of a second for the largest."""
MAX_COMPARED_BYTES = 16 * 1024 * 1024
"""Of a file that git compares line by line, in memory; a larger one only differs or does not."""
MAX_RULES_BYTES = 1024 * 1024
"""Of a file of attributes or of ignored names: a hundred times what people write."""
MAX_SETTINGS_BYTES = 1024 * 1024
"""Of the settings that are looked at."""

_MEANINGFUL = (
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.trustctime",
    "core.checkstat",
    "core.quotepath",
    "extensions.objectformat",
)
"""Settings that are taken over: none names a program, a file or a place."""
_FILES = ("core.excludesfile", "core.attributesfile")
"""Those that name a file of rules, which is copied."""
_ASKED = r"^(core|extensions)\.[a-z]+$|^filter\..*\.(clean|smudge|process)$"
_LOOK_INTO_SUBMODULES = ("diff", "diff-files", "diff-index", "status")
_WORD = re.compile(r"[\w.-]*")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_READ_BY_GIT = ("HEAD", "config", "config.worktree", "commondir", "index", "packed-refs")


class GitView(msgspec.Struct, frozen=True):
    folder: Path
    """Where git is asked: the folder that was named, links resolved."""
    top: Path
    """Of the work tree."""
    head: str | None
    """The commit that is checked out; none before the first."""
    filters: frozenset[str]
    """Names of filters that are configured, by the repository or the user, and are not run."""
    place: dict[str, str]

    def git(
        self,
        *words: str,
        given: bytes = b"",
        max_bytes: int = MAX_OUTPUT_BYTES,
        timeout_s: float = GIT_S,
    ) -> GitRun:
        return git_apart(
            self.folder,
            *_without_submodules(words),
            given=given,
            max_bytes=max_bytes,
            timeout_s=timeout_s,
            place=self.place,
        )


def _without_submodules(words: tuple[str, ...]) -> tuple[str, ...]:
    """Git would look into a submodule by another git, which reads the configuration that it has there."""
    options = words[: words.index("--")] if "--" in words else words
    at = next((at for at, word in enumerate(options) if word in _LOOK_INTO_SUBMODULES), None)
    return words if at is None else (*words[: at + 1], "--ignore-submodules=dirty", *words[at + 1 :])


@contextmanager
def git_view(folder: Path) -> Iterator[GitView | GitRun]:
    """The view of the repository that a folder lies in, or what git (or we) have against it."""
    import tempfile

    found = _discover(folder)
    if isinstance(found, GitRun):
        yield found
        return
    with tempfile.TemporaryDirectory(prefix="laneway-git-") as own:
        try:
            view = _build(found, Path(own))
        except OSError as problem:
            yield _refused(f"{problem.filename or folder} cannot be read ({problem.strerror}).")
            return
        yield view


def odd_git_file(folder: Path) -> str:
    """What git would wait for, in the repository that a folder lies in: its path, or nothing."""
    repo = find_repo(Path(os.path.realpath(folder)))
    own = git_dir(os.fspath(repo.root)) if repo is not None else None
    for name in _READ_BY_GIT if own is not None else ():
        path = os.path.join(own or "", name)
        try:
            os.close(open_regular(path))
        except NotRegular:
            return path
        except OSError:
            pass  # not there, or git will tell
    return ""


class _Found(msgspec.Struct, frozen=True):
    folder: Path
    top: str
    git_dir: str
    common_dir: str
    settings: dict[str, str]
    filters: frozenset[str]
    head: str | None


def _discover(folder: Path) -> _Found | GitRun:
    """Ask the repository about itself. None of this runs anything."""
    if odd := odd_git_file(folder):
        return _refused(f"{odd} is not a regular file.")
    real = Path(os.path.realpath(folder))
    places = []
    for asked in ("--show-toplevel", "--absolute-git-dir", "--git-common-dir"):
        ran = git(real, "rev-parse", asked)
        if ran.code != 0 or not ran.line:
            return ran if ran.code else _refused(f"{folder} is not in a work tree.")
        places.append(os.path.join(real, ran.line))
    top, own, common = places
    if not _belongs(top, own):
        return _refused(f"The configuration of {own} names another work folder: {top}.")
    told = git(real, "config", "-z", "--get-regexp", _ASKED, max_bytes=MAX_SETTINGS_BYTES)
    if told.is_cut or told.code not in (0, 1):
        return _refused(f"The configuration of {own} cannot be read.")
    settings = dict(_settings(told.out))
    head = git(real, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").line
    return _Found(
        folder=real,
        top=top,
        git_dir=own,
        common_dir=common,
        settings=settings,
        filters=frozenset(
            key.split(".", 1)[1].rpartition(".")[0] for key in settings if key.startswith("filter.")
        ),
        head=head if _COMMIT.fullmatch(head) else None,
    )


def _refused(why: str) -> GitRun:
    return GitRun(NEVER_RAN, complaint=why)


def _belongs(top: str, own: str) -> bool:
    """Whether a work tree is the one that the repository lies in: a setting may name any folder."""
    named = git_dir(top)
    try:
        return named is not None and os.path.samefile(named, own)
    except OSError:
        return False


def _settings(out: bytes) -> Iterator[tuple[str, str]]:
    """Keys and values; later ones win. A key without a value means that it is true."""
    for entry in out.split(b"\0"):
        key, has_value, value = os.fsdecode(entry).partition("\n")
        if key:
            yield key, value if has_value else "true"


# ── what git is given ──────────────────────────────────────────────────────


def _build(found: _Found, own: Path) -> GitView:
    for name in ("objects/info", "refs", "info"):
        (own / name).mkdir(parents=True)
    objects = os.path.realpath(os.path.join(found.common_dir, "objects"))
    (own / "objects" / "info" / "alternates").write_bytes(_quoted(objects) + b"\n")
    (own / "HEAD").write_text(f"{found.head or 'ref: refs/heads/none'}\n")
    _copy_index(found, own)
    _copy_rules(os.path.join(found.common_dir, "info", "exclude"), own / "info" / "exclude")
    _copy_rules(os.path.join(found.common_dir, "info", "attributes"), own / "info" / "attributes")
    for key, usual in zip(_FILES, ("ignore", "attributes"), strict=True):
        _copy_rules(_named(found, key, usual), own / key)
    (own / "config").write_text(_config(found, own))
    place = {**APART, "GIT_DIR": str(own), "GIT_WORK_TREE": found.top}
    return GitView(found.folder, Path(found.top), found.head, found.filters, place)


def _config(found: _Found, own: Path) -> str:
    kept = {key: found.settings[key] for key in _MEANINGFUL if _WORD.fullmatch(found.settings.get(key, "\n"))}
    version = 1 if any(key.startswith("extensions.") for key in kept) else 0
    settings = {
        **kept,
        "core.repositoryformatversion": str(version),
        "core.bare": "false",
        "core.bigfilethreshold": str(MAX_COMPARED_BYTES),
        **{key: f'"{own / key}"' for key in _FILES},
    }
    sections = (
        f"[{key.partition('.')[0]}]\n\t{key.partition('.')[2]} = {settings[key]}\n" for key in settings
    )
    return "".join(sections)


def _copy_index(found: _Found, own: Path) -> None:
    """With its time: by that git knows which files it must look into."""
    path = os.path.join(found.git_dir, "index")
    try:
        fd = open_regular(path)
    except FileNotFoundError:
        return  # nothing was ever added
    try:
        (own / "index").write_bytes(read_open(fd, MAX_INDEX_BYTES, path))
        told = os.fstat(fd)
    finally:
        os.close(fd)
    os.utime(own / "index", ns=(told.st_atime_ns, told.st_mtime_ns))
    for name in os.listdir(found.git_dir):
        if name.startswith("sharedindex."):  # the larger part of an index that was split
            (own / name).symlink_to(os.path.join(found.git_dir, name))


def _named(found: _Found, key: str, usual: str) -> str:
    """The user's file of rules, by a setting or in its usual place."""
    if key in found.settings:
        return os.path.join(found.top, os.path.expanduser(found.settings[key]))
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(config, "git", usual)


def _copy_rules(source: str, target: Path) -> None:
    try:
        target.write_bytes(read_regular(source, MAX_RULES_BYTES))
    except OSError as problem:
        if problem.errno == errno.ENOSPC:
            raise
        target.write_bytes(b"")  # none, or none that git could be made to wait for


def _quoted(path: str) -> bytes:
    """As git reads a path that may hold anything."""
    escaped = os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'
