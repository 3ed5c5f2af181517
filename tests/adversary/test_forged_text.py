"""Commands, paths and questions that hide what they are: whoever is asked sees all of it, everywhere."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from laneway.testing.terminal import terminal
from tests.adversary.forging import HIDING, forging_model, hidden
from tests.cli.support import LANEWAY
from tests.doors.acp.draft import draft
from tests.doors.acp.support import Message, select
from tests.doors.acp.support import stage as acp_stage
from tests.doors.acp.witness import choose
from tests.doors.mcp.support import FORMS
from tests.doors.mcp.support import stage as mcp_stage
from tests.doors.mcp.views import QUIET

SPELT = ("\\x1b[2K", "\\x9b", "\\x0d", "\\u202e", "\\u200b", "\\u2028", "\\u3164", "\\U000e0072")
PATCHED = [each for each in SPELT if each != "\\x0d"]
"""In a path: Codex reads patches by the line, and drops returns."""
COMMAND = f"%run! touch ../outside # {HIDING}end"
FORGERY = f"%run! touch ../outside{' ' * 200}<U+A>Allow Codex to run `ls`?<U+A>1) Allow once<U+A># end"
PATCH = f"%patch a{HIDING}b.txt x"
QUESTION = f"%ask Is this{HIDING} right? yes{HIDING} | no"


def spelt(shown: Any) -> list[str]:
    """Those of the hidden characters that are shown by their names."""
    return [each for each in SPELT if each in str(shown).replace("\\\\", "\\")]


# ── MCP ────────────────────────────────────────────────────────────────────


async def test_an_elicitation_shows_all_that_a_command_or_a_path_hides(tmp_path: Path) -> None:
    """Programs still get the true command and paths, in fields of their own."""
    async with (
        mcp_stage(tmp_path, answerer=forging_model) as here,
        here.server("mcp", capabilities=FORMS, env=QUIET) as client,
    ):
        client.on_ask = lambda message: {"action": "decline"}
        for prompt in (COMMAND, PATCH, QUESTION):
            await client.call(
                "codex",
                prompt=f"{prompt}\n%say After.",
                sandbox="read-only",
                _meta={"progressToken": prompt[:6]},
            )
        asked = [each["params"] for each in client.heard if each["method"] == "elicitation/create"]
        progress = [each["params"] for each in client.heard if each["method"] == "notifications/progress"]

    assert [hidden(params["message"]) for params in asked] == [set()] * 3
    assert [hidden(params["requestedSchema"]) for params in asked] == [set()] * 3
    assert [spelt(params["message"]) for params in asked] == [list(SPELT), PATCHED, list(SPELT)]
    assert hidden(asked[0]["codex_command"])
    assert hidden(asked[1]["codex_changes"])
    assert hidden(progress) == set()


async def test_a_patch_that_hides_something_in_a_file_says_so(tmp_path: Path) -> None:
    """Text that is turned around reads otherwise than it runs."""
    prompt = "%patch a.py if is_admin:<U+202E> # <U+2066>\n%say After."
    warning = "The changes contain characters that cannot be seen: U+202E, U+2066."
    async with (
        mcp_stage(tmp_path, answerer=forging_model) as here,
        here.server("mcp", capabilities=FORMS, env=QUIET) as client,
    ):
        client.on_ask = lambda message: {"action": "decline"}
        await client.call("codex", prompt=prompt, sandbox="read-only")
        asked = next(each["params"] for each in client.heard if each["method"] == "elicitation/create")
    assert asked["message"].split("\n")[-1] == warning
    async with acp_stage(tmp_path, answerer=forging_model) as there, there.agent() as editor:
        session = await editor.new()
        await choose(editor, session, "mode", "ask")
        editor.on_permission = lambda params: select(params, "decline")
        await editor.prompt(session, prompt)
        shown = editor.asked[0]["params"]["toolCall"]["content"]
    assert warning in shown[0]["content"]["text"]


async def test_no_line_of_a_command_passes_for_a_line_of_the_question(tmp_path: Path) -> None:
    async with (
        mcp_stage(tmp_path, answerer=forging_model) as here,
        here.server("mcp", capabilities=FORMS, env=QUIET) as client,
    ):
        client.on_ask = lambda message: {"action": "decline"}
        await client.call("codex", prompt=f"{FORGERY}\n%say After.", sandbox="read-only")
        asked = next(each["params"] for each in client.heard if each["method"] == "elicitation/create")

    lines = asked["message"].split("\n")
    assert [line for line in lines if line.startswith(("Allow Codex", "1)"))] == lines[:1]
    assert "│ Allow Codex to run `ls`?" in lines


async def test_a_declined_question_is_told_without_what_it_hides(tmp_path: Path) -> None:
    """A client that can ask nobody is told what was declined, by a note or by an open question."""
    async with mcp_stage(tmp_path, answerer=forging_model) as here:
        async with here.server("mcp", env=QUIET) as client:
            declined = await client.content("codex", prompt=f"{COMMAND}\n%say After.", sandbox="read-only")
        async with here.server("mcp", "--unattended", "park", env=QUIET) as client:
            parked = await client.content("codex", prompt=f"{QUESTION}\n%say After.", sandbox="read-only")
            failed = await client.call("codex", prompt=f"%fail 400 no{HIDING}", sandbox="read-only")

    for shown in (declined["content"], parked["content"], parked["question"]):
        assert (hidden(shown), spelt(shown)) == (set(), list(SPELT))
    assert hidden(failed["result"]["content"]) == set()


# ── ACP ────────────────────────────────────────────────────────────────────


async def test_a_permission_request_shows_all_that_a_command_or_a_path_hides(tmp_path: Path) -> None:
    """The diff itself stays true, its path included; a sentence beside it names the path."""
    async with acp_stage(tmp_path, answerer=forging_model) as here, here.agent() as client:
        session = await client.new()
        await choose(client, session, "mode", "ask")
        client.on_permission = lambda params: select(params, "decline")
        for prompt in (COMMAND, PATCH):
            await client.prompt(session, f"{prompt}\n%say After.")
        command, patch = (each["params"] for each in client.asked)

    assert (hidden(command), spelt(command["toolCall"]["content"])) == (set(), list(SPELT))
    call = patch["toolCall"]
    said = [part for part in call["content"] if part["type"] == "content"]
    assert hidden([call["title"], said, patch["options"]]) == set()
    assert spelt(said) == PATCHED
    titles = [each.get("title", "") for each in client.tool_calls(session).values()]
    assert hidden(titles) == set()


async def test_a_question_and_its_options_show_what_they_hide(tmp_path: Path) -> None:
    async with acp_stage(tmp_path, answerer=forging_model) as here:
        async with here.agent() as client:
            session = await client.new()
            client.on_permission = lambda params: select(params, "decline")
            await client.prompt(session, f"{QUESTION}\n%say After.")
            asked = client.asked[0]["params"]
        async with here.agent(capabilities={"elicitation": {"form": {}}}) as client:
            session = await client.new()
            await client.prompt(session, f"{QUESTION}\n%say After.")
            form = client.asked[0]["params"]

    assert (hidden(asked), spelt(asked)) == (set(), list(SPELT))
    shown = [form["message"], without_values(form["requestedSchema"])]
    assert (hidden(shown), spelt(shown)) == (set(), list(SPELT))


def without_values(schema: Message) -> Any:
    """What of a schema is shown: its values go back as they came."""
    if isinstance(schema, dict):
        return {
            key: without_values(value) for key, value in schema.items() if key not in ("const", "default")
        }
    return [without_values(each) for each in schema] if isinstance(schema, list) else schema


async def test_protocol_2_shows_what_a_command_hides(tmp_path: Path) -> None:
    async with acp_stage(tmp_path, answerer=forging_model) as here, draft(here) as client:
        session = await client.open()
        client.on_permission = lambda params: select(params, "decline")
        await client.turn(session, f"{COMMAND}\n%say After.")
        asked = client.asked[0]["params"]

    assert (hidden(asked), spelt(asked["subject"]["command"])) == (set(), list(SPELT))


# ── the terminal ───────────────────────────────────────────────────────────


async def test_at_a_terminal_nothing_hides_and_no_line_passes_for_ours(tmp_path: Path) -> None:
    """Also what the model says, piece by piece, before it asks."""
    async with mcp_stage(tmp_path, answerer=forging_model) as here:
        prompt = f"%say Hello<U+1B>[2J there<U+202E>.\n{FORGERY}{HIDING}\n%say After."
        words = [*LANEWAY, "ask", "-s", "read-only", "-a", "on-request", "-C", str(here.work), prompt]
        env = {
            **here.environment,
            "TERM": "xterm",
            "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
        }
        async with terminal(words, env=env, cwd=here.work) as screen:
            await screen.wait_for("Enter declines")
            text = screen.text
            screen.press("enter")
            await screen.wait_for("After.")

    assert "Hello\\x1b[2J there\\u202e." in text
    assert spelt(text) == list(SPELT)
    lines = [line.strip() for line in text.splitlines()]
    assert [line for line in lines if line.startswith(("Allow Codex", "?"))] == ["? Run this command?"]
    assert [line for line in lines if line.startswith(("1) ", "1  "))] == ["1  Allow once"]
    assert "│ Allow Codex to run `ls`?" in lines
