"""The real `codex exec` with our command line: what its events say, and how its ends are told apart."""

from __future__ import annotations

import signal
from asyncio.subprocess import Process
from typing import Any

import pytest

from laneway.codex.exec.activities import PatchedFile
from laneway.codex.exec.events import WorkerEvent
from laneway.codex.exec.outcome import Verdict
from laneway.codex.exec.tokens import TokenCount, TokenTail
from tests.codex.exec.support import bench, seen_by_model, tools_of


@pytest.mark.covers("J-workers.1")
async def test_a_worker_that_answers_has_succeeded() -> None:
    """The prompt may look like a flag, and anything but UTF-8's limits; it is never a word."""
    async with bench() as here:
        ended = await here.run("--help\n%think hm\n%say Grüße 🌍")
        assert ended.verdict() == Verdict()
        assert ended.state.last_message == "Grüße 🌍"
        assert ended.state.usage == TokenCount(100, 0, 2, 0, 102)
        contents = ended.contents("progress", "message")
        assert contents == [
            {"kind": "thread.started", "threadId": ended.state.thread_id},
            {"kind": "turn.started"},
            {"kind": "reasoning", "text": "hm"},
            {"text": "Grüße 🌍"},
            {"kind": "turn.completed", "usage": contents[-1]["usage"]},
        ]
        assert "--help" in seen_by_model(here.requests[0])


@pytest.mark.covers("004-recursion.1", "J-workers.2")
async def test_a_worker_has_no_way_to_get_workers_of_its_own() -> None:
    """Whatever the user's configuration switches on, under old names and new ones."""
    async with bench() as here:
        on = "[features]\nmulti_agent = true\nmulti_agent_v2 = true\ngoals = true\ncollab = true"
        here.config.write_text(here.config.read_text().replace("[features]", on))
        assert (await here.run("%say x")).verdict().has_succeeded
        tools = tools_of(here.requests[0])
        assert tools >= {"exec_command", "update_plan"}
        assert not [name for name in tools if any(word in name for word in ("agent", "collab", "goal"))]


@pytest.mark.needs("item_before_question")
async def test_commands_and_patches_are_told_with_when_they_ran() -> None:
    """A shell's edits are in no event but its command."""
    async with bench() as here:
        prompt = "%run echo one > a; exit 3\n%patch b two\n%edit b two => three\n%plan x; y\n%say done"
        ended = await here.run(prompt, sandbox="workspace-write")
        assert ended.verdict().has_succeeded
        assert (here.work / "a").read_text() == "one\n"
        assert (here.work / "b").read_text() == "three\n"
        b = str(here.work / "b")
        log = ended.output.activities
        assert [(change.path, change.kind) for change in log.changes] == [(b, "add"), (b, "update")]
        assert [activity.kind for activity in log.all] == ["command", "patch", "patch"]
        assert all(activity.ended is not None and activity.started < activity.ended for activity in log.all)
        assert log.running == ()
        assert "echo one > a" in log.all[0].text
        assert log.all[1].text == b
        command = [content for content in ended.contents("tool_result") if content["tool"] == "command"]
        assert command[0]["exitCode"] == 3
        assert command[0]["status"] == "failed"
        plans = [content for content in ended.contents("progress") if content["kind"] == "todo_list"]
        assert plans[0]["items"] == [{"text": "x", "completed": False}, {"text": "y", "completed": False}]


@pytest.mark.needs("item_before_question")
async def test_a_command_in_the_background_has_no_end() -> None:
    """Codex ends it with the turn, and tells nothing of that."""
    async with bench() as here:
        step = '{"cmd": "sleep 60; echo late > late", "yield_time_ms": 300}'
        ended = await here.run(f"%tool exec_command {step}\n%say x", sandbox="workspace-write")
        assert ended.verdict().has_succeeded
        (running,) = ended.output.activities.running
        assert (running.kind, running.ended) == ("command", None)
        assert not (here.work / "late").exists()


@pytest.mark.needs("item_before_question")
async def test_what_was_renamed_by_a_patch_is_told_by_its_old_name_only() -> None:
    """As an update: whoever wants to know where it went looks at the folder."""
    async with bench() as here:
        (here.work / "old").write_text("one\n")
        patch = "*** Begin Patch\\n*** Update File: old\\n*** Move to: new\\n@@\\n-one\\n+two\\n*** End Patch"
        step = f'{{"cmd": "apply_patch <<\'EOF\'\\n{patch}\\nEOF\\n"}}'
        ended = await here.run(f"%tool exec_command {step}\n%say x", sandbox="workspace-write")
        assert (here.work / "new").read_text() == "two\n"
        (change,) = ended.output.activities.changes
        assert change == PatchedFile(str(here.work / "old"), "update", change.item_id)


async def test_a_turn_that_fails_is_told_with_its_reason() -> None:
    """Exit 1, `error` and `turn.failed`; the words are the provider's."""
    async with bench() as here:
        ended = await here.run("%fail 401 Missing bearer")
        fault = ended.verdict()
        assert (ended.returncode, fault.kind, fault.reason) == (1, "turn", "login")
        assert fault.text.startswith("The turn failed: unexpected status 401 Unauthorized: Missing bearer")
        assert ended.contents("error")[-1]["kind"] == "turn.failed"
        fault = (await here.run("%fail 400 No such parameter.")).verdict()
        assert fault == Verdict("turn", "other", "The turn failed: No such parameter.")
        assert (await here.run("%fail 429 x")).verdict().reason == "limit"
        assert (await here.run("%fail 500 x")).verdict().reason == "provider"
        assert (await here.run("%break")).verdict().reason == "network"


