"""The seed of this door (ACP adapter, v0.1): its five integration tests, its record, its testing plan.

The traces are golden: what a client and the agent say to each other, in order. `PLAN` names the tests
for every line of the seed's testing plan and of its acceptance criteria. Where the seed was overruled:
the record has no defaults of its own until something is chosen (the user's config.toml rules), a second
prompt waits instead of being refused, `session/load` answers with the options, and a turn that failed is
an error.
"""

from __future__ import annotations

import ast
import json
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from laneway.doors.acp.ids import thread_id
from tests.doors.acp.golden import golden
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import FULL, Client, Message, Stage, select, stage
from tests.doors.acp.telling import Gate, only_call
from tests.doors.acp.witness import choose

HERE = Path(__file__).resolve().parent
PLAN = {
    "unit: content": "sessions/test_prompts.py::test_blocks_keep_their_order_and_empty_texts_are_left_out",
    "unit: image": "sessions/test_prompts.py::test_an_image_becomes_a_data_url",
    "unit: resource": "sessions/test_prompts.py::test_an_embedded_file_is_wrapped_with_its_address_and_type",
    "unit: command": "updates/test_tool_calls.py::test_a_command_is_shown_with_its_output",
    "unit: edit": "updates/test_tool_calls.py::test_an_edit_is_followed_while_it_is_written",
    "unit: web search": "updates/test_tool_views.py::test_a_web_search_says_what_it_looks_for",
    "unit: MCP tool": "updates/test_tool_views.py::test_results_of_mcp_tools_are_content",
    "unit: all other items": "updates/test_tool_views.py::test_every_other_item_has_a_title_and_a_kind",
    "unit: every end": "updates/test_tool_calls.py::test_every_way_to_end_ends_the_call",
    "unit: accept, decline": "questions/test_permission_options.py::"
    "test_the_option_that_was_selected_is_the_answer",
    "unit: cancel": "questions/test_permission_options.py::"
    "test_a_cancelled_request_stops_where_it_can_and_declines_where_it_cannot",
    "unit: full state": "sessions/test_options.py::test_what_is_shown_fits_the_official_schema",
    "integration 1": "test_seed.py::test_1_a_basic_prompt_streams_and_ends",
    "integration 2": "test_seed.py::test_2_a_command_that_needs_approval",
    "integration 3": "test_seed.py::test_3_a_file_change_that_needs_approval",
    "integration 4": "test_seed.py::test_4_a_turn_is_cancelled_in_the_middle",
    "integration 5": "test_seed.py::test_5_a_restarted_adapter_replays_the_session_in_order",
    "criterion 1, any client": "test_official_client.py::"
    "test_the_official_client_talks_and_sees_output_and_edits",
    "criterion 1, another": "../../peers/test_acp_peers.py::test_acpx_prints_the_answer",
    "criterion 1, cancel": "../../peers/test_acp_peers.py::test_acpx_cancels_a_prompt_from_another_process",
    "criterion 1, streamed": "test_seed.py::test_what_is_said_is_seen_while_the_model_speaks",
    "criterion 2": "test_point_01_output_visible.py::"
    "test_output_is_content_for_a_client_that_knows_no_terminal_of_ours",
    "criterion 3": "test_point_06_approvals.py::test_a_command_is_asked_for_with_all_that_it_takes_to_decide",
    "criterion 4": "test_seed.py::test_5_a_restarted_adapter_replays_the_session_in_order",
    "criterion 5, state": "test_point_03_config_rules.py::test_the_options_are_told_whole_at_every_change",
    "criterion 5, effect": "test_point_03_config_rules.py::"
    "test_nothing_is_sent_along_until_something_is_chosen_and_then_only_that",
    "observability": "test_logs.py::test_a_prompt_and_its_tool_calls_can_be_followed_through_the_logs",
}
"""Files, as seen from this folder."""
WITHOUT = ("usage_update",)
ANSWERS = pytest.mark.parametrize(
    ("name", "kind", "status"),
    [("granted", "allow_once", "completed"), ("declined", "reject_once", "failed")],
    ids=["granted", "declined"],
)


