"""Slash commands at a desk that is worked by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from laneway import __version__
from laneway.base.errors import RemoteError
from laneway.codex.offers import MAX_PAGES
from laneway.commands import slash as commands
from laneway.commands import words as command_words
from laneway.commands.slash import Invocation
from laneway.core.model import Tokens, Usage
from laneway.core.ports import ImagePart, TextPart
from laneway.doors.acp.sessions.available_commands import available_commands
from tests.commands.hand_session import HandDesk
from tests.doors.acp.lint import book
from tests.doors.acp.repos import Repo

PLAN = {
    "mode": "plan",
    "settings": {"model": "gpt-5.5", "reasoning_effort": "high", "developer_instructions": None},
}

FILE = TextPart('[ACP_RESOURCE_LINK uri="file:///a.py" name="a.py"]\n[/ACP_RESOURCE_LINK]')


@pytest.fixture(autouse=True)
def _own_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))


@pytest.fixture
def desk(tmp_path: Path) -> HandDesk:
    return HandDesk(tmp_path)


async def serve(desk: HandDesk, text: str, *rest: Any) -> str:
    """Say something to the session; returns all that was said back."""
    invocation = commands.find((TextPart(text), *rest))
    assert invocation is not None
    before = len(desk.done)
    stop = await commands.run(desk, invocation)
    has_turn = any(kind in ("turn", "errand") for kind, *_ in desk.done[before:])
    assert stop == (desk.stop if has_turn else None)
    return "\n".join(desk.said)


# ── which prompts are commands ─────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("/help", "help", ""),
        ("/plan  first this\nthen that ", "plan", "first this\nthen that"),
        ("/review-branch main", "review-branch", "main"),
        ("/Status\n", "status", ""),
        ("/nonsense with words", "nonsense", "with words"),
    ],
)
def test_a_slash_and_a_word_is_a_command_known_or_not(text: str, name: str, arguments: str) -> None:
    """What follows is kept as it was written."""
    image = ImagePart(url="data:x")
    assert commands.find((TextPart(text), image)) == Invocation(name, arguments, (image,))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "help",
        " /help",
        "/",
        "//help",
        "/usr/bin/x is broken",
        "/help.",
        "/Users are many",
        "/1",
        "$skill x",
        "a /help",
    ],
)
def test_paths_and_sentences_are_no_commands(text: str) -> None:
    """They go to the model; a blank in front is the way to say anything to it."""
    assert commands.find((TextPart(text),)) is None


def test_only_the_first_words_of_a_prompt_are_a_command() -> None:
    """An image or a file in front makes it a prompt."""
    assert commands.find(()) is None
    assert commands.find((ImagePart(url="data:x"), TextPart("/help"))) is None


async def test_an_unknown_command_names_the_nearest_and_asks_no_model(desk: HandDesk) -> None:
    """A slip costs nothing."""
    assert await serve(desk, "/reveiw all") == (
        "There is no command /reveiw. Did you mean /review? See all commands with /help. "
        "To say it to the model, put a blank in front."
    )
    desk.said.clear()
    assert "Did you mean" not in await serve(desk, "/zzzzzz")
    assert len(await serve(desk, f"/{'z' * 100_000}")) < 1000
    assert desk.done == []


@pytest.mark.parametrize("name", [name for name, command in commands.COMMANDS.items() if not command.hint])
async def test_words_behind_a_command_that_takes_none_stop_it(desk: HandDesk, name: str) -> None:
    """`/undo the last line` is not what /undo does."""
    assert await serve(desk, f"/{name} now") == f"/{name} takes nothing after its name. Nothing was done."
    assert desk.done == []


async def test_further_blocks_of_text_are_words_of_the_command(desk: HandDesk) -> None:
    """An editor may send a line in pieces."""
    await serve(desk, "/model", TextPart(" gpt-5.5 "), TextPart("mini"))
    assert desk.choices.model == "gpt-5.5-mini"
    desk.answers["thread/settings/update"] = {}
    await serve(desk, "/plan", TextPart(" "), TextPart(" off"))
    assert desk.said.pop() == "Plan mode is off."
    await serve(desk, "/undo", TextPart("the last line"))
    assert desk.said.pop() == "/undo takes nothing after its name. Nothing was done."


@pytest.mark.parametrize("name", [name for name in commands.COMMANDS if name != "plan"])
async def test_an_image_stops_a_command_that_can_do_nothing_with_it(desk: HandDesk, name: str) -> None:
    """Whoever sends one wants it to be looked at."""
    assert await serve(desk, f"/{name}", ImagePart(url="data:x")) == (
        f"/{name} takes no images. Nothing was done."
    )
    assert desk.done == []


async def test_a_file_beside_a_command_that_takes_none_is_left_aside_and_that_is_said(desk: HandDesk) -> None:
    """Editors attach the open file by themselves: that must stop no command, nor be its words."""
    assert (await serve(desk, "/model", FILE)).startswith("What is attached is not used by /model.\nModels.")
    desk.answers["thread/settings/update"] = {}
    await serve(desk, "/plan off", FILE)
    assert desk.said[-2:] == ["What is attached is not used by /plan.", "Plan mode is off."]
    assert desk.done.pop()[0] == "thread/settings/update"
    await serve(desk, "/plan", FILE)
    assert desk.done == [("turn", (FILE,), {"collaborationMode": PLAN})]


AVAILABLE = available_commands(HandDesk(Path("/w")).offers)


def test_the_list_for_clients_is_valid_and_complete() -> None:
    """By the official schema; every command of the issue is in it."""
    assert list(book(frozenset()).judge("SessionUpdate", AVAILABLE)) == []
    named = {entry["name"] for entry in AVAILABLE["availableCommands"]}
    wanted = "plan review compact init diff status mcp skills model fork undo help login logout"
    assert {*wanted.split(), "review-branch", "review-commit"} == named


# ── turns ──────────────────────────────────────────────────────────────────


async def test_plan_mode_is_switched_with_the_chosen_model_and_effort(desk: HandDesk) -> None:
    """A mode brings a model along: it must not change the one that is chosen."""
    desk.answers["thread/settings/update"] = {}
    await desk.choose("model", "gpt-5.5-mini")
    assert "Plan mode is on" in await serve(desk, "/plan")
    assert desk.is_planning
    await serve(desk, "/plan OFF")
    assert not desk.is_planning
    assert desk.said[-1] == "Plan mode is off."
    sent = [params["collaborationMode"] for _, params in desk.done]
    assert [mode["mode"] for mode in sent] == ["plan", "default"]
    assert {mode["settings"]["model"] for mode in sent} == {"gpt-5.5-mini"}


async def test_words_behind_plan_are_planned_in_one_turn(desk: HandDesk) -> None:
    """With all that came along; the switch is announced once."""
    desk.stop = "cancelled"
    image = ImagePart(url="data:x")
    assert "Plan mode is on until" in await serve(desk, "/plan on the locks", image)
    await serve(desk, "/plan", image)
    assert desk.done == [
        ("turn", (TextPart("on the locks"), image), {"collaborationMode": PLAN}),
        ("turn", (image,), {"collaborationMode": PLAN}),
    ]
    assert len(desk.said) == 1


async def test_a_codex_without_plan_mode_says_so(desk: HandDesk) -> None:
    """With the remedy; and nothing is pretended."""
    assert (await serve(desk, "/plan on")).startswith(
        "/plan does not work here. This Codex is too old for that (it has no thread/settings/update): upgrade"
    )
    assert not desk.is_planning


async def test_a_review_is_an_errand_with_its_target(desk: HandDesk) -> None:
    """By words, by alias, with what came along."""
    repo = Repo(desk.cwd)
    sha = repo.commit("one")
    repo.write("a", "x\n")
    link = TextPart("[ACP_RESOURCE_LINK]")
    for text, rest in (
        ("/review", ()),
        ("/review branch main", ()),
        ("/review-branch main", ()),
        ("/review-commit HEAD", ()),
        ("/review the locks in", (link,)),
    ):
        await serve(desk, text, *rest)
    assert desk.done == [
        ("errand", "review/start", {"target": target, "delivery": "inline"})
        for target in (
            {"type": "uncommittedChanges"},
            {"type": "baseBranch", "branch": "main"},
            {"type": "baseBranch", "branch": "main"},
            {"type": "commit", "sha": sha, "title": "one"},
            {"type": "custom", "instructions": "the locks in\n[ACP_RESOURCE_LINK]"},
        )
    ]
    assert desk.said == []


async def test_a_review_of_nothing_costs_no_turn(desk: HandDesk) -> None:
    """It says what is missing instead."""
    assert "Name the branch" in await serve(desk, "/review-branch")
    assert "not in a git repository" in await serve(desk, "/review")
    assert desk.done == []


async def test_compact_is_an_errand_and_its_stop_reason_is_the_prompts(desk: HandDesk) -> None:
    """Cancelled is cancelled."""
    desk.stop = "cancelled"
    await serve(desk, "/compact")
    assert desk.done == [("errand", "thread/compact/start", {})]


async def test_init_has_a_guide_written_and_never_a_second_one(desk: HandDesk) -> None:
    """An AGENTS.md is the person's own."""
    await serve(desk, "/init")
    assert desk.done == [("turn", (TextPart(command_words.INIT_PROMPT),), None)]
    (desk.cwd / "AGENTS.md").symlink_to("elsewhere")
    assert "There is an AGENTS.md already" in await serve(desk, "/init")
    assert len(desk.done) == 1


