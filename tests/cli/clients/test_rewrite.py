"""`codex … mcp-server` as `laneway … mcp-server`: one word changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.base.server_words import is_stale
from laneway.cli.clients.rewrite import rewrite

LANEWAY = ["laneway"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["codex", "mcp-server"], ["laneway", "mcp-server"]),
        (["codex", "-m", "x", "mcp-server", "-s", "y"], ["laneway", "-m", "x", "mcp-server", "-s", "y"]),
        (["codex mcp-server"], ["laneway mcp-server"]),
        (["env", "A=1", "codex", "mcp-server"], ["env", "A=1", "laneway", "mcp-server"]),
        (["bash", "-lc", "exec codex -m $M mcp-server"], ["bash", "-lc", "exec laneway -m $M mcp-server"]),
        (
            ["npx", "-y", "@openai/codex@0.153.4", "-m", "x", "mcp-server"],
            ["npx", "-y", "--package=@openai/codex@0.153.4", "--", "laneway", "-m", "x", "mcp-server"],
        ),
        (
            ["npx", "-y", "--", "@openai/codex", "mcp-server"],
            ["npx", "-y", "--package=@openai/codex", "--", "laneway", "mcp-server"],
        ),
        (
            ["npx", "-p", "@openai/codex", "codex", "mcp-server"],
            ["npx", "-p", "@openai/codex", "laneway", "mcp-server"],
        ),
        (
            ["npm", "exec", "--", "@openai/codex", "mcp-server"],
            ["npm", "exec", "--package=@openai/codex", "--", "laneway", "mcp-server"],
        ),
    ],
)
def test_flags_and_wrappers_stay(before: list[str], after: list[str]) -> None:
    """npx still brings the same Codex: `--package` puts it on the PATH where Laneway looks."""
    assert list(rewrite(before, LANEWAY).words) == after


@pytest.mark.parametrize(
    ("before", "codex", "after"),
    [
        (["/o/codex", "mcp-server"], "/o/codex", ["laneway", "mcp-server", "--codex-bin", "/o/codex"]),
        (["/a b/codex", "mcp-server"], "/a b/codex", ["laneway", "mcp-server", "--codex-bin", "/a b/codex"]),
        (["/o/codex mcp-server"], "/o/codex", ["laneway mcp-server --codex-bin /o/codex"]),
        (
            ["node", "/o/codex.js", "mcp-server"],
            "/o/codex.js",
            ["laneway", "mcp-server", "--codex-bin", "/o/codex.js"],
        ),
        (
            ["sh", "-c", "cd '/a b' && exec '/o p/codex' mcp-server 2>/dev/null"],
            "/o p/codex",
            ["sh", "-c", "cd '/a b' && exec laneway mcp-server --codex-bin '/o p/codex' 2>/dev/null"],
        ),
        (
            ["/o/codex", "-m", "mcp-server", "mcp-server"],
            "/o/codex",
            ["laneway", "-m", "mcp-server", "mcp-server", "--codex-bin", "/o/codex"],
        ),
    ],
)
def test_a_codex_that_was_named_stays_the_one(before: list[str], codex: str, after: list[str]) -> None:
    """By `--codex-bin`, behind the word, where a shell's redirections stay in their place."""
    found = rewrite(before, LANEWAY)
    assert (found.codex, list(found.words)) == (codex, after)


def test_a_codex_that_is_gone_can_be_left_out() -> None:
    """Laneway then finds one by itself."""
    assert rewrite(["/o/codex", "mcp-server"], LANEWAY, keep_codex=False).words == ("laneway", "mcp-server")


@pytest.mark.parametrize(
    "before",
    [
        ["npx", "codex", "mcp-server"],
        ["pnpm", "dlx", "@openai/codex", "mcp-server"],
        ["bunx", "@openai/codex@0.153.4", "mcp-server"],
    ],
)
def test_no_package_runner_comes_to_look_for_laneway(before: list[str]) -> None:
    """It would fetch and run whatever somebody has put there under our name."""
    found = rewrite(before, LANEWAY)
    assert list(found.words) == ["laneway", "mcp-server"]
    assert f"{before[0]} brought {before[-2]}" in found.notes[0]


@pytest.mark.parametrize("before", [["@openai/codex", "mcp-server"], ["laneway", "mcp-server"], ["codex"]])
def test_what_is_not_understood_is_left(before: list[str]) -> None:
    """With a reason."""
    found = rewrite(before, LANEWAY)
    assert found.words == ()
    assert found.problem


words = st.text(alphabet="ab -=/'\"$", max_size=6).filter(lambda word: "codex" not in word)


@given(
    runner=st.sampled_from([[], ["env", "A=1"], ["timeout", "9"]]),
    codex=st.sampled_from(["codex", "/opt/codex", "./codex"]),
    model=words,
    after=st.lists(words, max_size=3),
    laneway=st.sampled_from([["laneway"], ["/x y/laneway"], ["/usr/bin/python3", "-m", "laneway"]]),
)
def test_every_word_but_one_stays(
    runner: list[str], codex: str, model: str, after: list[str], laneway: list[str]
) -> None:
    """In its place and unchanged, and the outcome is not stale."""
    found = rewrite([*runner, codex, "-m", model, "mcp-server", *after], laneway)
    kept = ["--codex-bin", codex] if "/" in codex else []
    assert list(found.words) == [*runner, *laneway, "-m", model, "mcp-server", *kept, *after]
    assert not is_stale(found.words[0], found.words[1:])
