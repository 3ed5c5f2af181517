"""Which paths a command names, and which commands may write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.jobs.mentions import may_write, mentions


@pytest.mark.parametrize(
    "text",
    [
        "sed -i s/a/b/ src/app/main.py",
        "sed -i s/a/b/ ./src/app/main.py",
        "black /home/me/tree/src/app/main.py",
        "cd src/app && sed -i s/a/b/ main.py",
        "cd src && sed -i s/a/b/ 'app/main.py'",
        "rm -rf src/app",
        "ruff format src/",
        "prettier --write *.py",
        "black src/**/*.py",
        "python - <<'E'\nopen('src/app/main.py', 'w').write('x')\nE",
        "echo x>main.py",
    ],
)
def test_a_path_is_named_in_many_ways(text: str) -> None:
    """In full, by its last names, by a folder, by a glob."""
    assert mentions(text, "src/app/main.py")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "make",
        "cat src/app/main.pyc",
        "vi domain.py",
        "vi main.py.bak",
        "ls src2",
        "cat src-app",
        "black .",
    ],
)
def test_a_path_that_only_looks_alike_is_not_named(text: str) -> None:
    """Nor one that a command reaches without naming it."""
    assert not mentions(text, "src/app/main.py")


@pytest.mark.parametrize(
    "text",
    [
        "cat a.txt",
        "bash -lc 'cat a.txt'",
        "/bin/zsh -lc \"sed -n '1,200p' a.txt\"",
        "rg -n foo src | head -5",
        "git status --short; git diff",
        "ls -la && pwd 2>/dev/null",
        "grep -r x . 2>&1",
    ],
)
def test_commands_that_only_read_are_known(text: str) -> None:
    """They are most of what a model runs."""
    assert not may_write(text)


@pytest.mark.parametrize(
    "text",
    [
        "rm a.txt",
        "cat a.txt > b.txt",
        "sed -i s/a/b/ a.txt",
        "sed -n 's/a/b/w out' a.txt",
        "bash -lc 'cat a; make'",
        "cat x & rm y",
        "cat $(make)",
        "sort -o a.txt a.txt",
        "git checkout a.txt",
        "git diff --output=a.txt",
        "fd -x rm",
        "python -c 'x'",
        "env make",
        "echo 'open",
        "bash script.sh",
        "tee a.txt",
        "xargs rm",
        "cat " + "x" * 100_000,
    ],
)
def test_every_other_command_may_write(text: str) -> None:
    """Also one that cannot be taken apart."""
    assert may_write(text)


@given(st.text(max_size=40), st.text(min_size=1, max_size=20))
def test_no_text_is_an_error(text: str, path: str) -> None:
    """It comes from a model."""
    mentions(text, path)
    may_write(text)