# ── what is told ───────────────────────────────────────────────────────────


async def test_the_diff_is_fenced_so_that_nothing_in_it_can_get_out(desk: HandDesk) -> None:
    """A Markdown file in a diff has fences of its own."""
    assert await serve(desk, "/diff") == f"{desk.cwd} is not in a git repository."
    repo = Repo(desk.cwd)
    repo.commit()
    desk.said.clear()
    assert await serve(desk, "/diff") == "Nothing has changed since the last commit."
    repo.write("a.md", "````\n")
    desk.said.clear()
    said = await serve(desk, "/diff")
    assert said.startswith("`````diff\ndiff --git")
    assert said.endswith("\n+````\n`````")


async def test_status_tells_what_is_known(desk: HandDesk) -> None:
    """Every line, and the account's limits only for somebody who is logged in."""
    desk.usage = Usage(turn_id="u", last=Tokens(total=68_000), total=Tokens(total=123_456), window=272_000)
    desk.is_planning = True
    desk.answers |= {
        "account/read": {"account": {"type": "chatgpt", "email": "a@b.c", "planType": "plus"}},
        "account/rateLimits/read": {
            "rateLimits": {
                "primary": {"usedPercent": 20, "windowDurationMins": 300, "resetsAt": 1_794_835_106},
                "secondary": {"usedPercent": 3, "windowDurationMins": 10_080, "resetsAt": None},
            }
        },
    }
    assert await serve(desk, "/status") == "\n".join(
        [
            "- **Model**: gpt-5.5, effort high",
            "- **Mode**: config (read-only, asks on request, no network), plan mode",
            f"- **Folder**: `{desk.cwd}`",
            "- **Session**: `sess_t1`",
            "- **Tokens**: 123,456 used; the context holds 68,000 of 272,000 (25 %)",
            "- **Account**: ChatGPT (a@b.c, plus)",
            "- **Limits**: 20 % of 5 hours used, until 2026-11-16 13:18 UTC; 3 % of 7 days used",
            f"- **Versions**: Codex 0.163.0, Laneway {__version__}",
        ]
    )


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"account": None, "requiresOpenaiAuth": True}, "nobody is logged in; use /login"),
        ({"account": None, "requiresOpenaiAuth": False}, "none needed"),
        ({"account": {"type": "apiKey"}}, "API key"),
        ({"account": {"type": "amazonBedrock"}}, "amazonBedrock"),
    ],
)
async def test_status_tells_whose_account_it_is(desk: HandDesk, answer: Any, told: str) -> None:
    """Or that there is none."""
    desk.answers["account/read"] = answer
    assert f"- **Account**: {told}\n" in await serve(desk, "/status")


