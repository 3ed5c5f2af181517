"""Repositories that try to have a program run, or to hold up whoever looks at them.

`Trap`s name a program of the repository's own wherever git knows a place for one. Each tells how plain git
is made to run it, so that a test can show that it is armed before it shows that we do not step into it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.doors.acp.repos import Repo

HOOKS = (
    "post-index-change",
    "pre-applypatch",
    "applypatch-msg",
    "post-applypatch",
    "reference-transaction",
    "pre-auto-gc",
)
NOTE = """\
#!/bin/sh
line="$0 $*, started by"
pid=$PPID
while [ "$pid" -gt 1 ] && [ -r "/proc/$pid/stat" ]; do
  line="$line $(cat "/proc/$pid/comm")"
  pid=$(sed 's/.*) . //' "/proc/$pid/stat" | cut -d ' ' -f 1)
done
echo "$line" >> "{mark}"
"""
"""How a program notes that it is run, and by whom."""
GIT = ("git", "-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgSign=false")


class Hostile:
    """A repository with a tracked file, and a program that notes each time that it is run."""

    def __init__(self, folder: Path) -> None:
        self.repo = Repo(folder / "repository")
        self.mark = folder / "was-run"
        self.program = folder / "program"
        note = NOTE.format(mark=self.mark)
        self.program.write_text(f"{note}cat 2>/dev/null\n")
        self.program.chmod(0o755)
        self.server = folder / "server"
        """The same for where git would talk with the program, and wait for its answers."""
        self.server.write_text(f"{note}exit 1\n")
        self.server.chmod(0o755)
        self.home = folder / "user-home"
        self.home.mkdir()
        (self.home / ".gitconfig").write_text('[filter "lfs"]\n\tclean = cat\n')  # as half of all users have
        self.repo.write("tracked.txt", "one\n")
        self.repo.write("other.txt", "two\n")
        self.repo.commit("first")

    @property
    def root(self) -> Path:
        return self.repo.root

    def config(self, key: str, value: str) -> None:
        self.repo.git("config", key, value)

    def change(self) -> None:
        """What there is to see: an edited file and a new one."""
        self.repo.write("tracked.txt", "changed\n")
        self.repo.write("new.txt", "new\n")

    def was_run(self, *, but_by: str = "") -> str:
        """What the program noted since, a line each time; `but_by` leaves out what this one started."""
        if not self.mark.exists():
            return ""
        noted = self.mark.read_text().splitlines(keepends=True)
        self.mark.unlink()
        return "".join(line for line in noted if not but_by or but_by not in line.rpartition("started by")[2])

    def environment(self) -> dict[str, str]:
        return {**os.environ, "HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / ".config")}

    def plain_git(self, *words: str) -> None:
        """As a person runs it, without any care; it may fail."""
        subprocess.run(
            [*GIT, *words],
            cwd=self.root,
            env=self.environment(),
            capture_output=True,
            timeout=60,
            check=False,
        )


class Trap:
    """How it is set, and what plain git is asked in order to step into it."""

    def __init__(self, build: Callable[[Hostile], None], *provocations: tuple[str, ...]) -> None:
        self.name = build.__name__
        self.build = build
        self.provocations = provocations

    def set(self, folder: Path) -> Hostile:
        made = Hostile(folder)
        self.build(made)
        made.change()
        made.was_run()
        return made


# ── programs by config ─────────────────────────────────────────────────────


def clean_filter(made: Hostile) -> None:
    made.repo.write(".gitattributes", "* filter=evil\n")
    made.config("filter.evil.clean", str(made.program))
    made.config("filter.evil.smudge", str(made.program))
    made.config("filter.evil.required", "true")


def filter_process(made: Hostile) -> None:
    made.repo.write(".gitattributes", "* filter=evil\n")
    made.config("filter.evil.process", str(made.program))


def filter_by_private_attributes(made: Hostile) -> None:
    """Those that are no part of the work tree."""
    made.repo.write(".git/info/attributes", "* filter=evil\n")
    made.config("filter.evil.clean", str(made.program))


def filter_by_an_included_file(made: Hostile) -> None:
    made.repo.write(".gitattributes", "* filter=evil\n")
    included = made.repo.write("included.cfg", f'[filter "evil"]\n\tclean = {made.program}\n')
    made.config("include.path", str(included))


def filter_with_an_odd_name(made: Hostile) -> None:
    """Which cannot be overridden on a command line."""
    made.repo.write(".gitattributes", "* filter=e=v.i\n")
    made.config("filter.e=v.i.clean", str(made.program))


def filter_of_the_users_own(made: Hostile) -> None:
    """The user has it for other repositories; here a repository chooses what it is fed with."""
    made.repo.write(".gitattributes", "* filter=mine\n")
    (made.home / ".gitconfig").write_text(f'[filter "mine"]\n\tclean = {made.program}\n')


def filter_in_the_config_of_a_worktree(made: Hostile) -> None:
    made.repo.write(".gitattributes", "* filter=evil\n")
    made.config("extensions.worktreeConfig", "true")
    made.repo.git("config", "--worktree", "filter.evil.clean", str(made.program))


def file_system_monitor(made: Hostile) -> None:
    made.config("core.fsmonitor", str(made.program))


def external_diff(made: Hostile) -> None:
    made.config("diff.external", str(made.program))


def diff_driver(made: Hostile) -> None:
    made.repo.write(".gitattributes", "* diff=evil\n")
    made.config("diff.evil.command", str(made.program))


def text_conversion(made: Hostile) -> None:
    made.repo.write(".gitattributes", "* diff=evil\n")
    made.config("diff.evil.textconv", str(made.program))


def signature_check(made: Hostile) -> None:
    """Git asks a program about the signature of a commit that it shows."""
    commit = made.repo.git("cat-file", "commit", "HEAD")
    head, _, message = commit.partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    signed = made.root.parent / "commit"
    signed.write_text(f"{head}\n{signature}\n\n{message}")
    sha = made.repo.git("hash-object", "-t", "commit", "-w", str(signed)).strip()
    made.repo.git("update-ref", "HEAD", sha)
    made.config("log.showSignature", "true")
    made.config("gpg.program", str(made.program))


def hooks(made: Hostile) -> None:
    for name in HOOKS:
        path = made.repo.write(f".git/hooks/{name}", made.program.read_text())
        path.chmod(0o755)


def hooks_elsewhere(made: Hostile) -> None:
    folder = made.root / "hooks"
    folder.mkdir()
    for name in HOOKS:
        (folder / name).write_text(made.program.read_text())
        (folder / name).chmod(0o755)
    made.config("core.hooksPath", str(folder))


# ── programs by what is missing, or further inside ─────────────────────────


def _partial_clone(made: Hostile) -> None:
    """The content of a tracked file is missing, and is to be had from a remote."""
    blob = made.repo.git("rev-parse", "HEAD:tracked.txt").strip()
    (made.root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for key, value in (
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
    ):
        made.config(key, value)


def missing_content_from_a_command(made: Hostile) -> None:
    _partial_clone(made)
    made.config("protocol.ext.allow", "always")
    made.config("remote.origin.url", f"ext::{made.server}")


def missing_content_by_ssh(made: Hostile) -> None:
    _partial_clone(made)
    made.config("core.sshCommand", str(made.server))
    made.config("remote.origin.url", "ssh://example.invalid/x")


def missing_content_from_a_neighbour(made: Hostile) -> None:
    """A folder of this machine, served by a program of the repository's choice."""
    _partial_clone(made)
    neighbour = Repo(made.root.parent / "neighbour")
    neighbour.commit()
    made.config("remote.origin.url", str(neighbour.root))
    made.config("remote.origin.uploadpack", str(made.server))


