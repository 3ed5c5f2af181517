"""Jobs and a person at random edits in one tree, with a record of who really did what.

Edits happen one after the other, but the commands that they belong to may be under way at the same time.
"""

from __future__ import annotations

import os
import random
import stat
import time
from collections.abc import Callable
from pathlib import Path

from laneway.jobs.attribution import Credits, EditWindow, Interval, JobTraces, credit
from laneway.jobs.snapshots.model import Snapshot
from tests.jobs.trees import Thing, Tree, things

SLACK_S = 0.02
"""Twice the coarsest tick of the kernels we run on: a file may be dated earlier than it was written."""
GAP_S = 3 * SLACK_S
PERSON = "person"
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon")


class Player:
    """One who edits. A job has windows; a person has none."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.windows: list[EditWindow] = []
        self.open: float | None = None
        """When a long command began that is under way now."""
        self.named: list[str] = []
        """What its text names."""
        self.is_merging = False
        """It works in a layer of its own, and its edits come by a merge."""


class Game:
    """A run in one tree."""

    def __init__(self, root: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.tree = Tree(root)
        self._probe = root / "probe"
        self.edits: set[tuple[str, str]] = set()
        """Who really edited what."""
        self.players: dict[str, Player] = {}
        self._owners: dict[str, str] = {}
        """Paths that are the person's, or the jobs': they do not meddle with each other's."""
        self._number = 0
        self._has_acted = True
        """Whether anything has happened since time was last let pass."""
        self._make()
        self.baseline = self.files()
        self.borders: list[tuple[Snapshot, frozenset[str]]] = []

    def _make(self) -> None:
        tree = self.tree
        tree.write(".gitignore", "*.env\nnode_modules/\n")
        tree.write(".gitattributes", "*.crlf text eol=crlf\n*.up filter=upper\n")
        tree.git("config", "filter.upper.clean", "tr a-z A-Z")
        for number in range(6):
            tree.write(f"d{number % 3}/{number}.txt", self._text())
        tree.write("crlf/a.crlf", b"one\r\ntwo\r\n")
        tree.write("x.up", "lower\n")
        tree.write("bin/data", self.chance.randbytes(200))
        tree.write("node_modules/m/index.js", "x")
        tree.write_mode("run.sh", "#!/bin/sh\n", 0o755)
        (tree.root / "link").symlink_to("d0/0.txt")
        tree.commit()
        tree.write("local.env", "A=1\n")
        tree.write("untracked.txt", self._text())
        inner = Tree(tree.root, name="inner")
        inner.write("i/n.txt", self._text())
        inner.commit()

    # ── time ───────────────────────────────────────────────────────────────

    def now(self) -> float:
        """By the clock of the file system, which is what files are dated with."""
        self._probe.write_bytes(b"")
        return self._probe.stat().st_ctime

    def let_time_pass(self) -> float:
        """Until nobody can mistake what comes for what was."""
        begun = now = self.now()
        while self._has_acted and (now := self.now()) < begun + GAP_S:
            time.sleep(GAP_S / 10)  # spares the processor for the tests beside this one
        self._has_acted = False
        return now

    # ── the game ───────────────────────────────────────────────────────────

    def begin(self, name: str, *, is_merging: bool = False) -> None:
        self.players[name] = Player(name)
        self.players[name].is_merging = is_merging
        self._border(name, is_there=True)

    def end(self, name: str) -> None:
        self._close(self.players[name])
        self._border(name, is_there=False)

    def _border(self, name: str, *, is_there: bool) -> None:
        self.let_time_pass()
        active = self.borders[-1][1] if self.borders else frozenset[str]()
        snapshot = self.tree.snapshot(is_baseline=not self.borders)
        self._has_acted = True
        self.borders.append((snapshot, active | {name} if is_there else active - {name}))
        self.let_time_pass()

    def person_edits(self) -> None:
        """While no command is under way."""
        for player in self.players.values():
            self._close(player)
        self.let_time_pass()
        self._edit(PERSON)
        self.let_time_pass()

    def job_edits(self, name: str) -> None:
        player = self.players[name]
        if player.is_merging:
            self._short(player, is_merge=True)
            return
        match self.chance.choice(("patch", "command", "open", "close")):
            case "patch":
                self._short(player, is_patch=True)
            case "command":
                self._short(player)
            case "open" if player.open is None:
                player.open, player.named = self.now(), []
                self._edit_in_the_open(player)
            case _:
                if player.open is not None:
                    self._edit_in_the_open(player)
                self._close(player)

    def _short(self, player: Player, *, is_patch: bool = False, is_merge: bool = False) -> None:
        """A command, patch or merge that is over before anybody else does something."""
        self.let_time_pass()
        start = self.now()
        paths = tuple(self._edit(player.name))
        end = self.now()
        text = "" if is_patch or is_merge else self.chance.choice(("make", f"touch {' '.join(paths)}"))
        player.windows.append(
            EditWindow(start, end, text, paths if is_patch or is_merge else (), is_merge=is_merge)
        )
        self.let_time_pass()

    def _edit_in_the_open(self, player: Player) -> None:
        player.named += self._edit(player.name)

    def _close(self, player: Player) -> None:
        if player.open is not None:
            self._has_acted = True
            text = self.chance.choice(("make", f"sed -i s/a/b/ {' '.join(player.named)}"))
            player.windows.append(EditWindow(player.open, self.now(), text))
            player.open = None

    # ── edits ──────────────────────────────────────────────────────────────

    def _edit(self, who: str) -> list[str]:
        """One random edit; the paths that it changed."""
        self._has_acted = True
        deeds: list[Callable[[str], list[str]]] = [
            self._write,
            self._write,
            self._line,
            self._line,
            self._new,
            self._delete,
            self._rename,
            self._mode,
            self._link,
            self._binary,
            self._line_ends,
            self._folder,
        ]
        group = PERSON if who == PERSON else "jobs"
        while True:
            path = self._pick(group)
            paths = self.chance.choice(deeds)(path) if path else self._new("")
            if paths:
                break
        for path in paths:
            self._owners[path] = group
            self.edits.add((who, path))
        return paths

    def _pick(self, group: str) -> str | None:
        root = self.tree.root
        found = [
            path.relative_to(root).as_posix()
            for path in sorted(root.rglob("*"))
            if (path.is_file() or path.is_symlink())
            and not {".git", "node_modules"}.intersection(path.relative_to(root).parts)
            and path.name not in (".gitignore", ".gitattributes")
        ]
        mine = [path for path in found if self._owners.get(path, group) == group]
        return self.chance.choice(mine) if mine else None

    def _text(self) -> str:
        return "".join(f"{self.chance.choice(WORDS)} {number}\n" for number in range(12))

    def _content(self) -> str:
        self._number += 1
        return f"{self._text()}edit {self._number}\n"

    def _write(self, path: str) -> list[str]:
        if (self.tree.root / path).is_symlink():
            return []
        (self.tree.root / path).write_text(self._content())
        return [path]

    def _line(self, path: str) -> list[str]:
        file = self.tree.root / path
        lines = [] if file.is_symlink() else file.read_bytes().split(b"\n")
        if not lines:
            return []
        self._number += 1
        lines[self.chance.randrange(len(lines))] = b"line %d" % self._number
        file.write_bytes(b"\n".join(lines))
        return [path]

    def _new(self, path: str) -> list[str]:
        self._number += 1
        folder = self.chance.choice(("", "d0/", "new/", f"new{self._number}/deep/"))
        name = f"{folder}n{self._number}.{self.chance.choice(('txt', 'up', 'env'))}"
        self.tree.write_mode(name, self._content(), self.chance.choice((0o644, 0o600, 0o755)))
        return [name]

    def _delete(self, path: str) -> list[str]:
        (self.tree.root / path).unlink()
        return [path]

    def _rename(self, path: str) -> list[str]:
        self._number += 1
        name = f"r{self._number}.txt"
        (self.tree.root / path).rename(self.tree.root / name)
        return [path, name]

    def _mode(self, path: str) -> list[str]:
        file = self.tree.root / path
        if file.is_symlink():
            return []
        mode = file.stat().st_mode & 0o777
        file.chmod(self.chance.choice([other for other in (0o600, 0o640, 0o755, 0o700) if other != mode]))
        return [path]

    def _link(self, path: str) -> list[str]:
        self._number += 1
        (self.tree.root / path).unlink()
        (self.tree.root / path).symlink_to(f"nowhere-{self._number}")
        return [path]

    def _binary(self, path: str) -> list[str]:
        if (self.tree.root / path).is_symlink():
            return []
        (self.tree.root / path).write_bytes(self.chance.randbytes(300))
        return [path]

    def _line_ends(self, path: str) -> list[str]:
        file = self.tree.root / path
        data = b"" if file.is_symlink() else file.read_bytes()
        changed = data.replace(b"\n", b"\r\n") if b"\r\n" not in data else data.replace(b"\r\n", b"\n")
        if changed == data:
            return []
        file.write_bytes(changed)
        return [path]

    def _folder(self, path: str) -> list[str]:
        """A folder with a file takes the place of a file."""
        if path.endswith(".env"):
            return []  # git would ignore the folder, and nobody sees what happens in it
        (self.tree.root / path).unlink()
        self.tree.write(f"{path}/inside.txt", self._content())
        return [path, f"{path}/inside.txt"]

    # ── what comes of it ───────────────────────────────────────────────────

    def credits(self) -> Credits:
        shadow = self.tree.shadow
        intervals = []
        for (before, active), (after, _) in zip(self.borders, self.borders[1:], strict=False):
            changes = shadow.changes(before, after)
            shadow.keep(changes)
            intervals.append(Interval(before.started_at, after.started_at, active, changes))
        shown = {name: JobTraces(tuple(player.windows)) for name, player in self.players.items()}
        return credit(intervals, shown, slack_s=SLACK_S)

    def files(self) -> dict[str, Thing]:
        return files(things(self.tree.root))

    def edited_by(self, *names: str) -> set[str]:
        return {path for who, path in self.edits if who in names}


def files(found: dict[bytes, Thing]) -> dict[str, Thing]:
    """Without folders, by path as text."""
    return {os.fsdecode(path): thing for path, thing in found.items() if not stat.S_ISDIR(thing.kind)}