async def test_status_leaves_out_what_codex_will_not_tell(desk: HandDesk) -> None:
    """The rest is worth having."""
    said = await serve(desk, "/status")
    assert "Account" not in said
    assert "- **Tokens**: none used yet\n" in said
    assert [method for method, _ in desk.done] == ["account/read"]


async def test_mcp_servers_are_told_from_all_pages(desk: HandDesk) -> None:
    """With state, tools, and what to do about a missing login; a foreign name stays in its line."""
    desk.answers["mcpServerStatus/list"] = [
        {
            "data": [
                {"name": "files", "runtimeStatus": "connected", "tools": {"write": {}, "read": {}}},
                {"name": "wiki", "runtimeStatus": None, "authStatus": "notLoggedIn", "tools": {}},
            ],
            "nextCursor": "next",
        },
        {
            "data": [
                {"name": "b\nad", "runtimeStatus": "failed", "tools": {"x": {}}, "toolsError": "no\x1b[2K"}
            ]
        },
    ]
    assert await serve(desk, "/mcp") == "\n".join(
        [
            "MCP servers:",
            "- **files**: connected, 2 tools: `read`, `write`",
            "- **wiki**: set up, 0 tools, needs a login: `codex mcp login wiki`",
            "- **b ad**: failed, 1 tool, no\\x1b[2K: `x`",
        ]
    )
    assert [params["cursor"] for _, params in desk.done] == [None, "next"]
    assert {params["threadId"] for _, params in desk.done} == {"t1"}