def filter_in_a_submodule(made: Hostile) -> None:
    """Git looks into it with a process of its own."""
    inner = Repo(made.root / "inner")
    inner.write("x.txt", "x\n")
    inner.write(".gitattributes", "* filter=evil\n")
    inner.commit()
    made.repo.git("add", "inner")
    made.repo.commit("with a submodule")
    inner.git("config", "filter.evil.clean", str(made.program))
    inner.git("config", "core.fsmonitor", str(made.program))
    inner.write("x.txt", "changed\n")


def merge_driver(made: Hostile) -> None:
    made.repo.write(".gitattributes", "* merge=evil\n")
    made.repo.commit()
    made.repo.git("branch", "side")
    made.repo.write("other.txt", "ours\n")
    made.repo.commit()
    made.repo.git("checkout", "--quiet", "side")
    made.repo.write("other.txt", "theirs\n")
    made.repo.commit()
    made.config("merge.evil.driver", f"{made.program} %O %A %B")


def alias(made: Hostile) -> None:
    """Of commands that do not exist; those that do cannot be replaced."""
    for name in ("diff", "status", "apply", "look"):
        made.config(f"alias.{name}", f"!{made.program}")


_LOOKS = (("diff", "HEAD"), ("status",))
TRAPS = (
    Trap(clean_filter, *_LOOKS),
    Trap(filter_process, *_LOOKS),
    Trap(filter_by_private_attributes, *_LOOKS),
    Trap(filter_by_an_included_file, *_LOOKS),
    Trap(filter_with_an_odd_name, *_LOOKS),
    Trap(filter_of_the_users_own, *_LOOKS),
    Trap(filter_in_the_config_of_a_worktree, *_LOOKS),
    Trap(file_system_monitor, *_LOOKS),
    Trap(external_diff, ("diff", "HEAD")),
    Trap(diff_driver, ("diff", "HEAD")),
    Trap(text_conversion, ("diff", "HEAD")),
    Trap(signature_check, ("log", "-1")),
    Trap(hooks, ("add", "new.txt")),
    Trap(hooks_elsewhere, ("add", "new.txt")),
    Trap(missing_content_from_a_command, ("diff", "HEAD")),
    Trap(missing_content_by_ssh, ("diff", "HEAD")),
    Trap(missing_content_from_a_neighbour, ("diff", "HEAD")),
    Trap(filter_in_a_submodule, *_LOOKS),
    Trap(merge_driver, ("checkout", "--force", "side"), ("merge", "main")),
    Trap(alias, ("look",)),
)
traps = pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)


