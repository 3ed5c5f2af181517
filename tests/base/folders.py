"""A home and a repository to read settings in: real files, nothing of this machine."""

from __future__ import annotations

from pathlib import Path

from laneway.base.settings import Settings, load


class Folders:
    def __init__(self, top: Path) -> None:
        self.home = top / "home"
        self.repo = top / "repo"
        self.deep = self.repo / "deep" / "down"
        self.global_file = self.home / ".config" / "atm" / "config.toml"
        self.repo_file = self.repo / ".atm.toml"
        self.global_file.parent.mkdir(parents=True)
        self.deep.mkdir(parents=True)
        make_repository(self.repo)

    def load(self, cwd: Path | None = None, /, **environment: str) -> Settings:
        return load({}, environment, cwd or self.repo, self.home)


def make_repository(folder: Path) -> None:
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
