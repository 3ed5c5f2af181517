"""A repository of ours for a copy of a work tree: git in the copy shows what it shows in the original.

It borrows the user's contents, and has its own HEAD, references, index and settings, taken over as they were.
Nothing is written to the user's repository, not even a note that there is another work tree.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import msgspec

from laneway.base.foreign_files import read_regular
from laneway.jobs.isolation.git_own import index_is_same
from laneway.jobs.snapshots.work_tree import WorkTree, refused, work_tree
from laneway.wire.git import APART, git, git_apart
from laneway.wire.git_view import MAX_INDEX_BYTES, MAX_RULES_BYTES

MAX_REFERENCES_BYTES = 256 * 1024 * 1024
"""A million references are a tenth of it."""
REFRESH_S = 300.0
"""Git reads all files once. 50,000 on a cold disk take a minute."""
REFERENCES = ("refs/heads", "refs/tags", "refs/remotes", "refs/notes", "refs/replace")
"""All but the stash, and what belongs to one work tree."""
RULES = ("info/exclude", "info/attributes", "info/sparse-checkout", "info/grafts")
BEGUN = "laneway"
"""A folder within git's own, with what there was at the start."""
_LEFT_OUT = re.compile(
    r"core\.(worktree|bare|hookspath|fsmonitor|untrackedcache|splitindex|sshcommand|gitproxy|pager|editor"
    r"|logallrefupdates|repositoryformatversion|sharedrepository|alternaterefs.*)"
    r"|include(if)?\..*|gc\..*|maintenance\..*|extensions\.(worktreeconfig|refstorage|compatobjectformat)",
    re.DOTALL,
)
"""Settings that lead out of the copy, run something by themselves, or are ours to make."""
_FIRST = re.compile(
    r"core\.(autocrlf|eol|safecrlf|filemode|symlinks|ignorecase|precomposeunicode|trustctime|checkstat"
    r"|sparsecheckout|sparsecheckoutcone)|extensions\.(objectformat|partialclone)|index\..*"
)
"""Settings by which files are compared. With them alone no program is run."""


Setting: TypeAlias = tuple[str, str | None]
"""A key and its value; none where the key alone means that it is true."""


class _RepositoryFacts(msgspec.Struct, frozen=True):
    tree: WorkTree
    common: str
    head: str
    """As in the file of that name."""
    references: bytes
    settings: tuple[Setting, ...]


def make_own_repository(original: Path, copy: Path) -> None:
    """For the work tree at `copy`, which has the files of the one at `original`. `TreeRefused` if not.

    `OSError` if it cannot be written.
    """
    facts = _read(original)
    own = copy / ".git"
    for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info", BEGUN):
        (own / name).mkdir(parents=True, exist_ok=True)
    (own / "objects" / "info" / "alternates").write_bytes(_quoted(facts.tree.objects) + b"\n")
    (own / "packed-refs").write_bytes(facts.references)
    for name in RULES:
        _take_over(os.path.join(facts.common, name), own / name, MAX_RULES_BYTES)
    _take_over(os.path.join(facts.tree.git_dir, "info/sparse-checkout"), own / RULES[2], MAX_RULES_BYTES)
    _take_over(os.path.join(facts.common, "shallow"), own / "shallow", MAX_INDEX_BYTES)
    for name in os.listdir(facts.tree.git_dir):
        if name == "index" or name.startswith("sharedindex."):
            _take_over(os.path.join(facts.tree.git_dir, name), own / name, MAX_INDEX_BYTES)
    (own / "HEAD").write_bytes(os.fsencode(facts.head) + b"\n")
    (own / "config").write_bytes(_config(pair for pair in facts.settings if _FIRST.fullmatch(pair[0])))
    _refresh(copy, own)
    (own / "config").write_bytes(_config(facts.settings))
    _take_over(own / "index", own / BEGUN / "index", MAX_INDEX_BYTES)
    (own / BEGUN / "references").write_bytes(_state(own) or b"")


def writes_to_own(copy: Path, shadow: Path) -> tuple[str, ...]:
    """What a worker changed in it: names of references, `HEAD`, `index`. `shadow` is that of the copy."""
    own = copy / ".git"
    before = _table(_read_begun(own / BEGUN / "references"))
    after = _table(_state(own))
    found = {name for name, _ in set(before.items()) ^ set(after.items())}
    if not index_is_same(shadow, own / BEGUN / "index", own / "index"):
        found.add("index")
    return tuple(sorted(found))


