"""Real git repositories for tests, untouched by any setting of this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

_MINE = ("-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "init.defaultBranch=main")


class Repo:
    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet")

    def git(self, *words: str) -> str:
        return subprocess.run(
            ["git", *_MINE, *words], cwd=self.root, check=True, capture_output=True, text=True
        ).stdout

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def commit(self, message: str = "a commit") -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD").strip()


def files(folder: Path) -> dict[str, bytes]:
    """All that lies in a folder, but for git's own."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }
