"""Which of a layer's new files git ignores, by the rules as the worker saw them.

Git is asked in a folder of ours that has nothing but the rules: each `.gitignore`, from the layer where it is
there, else from the user's tree. As in a snapshot, a folder in which no file is known is left out as a whole
where a rule names it, and of other ignored files the small ones are not.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from laneway.base.foreign_files import read_open, read_regular
from laneway.jobs.isolation.listing import LayerListing, folders_above, joined
from laneway.jobs.snapshots.beneath import open_file, opened
from laneway.jobs.snapshots.work_tree import refused
from laneway.wire.git import GitRun, git_apart
from laneway.wire.git_view import MAX_RULES_BYTES, git_view

RULES = b".gitignore"
ASKING_S = 120.0
"""For some hundred thousand paths."""
MAX_ANSWER_BYTES = 256 * 1024 * 1024


class Ignoring:
    """Asks about one layer. Every path is relative to the work tree."""

    def __init__(self, tree: Path, upper: int, listing: LayerListing) -> None:
        self._tree = tree
        self._upper = upper
        self._listing = listing
        self._repositories: dict[bytes, bytes] = {}

    def judge(self, new: Collection[bytes]) -> tuple[dict[bytes, bytes], frozenset[bytes]]:
        """Files in an ignored folder, each with that folder, and other ignored files."""
        by_repository: dict[bytes, list[bytes]] = {}
        for path in new:
            by_repository.setdefault(self._repository(path), []).append(path)
        ignored: set[bytes] = set()
        tracked: set[bytes] = set()
        for repository, paths in by_repository.items():
            found = self._ask(repository, paths)
            if found:
                ignored |= found
                tracked |= self._tracked(repository)
        folders_of_tracked = {above for path in tracked for above in folders_above(path)}
        within: dict[bytes, bytes] = {}
        others: set[bytes] = set()
        for path in new:
            above = (
                each for each in folders_above(path) if each in ignored and each not in folders_of_tracked
            )
            folder = next(above, None)
            if folder in tracked or path not in ignored:
                continue  # of an ignored folder in place of a tracked file git says nothing
            if folder is None:
                others.add(path)
            else:
                within[path] = folder
        return within, frozenset(others)

    def _repository(self, path: bytes) -> bytes:
        """The folder of the repository that a path is in; empty for the work tree itself."""
        folder = path.rpartition(b"/")[0]
        if not folder:
            return b""
        if folder not in self._repositories:
            dot_git = joined(folder, b".git")
            is_one = dot_git in self._listing.git or os.path.lexists(self._path(dot_git))
            self._repositories[folder] = folder if is_one else self._repository(folder)
        return self._repositories[folder]

    def _ask(self, repository: bytes, paths: list[bytes]) -> set[bytes]:
        """What rules name, of these paths and the folders that they are in."""
        prefix = repository + b"/" if repository else b""
        folders = sorted(
            {above for path in paths for above in folders_above(path) if above.startswith(prefix)}
        )
        # With a dot in front, or a colon at the beginning would have a meaning.
        asked = b"".join(b"./%s\0" % path[len(prefix) :] for path in (*folders, *paths))
        with tempfile.TemporaryDirectory(prefix="laneway-rules-") as name, self._place(repository) as place:
            rules = os.fsencode(name)
            for folder in (repository, *folders):
                self._copy_rules(folder, os.path.join(rules, folder[len(prefix) :]))
            ran = git_apart(
                Path(name),
                *("check-ignore", "--no-index", "-z", "--stdin"),
                stdin=asked,
                max_bytes=MAX_ANSWER_BYTES,
                timeout_s=ASKING_S,
                place={**place, "GIT_WORK_TREE": name},
            )
        if ran.exit_code not in (0, 1) or ran.is_cut:
            raise refused(self._tree, ran)
        return {prefix + path[2:] for path in ran.stdout.split(b"\0")[:-1]}

    def _tracked(self, repository: bytes) -> set[bytes]:
        """The files that git has: no rule ignores them, nor the folders that they are in."""
        prefix = repository + b"/" if repository else b""
        if prefix and not os.path.lexists(self._path(joined(repository, b".git"))):
            return set()  # one that the job has made
        with git_view(Path(self._path(repository))) as view:
            if isinstance(view, GitRun):
                raise refused(self._tree, view)
            ran = view.git("ls-files", "-z", max_bytes=MAX_ANSWER_BYTES, timeout_s=ASKING_S)
        if ran.exit_code != 0 or ran.is_cut:
            raise refused(self._tree, ran)
        return {prefix + name for name in ran.stdout.split(b"\0")[:-1]}

    @contextmanager
    def _place(self, repository: bytes) -> Iterator[dict[str, str]]:
        """Where git finds rules that are in no work tree. A repository made by the job has the tree's."""
        with git_view(Path(self._path(repository))) as view:
            if not isinstance(view, GitRun):
                yield view.place
            elif not repository:
                raise refused(self._tree, view)
            else:
                with self._place(b"") as place:
                    yield place

    # ── the rules ──────────────────────────────────────────────────────────

    def _copy_rules(self, folder: bytes, target: bytes) -> None:
        try:
            os.makedirs(target, exist_ok=True)
            for data in self._rules(joined(folder, RULES)):
                Path(os.fsdecode(os.path.join(target, RULES))).write_bytes(data)
        except OSError:
            pass  # too deep for a path, or no file that can be read: then it has no rules

    def _rules(self, path: bytes) -> Iterator[bytes]:
        if path in self._listing.files:
            folder, _, name = path.rpartition(b"/")
            with opened(self._upper, folder.split(b"/") if folder else []) as fd:
                rules = open_file(fd, name)
                try:
                    yield read_open(rules, MAX_RULES_BYTES, os.fsdecode(path))
                finally:
                    os.close(rules)
        elif not self._listing.hides(path):
            yield read_regular(self._path(path), MAX_RULES_BYTES, follow_links=False)

    def _path(self, path: bytes) -> str:
        return os.path.join(self._tree, os.fsdecode(path))