@pytest.mark.parametrize("line", PLAN)
def test_every_line_of_the_seeds_plan_has_its_test(line: str) -> None:
    """By name: a test that is renamed is named anew here."""
    file, _, name = PLAN[line].partition("::")
    tree = ast.parse((HERE / file).read_text())
    assert name in {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


# ── the five integration tests ─────────────────────────────────────────────


async def test_1_a_basic_prompt_streams_and_ends(shared: Shared) -> None:
    """A thought, a plan, a message, and the reason why it stopped."""
    async with shared.stage() as here, here.agent() as client:
        session = await client.new()
        prompt = "%think Let me see.\n%plan Look; Answer\n%stream 30 words"
        assert await client.prompt(session, prompt) == {"stopReason": "end_turn"}
    assert client.text(session).split()[:3] == ["one", "two", "three"]
    assert len(client.text(session).split()) == 30
    golden("seed-1-basic-prompt", client.trace(WITHOUT))


async def test_what_is_said_is_seen_while_the_model_speaks(shared: Shared) -> None:
    """Long before the end, which would take a quarter of an hour."""
    async with shared.stage() as here, here.agent() as client:
        session = await client.new()
        going = client.start_prompt(session, "%stream 9000 words over 900 seconds")
        await client.wait_kind("agent_message_chunk", session)
        assert not going.done()
        client.cancel(session)
        assert await going == {"stopReason": "cancelled"}


@ANSWERS
async def test_2_a_command_that_needs_approval(shared: Shared, name: str, kind: str, status: str) -> None:
    """Asked for once, with the call that it is about; what was not allowed did not run."""
    async with shared.stage() as here, here.agent() as client:
        client.on_permission = lambda params: select(params, kind)
        session = await client.new()
        prompt = "%run! echo done > ../outside; echo ran\n%say After."
        assert await client.prompt(session, prompt) == {"stopReason": "end_turn"}
        assert (here.home.parent / "outside").exists() == (status == "completed")
    (asked,) = client.asked
    call = only_call(client)
    assert asked["params"]["toolCall"]["toolCallId"] == call["toolCallId"]
    assert (call["kind"], call["status"]) == ("execute", status)
    assert client.messages(session) == ["After."]
    golden(f"seed-2-command-{name}", client.trace(WITHOUT))


@ANSWERS
async def test_3_a_file_change_that_needs_approval(shared: Shared, name: str, kind: str, status: str) -> None:
    """The diff is shown before the answer, and made only after it."""
    async with shared.stage() as here, here.agent() as client:
        file = here.work / "notes.txt"
        file.write_text("first\nsecond\nthird\n")
        client.on_permission = lambda params: select(params, kind)
        session = await client.new()
        prompt = "%edit notes.txt second => SECOND\n%say After."
        assert await client.prompt(session, prompt) == {"stopReason": "end_turn"}
        expected = "SECOND" if status == "completed" else "second"
        assert file.read_text() == f"first\n{expected}\nthird\n"
    (asked,) = client.asked
    assert asked["params"]["toolCall"]["content"][0]["type"] == "diff"
    call = only_call(client)
    assert (call["kind"], call["status"]) == ("edit", status)
    golden(f"seed-3-edit-{name}", client.trace(WITHOUT))


async def test_4_a_turn_is_cancelled_in_the_middle(shared: Shared) -> None:
    """While a command runs: it ends, the prompt is answered, and the session takes the next one."""
    async with shared.stage() as here, here.agent() as client:
        session = await client.new()
        with closing(Gate(here.work / "gate")):
            going = client.start_prompt(session, "%say Working.\n%run read x < gate; echo no\n%say No.")
            await client.wait_kind("tool_call", session)
            client.cancel(session)
            assert await going == {"stopReason": "cancelled"}
        assert only_call(client)["status"] == "failed"
        assert await client.prompt(session, "%say Still here.") == {"stopReason": "end_turn"}
    assert client.messages(session) == ["Working.", "Still here."]
    golden("seed-4-cancellation", client.trace(WITHOUT))


async def test_5_a_restarted_adapter_replays_the_session_in_order(tmp_path: Path) -> None:
    """Another process, the same conversation: prompts, thoughts, calls and messages as they came."""
    story = ("%think Hm.\n%run echo ran\n%say First.", "%patch new.txt text\n%say Second.")
    async with stage(tmp_path) as here:
        here.environment["XDG_STATE_HOME"] = str(tmp_path / "kept")
        async with here.agent() as client:
            session = await client.new()
            await choose(client, session, "mode", "code")
            for prompt in story:
                assert await client.prompt(session, prompt) == {"stopReason": "end_turn"}
            before = views(client, session)
        async with here.agent() as client:
            loaded = await client.load(session)
            told = views(client, session)
            await client.prompt(session, "%say Third.")
            assert all(prompt in json.dumps(here.requests[-1]["input"]) for prompt in ("ran", "Second."))
    assert loaded["modes"]["currentModeId"] == "code"
    said = [("user_message_chunk", story[0]), *before[:3], ("user_message_chunk", story[1]), *before[3:]]
    assert told == said
    golden("seed-5-persistence", client.trace(WITHOUT))


def views(client: Client, session: str) -> list[tuple[str, str]]:
    """What a person sees of a conversation, in order: texts whole, calls by their titles."""
    seen: list[tuple[str, str]] = []
    for update in client.updates:
        body = update.body
        if update.kind == "tool_call":
            seen.append((update.kind, body["title"]))
        elif update.kind.endswith("_chunk"):
            word = body["content"]["text"]
            if seen and seen[-1][0] == update.kind:
                word = seen.pop()[1] + word
            seen.append((update.kind, word))
    return seen


# ── what is kept ───────────────────────────────────────────────────────────

SECRETS = ("hunter2-of-the-program", "hunter2-of-the-page")
SERVERS: list[Message] = [
    {"name": "tool", "command": "/bin/cat", "args": [], "env": [{"name": "MY_KEY", "value": SECRETS[0]}]},
    {
        "type": "http",
        "name": "page",
        "url": "http://127.0.0.1:1/mcp",
        "headers": [{"name": "Authorization", "value": f"Bearer {SECRETS[1]}"}],
    },
]


def records(file: Path) -> list[dict[str, Any]]:
    """The rows themselves, by no code of ours."""
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT * FROM editor_sessions ORDER BY rowid")]


async def configured(here: Stage, *words: str) -> tuple[str, str]:
    """Two sessions, one of which is set to something and has servers with secrets; their ids."""
    async with here.agent(*words, capabilities=FULL) as client:
        plain = await client.new()
        session = await client.new(mcpServers=SERVERS)
        for option, value in (("mode", "ask"), ("model", "gpt-5.5"), ("thought_level", "high")):
            await choose(client, session, option, value)
        await choose(client, session, "network", True)
        await client.prompt(session, "%say One.")
        assert last_word(client, session) == "One."
        assert not any(secret in client.stderr for secret in SECRETS)
    return plain, session


def last_word(client: Client, session: str) -> str:
    return client.messages(session)[-1]


async def test_a_session_is_kept_with_the_fields_of_the_seed(tmp_path: Path) -> None:
    """Ids, folder, times, and what was chosen with the access that came of it; nothing else is made up."""
    async with stage(tmp_path) as here:
        here.environment["XDG_STATE_HOME"] = str(tmp_path / "kept")
        ids = await configured(here)
    plain, record = records(tmp_path / "kept" / "laneway" / "laneway.db")
    assert (plain["session_id"], record["session_id"]) == ids
    assert record["thread_id"] == thread_id(record["session_id"])
    assert record["cwd"] == str(here.work)
    assert 0 < record["created_at"] <= record["updated_at"]
    defaults = json.loads(record["defaults"])
    chosen = {name: defaults[name] for name in ("mode", "model", "effort", "approvalPolicy")}
    assert chosen == {"mode": "ask", "model": "gpt-5.5", "effort": "high", "approvalPolicy": "untrusted"}
    sandbox = defaults["sandboxPolicy"]
    assert (sandbox["type"], sandbox["networkAccess"]) == ("workspaceWrite", True)
    assert not json.loads(plain["defaults"]).keys() & {"mode", "model", "effort", "personality"}


async def test_what_is_kept_is_private_and_holds_no_secret(tmp_path: Path) -> None:
    """Neither the file nor a log that tells everything has what the client said of MCP servers."""
    log = tmp_path / "logs" / "acp.log"
    log.parent.mkdir()
    async with stage(tmp_path / "state") as here:
        here.environment["XDG_STATE_HOME"] = str(tmp_path / "kept")
        await configured(here, "--log-level", "trace", "--log-file", str(log))
    folder = tmp_path / "kept" / "laneway"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for file in folder.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    written = [file.read_bytes() for file in (*folder.iterdir(), *log.parent.iterdir())]
    assert any(b"mcp_servers" in each for each in written)  # the log does tell of them
    assert not [secret for secret in SECRETS for each in written if secret.encode() in each]