# ── what holds up whoever looks ────────────────────────────────────────────


def pipe_as_head(root: Path) -> None:
    (root / ".git").mkdir(parents=True)
    os.mkfifo(root / ".git" / "HEAD")


def pipe_as_git_config(root: Path) -> None:
    Repo(root).commit()
    (root / ".git" / "config").unlink()
    os.mkfifo(root / ".git" / "config")


def pipe_as_settings(root: Path) -> None:
    Repo(root).commit()
    os.mkfifo(root / ".atm.toml")


def git_file_that_leads_to_a_pipe(root: Path) -> None:
    elsewhere = root.with_name(f"{root.name}-git")
    root.mkdir(parents=True)
    elsewhere.mkdir()
    for name in ("HEAD", "commondir", "gitdir", "config"):
        os.mkfifo(elsewhere / name)
    (root / ".git").write_text(f"gitdir: {elsewhere}\n")


def git_file_that_leads_to_the_devices(root: Path) -> None:
    root.mkdir(parents=True)
    (root / ".git").write_text("gitdir: /dev/fd\n")


def gigabytes_as_head(root: Path) -> None:
    (root / ".git").mkdir(parents=True)
    with (root / ".git" / "HEAD").open("wb") as file:
        file.truncate(10 * 1024**3)


def links_in_a_circle(root: Path) -> None:
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "HEAD").symlink_to("HEAD")
    (root / ".atm.toml").symlink_to(".atm.toml")


Stall = Callable[[Path], None]
STALLS: tuple[Stall, ...] = (
    pipe_as_head,
    pipe_as_git_config,
    pipe_as_settings,
    git_file_that_leads_to_a_pipe,
    git_file_that_leads_to_the_devices,
    gigabytes_as_head,
    links_in_a_circle,
)
stalls = pytest.mark.parametrize("stall", STALLS, ids=lambda stall: stall.__name__)