async def test_a_list_that_never_ends_is_ended(desk: HandDesk) -> None:
    """A prompt must be answered."""
    desk.answers["mcpServerStatus/list"] = {"data": [], "nextCursor": "again"}
    assert (await serve(desk, "/mcp")).startswith("No MCP servers are set up.")
    assert len(desk.done) == MAX_PAGES


async def test_skills_are_told_by_the_name_to_use(desk: HandDesk) -> None:
    """With their short words; those that are switched off are left out."""
    desk.answers["skills/list"] = {
        "data": [
            {
                "skills": [
                    {"name": "draw", "description": "long", "interface": {"shortDescription": "Draw it"}},
                    {"name": "long", "description": "x" * 1000},
                    {"name": "off", "enabled": False},
                ]
            }
        ]
    }
    lines = (await serve(desk, "/skills")).splitlines()
    assert lines[:2] == ["Skills. Use one by its name in a prompt:", "- `$draw`: Draw it"]
    assert len(lines[2]) < 200
    assert len(lines) == 3
    assert desk.done == [("skills/list", {"cwds": [str(desk.cwd)]})]


async def test_models_are_listed_and_chosen_by_either_name(desk: HandDesk) -> None:
    """Hidden ones are not listed; the one in use is marked."""
    assert (await serve(desk, "/model")).splitlines()[1:] == [
        "- `gpt-5.5` (current): Thinks long.",
        "- `gpt-5.5-mini`: Is quick.",
    ]
    await serve(desk, "/model gpt-5.5 MINI")
    assert desk.said[-1] == "The model is gpt-5.5-mini from the next turn on."
    assert desk.choices.model == "gpt-5.5-mini"
    await serve(desk, "/model gpt-5.5-mini")
    assert desk.said[-1] == "The model is gpt-5.5-mini already."


async def test_an_unknown_model_changes_nothing_and_names_the_nearest(desk: HandDesk) -> None:
    """Codex would take any name, and the turn would fail."""
    assert await serve(desk, "/model gpt-5.5-mimi") == (
        "Codex names no model gpt-5.5-mimi. Did you mean gpt-5.5-mini? See the models with /model."
    )
    assert desk.choices.model is None


async def test_fork_names_the_copy(desk: HandDesk) -> None:
    """And where to find it."""
    assert "`sess_t2`" in await serve(desk, "/fork")


async def test_login_and_logout_are_the_desks(desk: HandDesk) -> None:
    """Logging in says all it needs by itself."""
    assert await serve(desk, "/login") == ""
    assert await serve(desk, "/logout") == "You are logged out of Codex. Log in again with /login."
    assert desk.done == [("login",), ("logout",)]


async def test_help_tells_every_command_with_what_may_follow(desk: HandDesk) -> None:
    """From the same table as the list for clients."""
    said = await serve(desk, "/help")
    assert "- `/model [NAME]`: " in said
    assert len(said.splitlines()) == len(commands.COMMANDS)


async def test_an_error_that_is_no_refusal_is_the_prompts_error(desk: HandDesk) -> None:
    """A lost engine is not worded as an answer."""
    desk.answers["skills/list"] = RemoteError(-32603, "gone")
    with pytest.raises(RemoteError):
        await serve(desk, "/skills")