# ── the original ───────────────────────────────────────────────────────────


def _read(original: Path) -> _RepositoryFacts:
    tree = work_tree(original)
    common = _ask(tree.top, "rev-parse", "--git-common-dir")
    branch = git(tree.top, "symbolic-ref", "--quiet", "HEAD").line
    commit = git(tree.top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").line
    return _RepositoryFacts(
        tree=tree,
        common=os.path.realpath(os.path.join(tree.top, common.decode(errors="surrogateescape").rstrip("\n"))),
        head=f"ref: {branch}" if branch else commit,
        references=_ask(tree.top, "for-each-ref", "--format=%(objectname) %(refname)", *REFERENCES),
        settings=tuple(_settings(_ask(tree.top, "config", "--list", "--show-scope", "-z"))),
    )


def _ask(top: Path, *words: str) -> bytes:
    ran = git(top, *words, max_bytes=MAX_REFERENCES_BYTES)
    if ran.exit_code != 0 or ran.is_cut:
        raise refused(top, ran)
    return ran.stdout


def _settings(listed: bytes) -> Iterator[Setting]:
    """The repository's own; those of the user are found by git in the copy as well."""
    words = listed.split(b"\0")
    for scope, entry in zip(words[::2], words[1::2], strict=False):
        key, has_value, value = os.fsdecode(entry).partition("\n")
        section, _, name = key.rpartition(".")
        if scope in (b"local", b"worktree") and not _LEFT_OUT.fullmatch(f"{section.lower()}.{name}"):
            yield key, value if has_value else None


def _take_over(source: str | os.PathLike[str], target: Path, max_bytes: int) -> None:
    try:
        data = read_regular(source, max_bytes)
    except FileNotFoundError:
        return
    target.write_bytes(data)


# ── the copy ───────────────────────────────────────────────────────────────


def _config(settings: Iterable[Setting]) -> bytes:
    pairs = list(settings)
    version = "1" if any(key.startswith("extensions.") for key, _ in pairs) else "0"
    ours = [("core.repositoryformatversion", version), ("core.bare", "false"), ("gc.auto", "0")]
    return b"".join(_setting(key, value) for key, value in [*ours, *pairs])


def _setting(key: str, value: str | None) -> bytes:
    """Each in a section of its own: git does not mind."""
    section, _, name = key.rpartition(".")
    section, _, subsection = section.partition(".")
    label = f'{section} "{_escaped(subsection)}"' if subsection else section
    line = name if value is None else f'{name} = "{_on_one_line(_escaped(value))}"'
    return os.fsencode(f"[{label}]\n\t{line}\n")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _on_one_line(text: str) -> str:
    return text.replace("\n", "\\n").replace("\t", "\\t").replace("\b", "\\b")


def _refresh(copy: Path, own: Path) -> None:
    """Let git see once which files are as the index has them: else it would read all of them each time.

    A split index becomes a whole one, which can be copied and read without the part that it shares.
    """
    place = {**APART, "GIT_DIR": os.fspath(own), "GIT_WORK_TREE": os.fspath(copy)}
    words = ("update-index", "-q", "--no-split-index", "--refresh")
    git_apart(copy, *words, timeout_s=REFRESH_S, place=place)


def _state(own: Path) -> bytes | None:
    place = {**APART, "GIT_DIR": os.fspath(own)}
    words = ("for-each-ref", "--format=%(refname) %(objectname)")
    listed = git_apart(own, *words, max_bytes=MAX_REFERENCES_BYTES, place=place)
    try:
        head = read_regular(own / "HEAD", MAX_RULES_BYTES)
    except OSError:
        head = b""
    return None if listed.exit_code else b"HEAD " + head.strip() + b"\n" + listed.stdout


def _read_begun(path: Path) -> bytes | None:
    try:
        return read_regular(path, MAX_REFERENCES_BYTES)
    except OSError:
        return None


def _table(state: bytes | None) -> dict[str, str]:
    lines = (os.fsdecode(line) for line in (state or b"").splitlines())
    return {name: value for name, _, value in (line.partition(" ") for line in lines)}


def _quoted(path: str) -> bytes:
    """Quote a path for git, whatever characters it has."""
    escaped = os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'
