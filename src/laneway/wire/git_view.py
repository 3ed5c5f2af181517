"""A read-only view of a git repository: commits, index and work tree, without its configuration.

A view is temporary. Instead of `.git`, git gets a folder of our own with a copy of the index, the
repository's objects to read from, and only those of its settings that say what bytes mean (line ends,
modes, ignored files). So git knows no filter, hook, monitor, driver, helper, remote or included file of
the repository, whatever its name and whenever it is written; nor one of the user, which a repository
could feed with anything. Nothing is written to the repository: what git writes while it reads goes
into our copy.

Of a submodule only the commit is read. Files that go through a filter cannot be compared with their
stored form: `filters` has the names. Contents that a partial clone lacks are not fetched.
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
from laneway.wire.git import APART, GIT_S, MAX_OUTPUT_BYTES, NEVER_RAN, GitRun, git, git_apart, rev_parse

MAX_INDEX_BYTES = 512 * 1024 * 1024
"""Of an index: some three million files. Copying the largest takes a tenth of a second."""
MAX_COMPARED_BYTES = 16 * 1024 * 1024
"""Of a file that git compares line by line, in memory; of a larger one it only says that it differs."""
MAX_RULES_BYTES = 1024 * 1024
"""Of an attributes or ignore file: a hundred times what people write."""
MAX_SETTINGS_BYTES = 1024 * 1024
"""Of the settings that are read."""

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
"""Settings that are copied: none names a program or a path."""
_FILES = ("core.excludesfile", "core.attributesfile")
"""Settings that name a file of rules, which is copied."""
_SETTINGS_READ = r"^(core|extensions)\.[a-z]+$|^filter\..*\.(clean|smudge|process)$"
_LOOK_INTO_SUBMODULES = ("diff", "diff-files", "diff-index", "status")
_PLAIN_VALUE = re.compile(r"[\w.-]*")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_READ_BY_GIT = ("HEAD", "config", "config.worktree", "commondir", "index", "packed-refs")


class GitView(msgspec.Struct, frozen=True):
    """A repository that git commands can read."""

    folder: Path
    """The working directory of git: the folder that was named, links resolved."""
    top: Path
    """Of the work tree."""
    head: str | None
    """The commit that is checked out; none before the first."""
    filters: frozenset[str]
    """Names of filters that are configured, by the repository or the user, and are not run."""
    place: dict[str, str]

    def git(
        self,
        *arguments: str,
        stdin: bytes = b"",
        max_bytes: int = MAX_OUTPUT_BYTES,
        timeout_s: float = GIT_S,
    ) -> GitRun:
        return git_apart(
            self.folder,
            *_without_submodules(arguments),
            stdin=stdin,
            max_bytes=max_bytes,
            timeout_s=timeout_s,
            place=self.place,
        )


def _without_submodules(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Git would start another git in a submodule, which would read the configuration there."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    position = next(
        (position for position, word in enumerate(options) if word in _LOOK_INTO_SUBMODULES), None
    )
    return (
        arguments
        if position is None
        else (*arguments[: position + 1], "--ignore-submodules=dirty", *arguments[position + 1 :])
    )


@contextmanager
def git_view(folder: Path) -> Iterator[GitView | GitRun]:
    """The view of the repository of a folder, or a `GitRun` with the reason why there is none."""
    import tempfile

    facts = _discover(folder)
    if isinstance(facts, GitRun):
        yield facts
        return
    with tempfile.TemporaryDirectory(prefix="laneway-git-") as view_dir:
        try:
            view = _build(facts, Path(view_dir))
        except OSError as problem:
            yield _refused(f"{problem.filename or folder} cannot be read ({problem.strerror}).")
            return
        yield view


def odd_git_file(folder: Path) -> str:
    """A file in the repository of a folder on which git would hang, such as a pipe: its path, or nothing."""
    repo = find_repo(Path(os.path.realpath(folder)))
    repo_git_dir = git_dir(os.fspath(repo.root)) if repo is not None else None
    for name in _READ_BY_GIT if repo_git_dir is not None else ():
        path = os.path.join(repo_git_dir or "", name)
        try:
            os.close(open_regular(path))
        except NotRegular:
            return path
        except OSError:
            pass  # it is missing, or git will report it
    return ""


class _RepoFacts(msgspec.Struct, frozen=True):
    folder: Path
    top: str
    git_dir: str
    common_dir: str
    settings: dict[str, str]
    filters: frozenset[str]
    head: str | None


def _discover(folder: Path) -> _RepoFacts | GitRun:
    """Ask the repository about itself. None of this runs a program of the repository."""
    if odd_file := odd_git_file(folder):
        return _refused(f"{odd_file} is not a regular file.")
    real = Path(os.path.realpath(folder))
    found = rev_parse(real, "--show-toplevel", "--absolute-git-dir", "--git-common-dir")
    if isinstance(found, GitRun):
        return found
    top, repo_git_dir, common = (os.path.join(real, path) for path in found)
    if not _belongs(top, repo_git_dir):
        return _refused(f"The configuration of {repo_git_dir} names another work folder: {top}.")
    config_output = git(real, "config", "-z", "--get-regexp", _SETTINGS_READ, max_bytes=MAX_SETTINGS_BYTES)
    if config_output.is_cut or config_output.exit_code not in (0, 1):
        return _refused(f"The configuration of {repo_git_dir} cannot be read.")
    settings = dict(_settings(config_output.stdout))
    head = git(real, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").line
    return _RepoFacts(
        folder=real,
        top=top,
        git_dir=repo_git_dir,
        common_dir=common,
        settings=settings,
        filters=frozenset(
            key.split(".", 1)[1].rpartition(".")[0] for key in settings if key.startswith("filter.")
        ),
        head=head if _COMMIT.fullmatch(head) else None,
    )


def _refused(why: str) -> GitRun:
    return GitRun(NEVER_RAN, error=why)


def _belongs(top: str, repo_git_dir: str) -> bool:
    """Whether this work tree belongs to the repository: a setting may name any folder."""
    linked_dir = git_dir(top)
    try:
        return linked_dir is not None and os.path.samefile(linked_dir, repo_git_dir)
    except OSError:
        return False


def _settings(out: bytes) -> Iterator[tuple[str, str]]:
    """Keys and values; later ones win. A key without a value means true."""
    for entry in out.split(b"\0"):
        key, has_value, value = os.fsdecode(entry).partition("\n")
        if key:
            yield key, value if has_value else "true"


# ── the view's folder ──────────────────────────────────────────────────────


def _build(facts: _RepoFacts, view_dir: Path) -> GitView:
    for name in ("objects/info", "refs", "info"):
        (view_dir / name).mkdir(parents=True)
    objects = os.path.realpath(os.path.join(facts.common_dir, "objects"))
    (view_dir / "objects" / "info" / "alternates").write_bytes(_quoted(objects) + b"\n")
    (view_dir / "HEAD").write_text(f"{facts.head or 'ref: refs/heads/none'}\n")
    _copy_index(facts, view_dir)
    _copy_rules(os.path.join(facts.common_dir, "info", "exclude"), view_dir / "info" / "exclude")
    _copy_rules(os.path.join(facts.common_dir, "info", "attributes"), view_dir / "info" / "attributes")
    for key, usual in zip(_FILES, ("ignore", "attributes"), strict=True):
        _copy_rules(_named(facts, key, usual), view_dir / key)
    (view_dir / "config").write_text(_config(facts, view_dir))
    place = {**APART, "GIT_DIR": str(view_dir), "GIT_WORK_TREE": facts.top}
    return GitView(facts.folder, Path(facts.top), facts.head, facts.filters, place)


def _config(facts: _RepoFacts, view_dir: Path) -> str:
    copied = {
        key: facts.settings[key]
        for key in _MEANINGFUL
        if _PLAIN_VALUE.fullmatch(facts.settings.get(key, "\n"))
    }
    version = 1 if any(key.startswith("extensions.") for key in copied) else 0
    settings = {
        **copied,
        "core.repositoryformatversion": str(version),
        "core.bare": "false",
        "core.bigfilethreshold": str(MAX_COMPARED_BYTES),
        **{key: f'"{view_dir / key}"' for key in _FILES},
    }
    sections = (
        f"[{key.partition('.')[0]}]\n\t{key.partition('.')[2]} = {settings[key]}\n" for key in settings
    )
    return "".join(sections)


def _copy_index(facts: _RepoFacts, view_dir: Path) -> None:
    """Copy the index with its time: by that git knows which files it must read again."""
    path = os.path.join(facts.git_dir, "index")
    try:
        fd = open_regular(path)
    except FileNotFoundError:
        return  # no file was ever added
    try:
        (view_dir / "index").write_bytes(read_open(fd, MAX_INDEX_BYTES, path))
        status = os.fstat(fd)
    finally:
        os.close(fd)
    os.utime(view_dir / "index", ns=(status.st_atime_ns, status.st_mtime_ns))
    for name in os.listdir(facts.git_dir):
        if name.startswith("sharedindex."):  # the larger part of an index that was split
            (view_dir / name).symlink_to(os.path.join(facts.git_dir, name))


def _named(facts: _RepoFacts, key: str, usual: str) -> str:
    """The user's file of rules, from a setting or in its usual place."""
    if key in facts.settings:
        return os.path.join(facts.top, os.path.expanduser(facts.settings[key]))
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(config, "git", usual)


def _copy_rules(source: str, target: Path) -> None:
    try:
        target.write_bytes(read_regular(source, MAX_RULES_BYTES))
    except OSError as problem:
        if problem.errno == errno.ENOSPC:
            raise
        target.write_bytes(b"")  # it is missing, or something on which git could hang


def _quoted(path: str) -> bytes:
    """Quote a path for git, whatever characters it has."""
    escaped = os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'