@pytest.mark.covers("J-workers.13")
@pytest.mark.needs("writer_lock")
async def test_a_provider_out_of_reach_gives_no_sign_of_life() -> None:
    """Codex tries again for ever, and says so each time."""
    async with bench() as here:
        file = here.config.read_text()
        here.config.write_text(
            file.replace(file.split('base_url = "')[1].split('"')[0], "http://127.0.0.1:9/v1")
        )
        seen: list[WorkerEvent] = []

        async def stop(event: WorkerEvent, process: Process) -> None:
            seen.append(event)
            if event.content.get("kind") == "reconnecting":
                process.terminate()

        ended = await here.run("%say x", on_event=stop)
        assert [event.is_sign_of_life for event in seen if event.type == "error"][-1] is False
        fault = ended.verdict()
        assert (ended.returncode, fault.kind, fault.reason) == (-signal.SIGTERM, "exit", "signal")
        assert fault.text.startswith("Codex was ended by SIGTERM within its turn: Reconnecting")


async def test_an_interrupted_worker_has_written_down_what_it_used() -> None:
    """SIGINT: exit 1, no event, but the record has it; and the thread goes on afterwards."""
    async with bench() as here:

        async def interrupt(event: WorkerEvent, process: Process) -> None:
            if event.type == "tool_call" and "sleep" in event.content["command"]:
                process.send_signal(signal.SIGINT)

        ended = await here.run("%usage 700\n%run true\n%usage 900\n%run sleep 60\n%say x", on_event=interrupt)
        assert ended.state.turn == "running"
        assert ended.verdict().kind in ("exit", "no_turn")  # 0.104 exits with 0
        tail = TokenTail(str(here.home), ended.state.thread_id)
        assert tail.last.total == 1600
        tail.look()
        assert tail.used == TokenCount()
        again = await here.run("%usage 50\n%say back", thread_id=ended.state.thread_id)
        assert again.verdict(thread_id=ended.state.thread_id).has_succeeded
        assert tail.look().total == 51
        assert again.state.usage == tail.last


@pytest.mark.covers("J-workers.10")
async def test_tokens_are_counted_after_every_call_of_the_model() -> None:
    """Also of a thread of which the caller learns the id only when it has begun."""
    async with bench() as here:
        tail = TokenTail(str(here.home))
        counts: list[int] = []

        async def look(event: WorkerEvent, process: Process) -> None:
            thread_id = event.content.get("threadId")
            counts.append(tail.look(thread_id).total)

        prompt = "%usage 500\n%run true\n%usage 600\n%run true\n%usage 700\n%say x"
        ended = await here.run(prompt, on_event=look)
        assert tail.look(ended.state.thread_id) == TokenCount(1800, 0, 1, 0, 1801)
        assert set(counts) <= {0, 500, 1100, 1800, 1801}
        assert len(set(counts)) >= 3
        assert ended.state.usage == tail.used


async def test_an_answer_that_breaks_the_schema_is_a_success_for_codex() -> None:
    """So it is checked by us."""
    from laneway.codex.exec.output import output_problem

    schema = {
        "type": "object",
        "properties": {"colour": {"enum": ["red", "blue"]}},
        "required": ["colour"],
        "additionalProperties": False,
    }
    async with bench() as here:
        file = here.home / "schema.json"
        file.write_text('{"type": "object"}')
        ended = await here.run('%say {"colour": "green"}', schema_file=str(file))
        assert ended.verdict().has_succeeded
        assert here.requests[0]["text"]["format"]["schema"] == {"type": "object"}
        problem = output_problem(schema, ended.state.last_message)
        text = 'The output does not satisfy the schema: $.colour must be one of ["red", "blue"].'
        assert ended.verdict(schema_problem=problem) == Verdict("schema", "output", text)
        ended = await here.run('%say {"colour": "red"}', schema_file=str(file))
        assert output_problem(schema, ended.state.last_message) is None


@pytest.mark.parametrize(
    ("first", "second"),
    [("read-only", "workspace-write"), ("workspace-write", "read-only"), ("read-only", "danger-full-access")],
)
async def test_a_thread_goes_on_in_the_sandbox_and_folder_that_were_asked_for(
    first: str, second: str
) -> None:
    """Whatever it had before."""
    async with bench() as here:
        other = here.work / "other"
        other.mkdir()
        ended = await here.run("%run touch one\n%say x", sandbox=first)
        thread_id = ended.state.thread_id
        again = await here.run(
            "%run touch two; touch ../three\n%say y",
            sandbox=second,
            cwd=str(other),
            thread_id=thread_id.upper(),
        )
        assert again.verdict(thread_id=thread_id).has_succeeded
        assert again.state.thread_id == thread_id
        assert (here.work / "one").exists() == (first != "read-only")
        assert (other / "two").exists() == (second != "read-only")
        assert (here.work / "three").exists() == (second == "danger-full-access")


async def test_model_effort_and_more_options_reach_codex() -> None:
    """Of a thread that goes on, too."""
    async with bench() as here:
        beside = here.home.parent / "beside"
        beside.mkdir()
        fields: dict[str, Any] = {"model": "gpt-5.5", "effort": "low", "sandbox": "workspace-write"}
        fields["extra"] = ("--add-dir", str(beside))
        ended = await here.run(f"%run touch {beside}/made\n%say x", **fields)
        assert ended.verdict().has_succeeded
        assert (beside / "made").exists()
        assert here.requests[-1]["reasoning"]["effort"] == "low"
        fields["effort"] = "high"
        await here.run("%say x", thread_id=ended.state.thread_id, **fields)
        assert here.requests[-1]["reasoning"]["effort"] == "high"
