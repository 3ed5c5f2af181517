"""What can be read of a session afterwards: its transcript, its summary, the audit log (FR-9, resources)."""

from __future__ import annotations

import stat
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.doors.mcp.support import stage
from tests.doors.mcp.views import QUIET, audit, hanging, registry

SECRET = "sk-proj-" + "a1B2" * 12


@pytest.mark.covers("FR-9.2", "FR-9.3", "NFR-3")
async def test_the_audit_log_follows_every_call_by_its_ids_and_keeps_no_secret(tmp_path: Path) -> None:
    """A line when a turn is asked for and one when it is over, both with the request; prompts are cut."""
    prompt = f"%say done\nmy key is {SECRET} and the rest is long: " + "é" * 400
    async with stage(tmp_path) as here, here.server("mcp", "--team", "crew", env=QUIET) as client:
        session = await client.content("codex", prompt=prompt, identity="dev")
        first = str(client.last_id)
        await client.call("codex-reply", prompt="%fail 400 no", agent_id=session["agent_id"])
        second = str(client.last_id)
        await client.content("agent_close", agent_id=session["agent_id"])
        await client.hang_up()
        lines = audit(here, "crew")
        text = (here.sessions / "crew" / "audit.jsonl").read_text()

    who = {"agent_id": session["agent_id"], "identity": "dev", "thread_id": session["threadId"]}
    assert all({**line, **who} == line for line in lines)
    assert all(line["timestamp"] for line in lines)
    steps = [(line["event_type"], line.get("request_id"), line.get("outcome")) for line in lines]
    assert steps[0][0] == "session_opened"
    assert ("codex", first, None) in steps
    assert ("turn_done", first, "completed") in steps
    assert ("codex-reply", second, None) in steps
    (failed,) = [step for step in steps if step[:2] == ("turn_done", second)]
    assert str(failed[2]).startswith("failed")
    assert steps[-1] == ("session_closed", None, "closed")
    assert all(line["turn_id"] for line in lines if line["event_type"] == "turn_done")
    (asked,) = [line for line in lines if line["event_type"] == "codex"]
    assert len(asked["prompt_summary"]) == 200
    assert SECRET not in text
    assert SECRET[:20] not in text


@pytest.mark.parametrize("is_kept", [True, False])
async def test_instructions_are_kept_word_for_word_only_where_a_resume_needs_them(
    tmp_path: Path, is_kept: bool
) -> None:
    """In a file of the user's alone; docs/sessions.md says so. The audit log has none of it."""
    env = {**QUIET, "LANEWAY_PERSIST_THREADS": "true" if is_kept else "false"}
    async with stage(tmp_path) as here, here.server("mcp", env=env) as client:
        said = f"The key is {SECRET}."
        asked = {"developer-instructions": said, "base-instructions": f"Base. {said}"}
        await client.content("codex", prompt="%say x", identity="dev", **asked)
        await client.hang_up()
        path = here.sessions / "default" / "dev" / "registry.json"
        (entry,) = registry(here, "dev")
        assert entry["developer_instructions"] == (said if is_kept else None)
        assert entry["base_instructions"] == (f"Base. {said}" if is_kept else None)
        assert (SECRET in path.read_text()) is is_kept
        for place, mode in ((path, 0o600), (path.parent, 0o700), (path.parent.parent, 0o700)):
            assert stat.S_IMODE(place.stat().st_mode) == mode
        assert SECRET not in (here.sessions / "default" / "audit.jsonl").read_text()
        assert SECRET not in client.stderr


async def test_transcripts_and_summaries_are_resources(tmp_path: Path) -> None:
    """Listed, described by templates, and readable for sessions that are live, closed, or of before."""
    async with stage(tmp_path) as here:
        async with here.server("mcp") as client:
            session = await client.content(
                "codex", prompt="%run echo printed\n%say the answer", identity="dev"
            )
            uri = f"laneway://sessions/{session['agent_id']}/transcript"
            everything = (await client.ask("resources/list", {}))["result"]["resources"]
            (listed,) = [each for each in everything if each["uri"].startswith("laneway:")]
            assert (listed["uri"], listed["mimeType"]) == (uri, "text/markdown")
            templates = (await client.ask("resources/templates/list", {}))["result"]["resourceTemplates"]
            assert {"transcript", "summary"} <= {each["name"] for each in templates}
            live = (await client.ask("resources/read", {"uri": uri}))["result"]["contents"][0]["text"]
            agent_id, _ = await hanging(client, identity="busy")
            closed = await client.content("agent_close", agent_id=agent_id)
            (summary,) = (await client.ask("resources/read", {"uri": _summary(agent_id)}))["result"][
                "contents"
            ]
            assert summary["text"].strip() == closed["summary"]
        async with here.server("mcp", env=QUIET) as client:
            later = (await client.ask("resources/read", {"uri": uri}))["result"]["contents"][0]["text"]
            ended = (await client.ask("resources/read", {"uri": _summary(session["agent_id"])}))["result"]
            uris = {each["uri"] for each in (await client.ask("resources/list", {}))["result"]["resources"]}

    for text in (live, later):
        assert "the answer" in text
        assert "printed" in text
    assert ended["contents"][0]["text"].strip()
    assert {uri, _summary(session["agent_id"]), _summary(agent_id)} <= uris


def _summary(agent_id: str) -> str:
    return f"laneway://sessions/{agent_id}/summary"


async def test_a_resource_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    """Wrong schemes, wrong places, paths, unknown sessions, a summary that nobody wrote."""
    async with stage(tmp_path) as here, here.server("mcp", env=QUIET) as client:
        session = await client.content("codex", prompt="%say x")
        assert (await client.ask("resources/read", {"uri": _summary(session["agent_id"])}))["error"][
            "code"
        ] == -32602
        wrong = {
            "laneway://sessions/agent-unknown/transcript": -32002,
            "laneway://sessions/agent-unknown/summary": -32002,
            f"laneway://sessions/{quote('../../etc/passwd', safe='')}/transcript": -32002,
            "laneway://sessions//transcript": -32602,
            "laneway://sessions/a/b/transcript": -32602,
            f"laneway://sessions/{session['agent_id']}/diary": -32602,
            f"laneway://elsewhere/{session['agent_id']}/transcript": -32602,
            "file:///etc/passwd": -32602,
            "http://[": -32602,
            "": -32602,
            "x" * 10_000: -32602,
        }
        for uri, code in wrong.items():
            answer = await client.ask("resources/read", {"uri": uri})
            assert answer["error"]["code"] == code, answer
            assert len(answer["error"]["message"]) < 500
