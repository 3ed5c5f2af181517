"""A home and a repository to read settings in: real files, nothing of this machine."""

from __future__ import annotations

from pathlib import Path

from laneway.base import trust, vetting
from laneway.base.settings import Settings, load


class Folders:
    def __init__(self, top: Path) -> None:
        self.home = top / "home"
        self.repo = top / "repo"
        self.deep = self.repo / "deep" / "down"
        self.global_file = self.home / ".config" / "atm" / "config.toml"
        self.own_file = self.home / ".config" / "laneway" / "config.toml"
        self.repo_file = self.repo / ".atm.toml"
        self.own_repo_file = self.repo / ".laneway.toml"
        self.global_file.parent.mkdir(parents=True)
        self.deep.mkdir(parents=True)
        make_repository(self.repo)

    def load(self, cwd: Path | None = None, /, **environment: str) -> Settings:
        return load({}, environment, cwd or self.repo, self.home)

    @property
    def trust_file(self) -> Path:
        return trust.trust_file({}, self.home)

    def trust(self, cwd: Path | None = None) -> bool:
        """As `laneway config trust --yes` does: what the repository says now, and nothing else."""
        given = [
            trust.give(self.trust_file, file.root, {file.path: vetting.request_of(file).settings})
            for file in self.load(cwd).repo_files
        ]
        return any(given)

    def say(self, text: str) -> None:
        """What the repository's file says from now on, trusted."""
        self.repo_file.write_text(text)
        self.trust()


def make_repository(folder: Path) -> None:
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
