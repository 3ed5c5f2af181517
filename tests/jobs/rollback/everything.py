"""A tree with everything in it, and a job that changes all of it."""

from __future__ import annotations

import shutil

from tests.jobs.trees import Tree


def edit_everything(tree: Tree) -> None:
    """All kinds of changes that a job makes."""
    tree.write("new/deep/file.txt", "new\n")
    tree.write("a.txt", "edited\n")
    (tree.root / "gone.txt").unlink()
    shutil.rmtree(tree.root / "folder")
    (tree.root / "renamed.txt").rename(tree.root / "other-name.txt")
    (tree.root / "run.sh").chmod(0o600)
    (tree.root / "link").unlink()
    (tree.root / "link").symlink_to("elsewhere")
    (tree.root / "becomes-link").unlink()
    (tree.root / "becomes-link").symlink_to("/etc/hostname")
    (tree.root / "was-link").unlink()
    tree.write("was-link", "a file now\n")
    (tree.root / "becomes-folder").unlink()
    tree.write("becomes-folder/x/y", "in a folder\n")
    shutil.rmtree(tree.root / "becomes-file")
    tree.write("becomes-file", "a file\n")
    tree.write("crlf.txt", b"changed\nline ends\n")
    tree.write("binary", bytes(range(255, -1, -1)))
    tree.write("inner/c.txt", "edited in a repository inside\n")
    tree.write(".env", "SECRET=2\n")


def make_everything(tree: Tree) -> None:
    tree.write(".gitignore", ".env\n")
    tree.write(".gitattributes", "*.txt text eol=crlf\n")
    for name in ("gone.txt", "renamed.txt", "becomes-link", "becomes-folder"):
        tree.write_mode(name, f"{name}\n", 0o640)
    tree.write_mode("folder/private/key", "key\n", 0o600)
    (tree.root / "folder/private").chmod(0o700)
    tree.write_mode("run.sh", "#!/bin/sh\n", 0o755)
    (tree.root / "link").symlink_to("a.txt")
    (tree.root / "was-link").symlink_to("a.txt")
    tree.write("becomes-file/one/two", "deep\n")
    tree.write("crlf.txt", b"line\r\nends\r\n")
    tree.write("binary", bytes(range(256)))
    tree.write(".env", "SECRET=1\n")
    inner = Tree(tree.root, name="inner")
    inner.write("c.txt", "three\n")
    inner.commit()


def litter(tree: Tree) -> list[str]:
    """What a rollback left lying about in the tree."""
    return [str(path) for path in tree.root.rglob(".laneway-*")]
