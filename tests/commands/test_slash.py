"""Slash commands at a session that is worked by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from laneway import __version__
from laneway.base.errors import RemoteError
from laneway.codex.offers import MAX_PAGES
from laneway.commands import slash as commands
from laneway.commands import texts
from laneway.commands.slash import Invocation
from laneway.core.model import Tokens, Usage
from laneway.core.ports import ImagePart, TextPart
from laneway.doors.acp.sessions.available_commands import available_commands
from tests.commands.hand_session import HandSession
from tests.doors.acp.lint import book
from tests.doors.acp.repos import Repo

pytestmark = pytest.mark.usefixtures("own_git")

PLAN = {
    "mode": "plan",
    "settings": {"model": "gpt-5.5", "reasoning_effort": "high", "developer_instructions": None},
}

FILE = TextPart('[ACP_RESOURCE_LINK uri="file:///a.py" name="a.py"]\n[/ACP_RESOURCE_LINK]')


@pytest.fixture
def session(tmp_path: Path) -> HandSession:
    return HandSession(tmp_path)


async def serve(session: HandSession, text: str, *rest: Any) -> str:
    """Say something to the session; returns all that was said back."""
    invocation = commands.find((TextPart(text), *rest))
    assert invocation is not None
    before = len(session.done)
    stop = await commands.run(session, invocation)
    has_turn = any(kind in ("turn", "special_turn") for kind, *_ in session.done[before:])
    assert stop == (session.stop if has_turn else None)
    return "\n".join(session.said)


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


async def test_an_unknown_command_names_the_nearest_and_asks_no_model(session: HandSession) -> None:
    """A slip costs nothing."""
    assert await serve(session, "/reveiw all") == (
        "There is no command /reveiw. Did you mean /review? See all commands with /help. "
        "To say it to the model, put a blank in front."
    )
    session.said.clear()
    assert "Did you mean" not in await serve(session, "/zzzzzz")
    assert len(await serve(session, f"/{'z' * 100_000}")) < 1000
    assert session.done == []


@pytest.mark.parametrize("name", [name for name, command in commands.COMMANDS.items() if not command.hint])
async def test_words_behind_a_command_that_takes_none_stop_it(session: HandSession, name: str) -> None:
    """`/undo the last line` is not what /undo does."""
    assert await serve(session, f"/{name} now") == f"/{name} takes nothing after its name. Nothing was done."
    assert session.done == []


async def test_further_blocks_of_text_are_words_of_the_command(session: HandSession) -> None:
    """An editor may send a line in pieces."""
    await serve(session, "/model", TextPart(" gpt-5.5 "), TextPart("mini"))
    assert session.choices.model == "gpt-5.5-mini"
    session.answers["thread/settings/update"] = {}
    await serve(session, "/plan", TextPart(" "), TextPart(" off"))
    assert session.said.pop() == "Plan mode is off."
    await serve(session, "/undo", TextPart("the last line"))
    assert session.said.pop() == "/undo takes nothing after its name. Nothing was done."


@pytest.mark.parametrize("name", [name for name in commands.COMMANDS if name != "plan"])
async def test_an_image_stops_a_command_that_can_do_nothing_with_it(session: HandSession, name: str) -> None:
    """Whoever sends one wants it to be looked at."""
    assert await serve(session, f"/{name}", ImagePart(url="data:x")) == (
        f"/{name} takes no images. Nothing was done."
    )
    assert session.done == []


async def test_a_file_beside_a_command_that_takes_none_is_left_aside_and_that_is_said(
    session: HandSession,
) -> None:
    """Editors attach the open file by themselves: that must stop no command, nor be its words."""
    assert (await serve(session, "/model", FILE)).startswith(
        "What is attached is not used by /model.\nModels."
    )
    session.answers["thread/settings/update"] = {}
    await serve(session, "/plan off", FILE)
    assert session.said[-2:] == ["What is attached is not used by /plan.", "Plan mode is off."]
    assert session.done.pop()[0] == "thread/settings/update"
    await serve(session, "/plan", FILE)
    assert session.done == [("turn", (FILE,), {"collaborationMode": PLAN})]


AVAILABLE = available_commands(HandSession(Path("/w")).offers)


def test_the_list_for_clients_is_valid_and_complete() -> None:
    """By the official schema; every command of the issue is in it."""
    assert list(book(frozenset()).judge("SessionUpdate", AVAILABLE)) == []
    named = {entry["name"] for entry in AVAILABLE["availableCommands"]}
    wanted = "plan review compact init diff status mcp skills model fork undo help login logout"
    assert {*wanted.split(), "review-branch", "review-commit"} == named


# ── turns ──────────────────────────────────────────────────────────────────


async def test_plan_mode_is_switched_with_the_chosen_model_and_effort(session: HandSession) -> None:
    """A mode brings a model along: it must not change the one that is chosen."""
    session.answers["thread/settings/update"] = {}
    await session.choose("model", "gpt-5.5-mini")
    assert "Plan mode is on" in await serve(session, "/plan")
    assert session.is_planning
    await serve(session, "/plan OFF")
    assert not session.is_planning
    assert session.said[-1] == "Plan mode is off."
    sent = [params["collaborationMode"] for _, params in session.done]
    assert [mode["mode"] for mode in sent] == ["plan", "default"]
    assert {mode["settings"]["model"] for mode in sent} == {"gpt-5.5-mini"}


async def test_words_behind_plan_are_planned_in_one_turn(session: HandSession) -> None:
    """With all that came along; the switch is announced once."""
    session.stop = "cancelled"
    image = ImagePart(url="data:x")
    assert "Plan mode is on until" in await serve(session, "/plan on the locks", image)
    await serve(session, "/plan", image)
    assert session.done == [
        ("turn", (TextPart("on the locks"), image), {"collaborationMode": PLAN}),
        ("turn", (image,), {"collaborationMode": PLAN}),
    ]
    assert len(session.said) == 1


async def test_a_codex_without_plan_mode_says_so(session: HandSession) -> None:
    """With the remedy; and nothing is pretended."""
    assert (await serve(session, "/plan on")).startswith(
        "/plan does not work here. This Codex is too old for that (it has no thread/settings/update): upgrade"
    )
    assert not session.is_planning


async def test_a_review_is_a_special_turn_with_its_target(session: HandSession) -> None:
    """By words, by alias, with what came along."""
    repo = Repo(session.cwd)
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
        await serve(session, text, *rest)
    assert session.done == [
        ("special_turn", "review/start", {"target": target, "delivery": "inline"})
        for target in (
            {"type": "uncommittedChanges"},
            {"type": "baseBranch", "branch": "main"},
            {"type": "baseBranch", "branch": "main"},
            {"type": "commit", "sha": sha, "title": "one"},
            {"type": "custom", "instructions": "the locks in\n[ACP_RESOURCE_LINK]"},
        )
    ]
    assert session.said == []


async def test_a_review_of_nothing_costs_no_turn(session: HandSession) -> None:
    """It says what is missing instead."""
    assert "Name the branch" in await serve(session, "/review-branch")
    assert "not in a git repository" in await serve(session, "/review")
    assert session.done == []


async def test_compact_is_a_special_turn_and_its_stop_reason_is_the_prompts(session: HandSession) -> None:
    """Cancelled is cancelled."""
    session.stop = "cancelled"
    await serve(session, "/compact")
    assert session.done == [("special_turn", "thread/compact/start", {})]


async def test_init_has_a_guide_written_and_never_a_second_one(session: HandSession) -> None:
    """An AGENTS.md is the person's own."""
    await serve(session, "/init")
    assert session.done == [("turn", (TextPart(texts.INIT_PROMPT),), None)]
    (session.cwd / "AGENTS.md").symlink_to("elsewhere")
    assert "There is an AGENTS.md already" in await serve(session, "/init")
    assert len(session.done) == 1


# ── what is told ───────────────────────────────────────────────────────────


async def test_the_diff_is_fenced_so_that_nothing_in_it_can_get_out(session: HandSession) -> None:
    """A Markdown file in a diff has fences of its own."""
    assert await serve(session, "/diff") == f"{session.cwd} is not in a git repository."
    repo = Repo(session.cwd)
    repo.commit()
    session.said.clear()
    assert await serve(session, "/diff") == "Nothing has changed since the last commit."
    repo.write("a.md", "````\n")
    session.said.clear()
    said = await serve(session, "/diff")
    assert said.startswith("`````diff\ndiff --git")
    assert said.endswith("\n+````\n`````")


async def test_status_tells_what_is_known(session: HandSession) -> None:
    """Every line, and the account's limits only for somebody who is logged in."""
    session.usage = Usage(turn_id="u", last=Tokens(total=68_000), total=Tokens(total=123_456), window=272_000)
    session.is_planning = True
    session.answers |= {
        "account/read": {"account": {"type": "chatgpt", "email": "a@b.c", "planType": "plus"}},
        "account/rateLimits/read": {
            "rateLimits": {
                "primary": {"usedPercent": 20, "windowDurationMins": 300, "resetsAt": 1_794_835_106},
                "secondary": {"usedPercent": 3, "windowDurationMins": 10_080, "resetsAt": None},
            }
        },
    }
    assert await serve(session, "/status") == "\n".join(
        [
            "- **Model**: gpt-5.5, effort high",
            "- **Mode**: config (read-only, asks on request, no network), plan mode",
            f"- **Folder**: `{session.cwd}`",
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
async def test_status_tells_whose_account_it_is(session: HandSession, answer: Any, told: str) -> None:
    """Or that there is none."""
    session.answers["account/read"] = answer
    assert f"- **Account**: {told}\n" in await serve(session, "/status")


async def test_status_leaves_out_what_codex_will_not_tell(session: HandSession) -> None:
    """The rest is worth having."""
    said = await serve(session, "/status")
    assert "Account" not in said
    assert "- **Tokens**: none used yet\n" in said
    assert [method for method, _ in session.done] == ["account/read"]


async def test_mcp_servers_are_told_from_all_pages(session: HandSession) -> None:
    """With state, tools, and what to do about a missing login; a foreign name stays in its line."""
    session.answers["mcpServerStatus/list"] = [
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
    assert await serve(session, "/mcp") == "\n".join(
        [
            "MCP servers:",
            "- **files**: connected, 2 tools: `read`, `write`",
            "- **wiki**: set up, 0 tools, needs a login: `codex mcp login wiki`",
            "- **b ad**: failed, 1 tool, no\\x1b[2K: `x`",
        ]
    )
    assert [params["cursor"] for _, params in session.done] == [None, "next"]
    assert {params["threadId"] for _, params in session.done} == {"t1"}


async def test_a_list_that_never_ends_is_ended(session: HandSession) -> None:
    """A prompt must be answered."""
    session.answers["mcpServerStatus/list"] = {"data": [], "nextCursor": "again"}
    assert (await serve(session, "/mcp")).startswith("No MCP servers are set up.")
    assert len(session.done) == MAX_PAGES


async def test_skills_are_told_by_the_name_to_use(session: HandSession) -> None:
    """With their short words; those that are switched off are left out."""
    session.answers["skills/list"] = {
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
    lines = (await serve(session, "/skills")).splitlines()
    assert lines[:2] == ["Skills. Use one by its name in a prompt:", "- `$draw`: Draw it"]
    assert len(lines[2]) < 200
    assert len(lines) == 3
    assert session.done == [("skills/list", {"cwds": [str(session.cwd)]})]


async def test_models_are_listed_and_chosen_by_either_name(session: HandSession) -> None:
    """Hidden ones are not listed; the one in use is marked."""
    assert (await serve(session, "/model")).splitlines()[1:] == [
        "- `gpt-5.5` (current): Thinks long.",
        "- `gpt-5.5-mini`: Is quick.",
    ]
    await serve(session, "/model gpt-5.5 MINI")
    assert session.said[-1] == "The model is gpt-5.5-mini from the next turn on."
    assert session.choices.model == "gpt-5.5-mini"
    await serve(session, "/model gpt-5.5-mini")
    assert session.said[-1] == "The model is gpt-5.5-mini already."


async def test_an_unknown_model_changes_nothing_and_names_the_nearest(session: HandSession) -> None:
    """Codex would take any name, and the turn would fail."""
    assert await serve(session, "/model gpt-5.5-mimi") == (
        "Codex names no model gpt-5.5-mimi. Did you mean gpt-5.5-mini? See the models with /model."
    )
    assert session.choices.model is None


async def test_fork_names_the_copy(session: HandSession) -> None:
    """And where to find it."""
    assert "`sess_t2`" in await serve(session, "/fork")


async def test_login_and_logout_are_the_sessions(session: HandSession) -> None:
    """Logging in says all it needs by itself."""
    assert await serve(session, "/login") == ""
    assert await serve(session, "/logout") == "You are logged out of Codex. Log in again with /login."
    assert session.done == [("login",), ("logout",)]


async def test_help_tells_every_command_with_what_may_follow(session: HandSession) -> None:
    """From the same table as the list for clients."""
    said = await serve(session, "/help")
    assert "- `/model [NAME]`: " in said
    assert len(said.splitlines()) == len(commands.COMMANDS)


async def test_an_error_that_is_no_refusal_is_the_prompts_error(session: HandSession) -> None:
    """A lost engine is not worded as an answer."""
    session.answers["skills/list"] = RemoteError(-32603, "gone")
    with pytest.raises(RemoteError):
        await serve(session, "/skills")
