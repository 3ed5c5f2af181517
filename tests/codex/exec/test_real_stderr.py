"""What the real Codex says on standard error only: why it did not start, and what it refused to run."""

from __future__ import annotations

from asyncio.subprocess import Process

import pytest

from laneway.codex.exec.command import argv
from laneway.codex.exec.events import WorkerEvent
from laneway.codex.exec.outcome import Verdict
from laneway.codex.exec.stderr import refused_calls
from tests.codex.exec.support import Ended, bench

NOBODY = "01a1f00b-16f7-7102-a310-1145cf7ac18a"


def launch(ended: Ended, reason: str, thread_id: str | None = None) -> str:
    """The sentence of a launch fault."""
    fault = ended.verdict(thread_id=thread_id)
    assert (fault.kind, fault.reason) == ("launch", reason), ended.stderr
    assert ended.state.turn == "none"
    assert ended.contents("message", "tool_call", "error") == []
    return fault.text


async def test_a_folder_that_is_not_there() -> None:
    """Nothing but the error number of the system is told."""
    async with bench() as here:
        ended = await here.run("%say x", cwd=str(here.work / "missing"))
        assert launch(ended, "folder") == "The folder to work in does not exist."


async def test_a_schema_that_is_missing_or_no_json() -> None:
    """A schema that is none passes: that is ours to check."""
    async with bench() as here:
        file = here.home / "schema.json"
        ended = await here.run("%say x", schema_file=str(file))
        assert launch(ended, "schema") == "Codex cannot read the file of the output schema."
        file.write_text("{")
        ended = await here.run("%say x", schema_file=str(file))
        assert launch(ended, "schema") == "The output schema is not valid JSON."


@pytest.mark.needs("writer_lock")
async def test_a_thread_that_another_codex_writes() -> None:
    """It is told before anything is sent to the model."""
    async with bench() as here:
        others: list[Ended] = []

        async def meanwhile(event: WorkerEvent, process: Process) -> None:
            if event.content.get("kind") == "turn.started":
                others.append(await here.run("%say y", thread_id=first.state.thread_id))
                process.terminate()

        first = await here.run("%say x")
        await here.run("%hang", thread_id=first.state.thread_id, on_event=meanwhile)
        text = launch(others[0], "busy", first.state.thread_id)
        assert text == "The thread is in use by another Codex."


async def test_a_thread_that_does_not_exist() -> None:
    """Before 0.133 Codex silently began another one, and it does so to this day for a name."""
    async with bench() as here:
        ended = await here.run("%say x", thread_id=NOBODY)
        fault = ended.verdict(thread_id=NOBODY)
        assert (fault.kind, fault.reason) == ("launch", "thread")
        words = [*argv(here.command())[:-1], "resume", "nobody", "-"]
        ended = await here.run("%say x", words=words)
        assert ended.verdict() == Verdict()
        text = "Codex does not know the thread, and began another one."
        assert ended.verdict(thread_id=NOBODY) == Verdict("launch", "thread", text)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("\n[broken\n", "config.toml:21:8: unclosed table, expected `]`."),
        ("\n[tui]\nnotifications = 5\n", "untagged enum Notifications."),
        ("\n[model_providers.x]\nname = 5\n", "invalid type: integer `5`, expected a string."),
    ],
)
async def test_a_configuration_that_cannot_be_loaded(config: str, words: str) -> None:
    """The place is told."""
    async with bench() as here:
        with here.config.open("a") as file:
            file.write(config)
        text = launch(await here.run("%say x"), "config")
        assert text.startswith("Codex cannot load its configuration: ")
        assert text.endswith(words)


async def test_a_provider_and_a_home_that_are_not_there() -> None:
    """Both are the configuration's fault."""
    async with bench() as here:
        here.config.write_text(here.config.read_text().replace('= "rehearsal"', '= "nowhere"', 1))
        text = launch(await here.run("%say x"), "config")
        assert text == "Codex's configuration is incomplete: Model provider `nowhere` not found."
        missing = str(here.home / "missing")
        text = launch(await here.run("%say x", environment={"CODEX_HOME": missing}), "config")
        assert text.startswith("Codex has no home: CODEX_HOME points to")


@pytest.mark.needs("writer_lock")
async def test_a_required_server_that_does_not_start() -> None:
    """It is named."""
    async with bench('\n[mcp_servers.mine]\ncommand = "false"\nrequired = true\n') as here:
        text = launch(await here.run("%say x"), "server")
        assert text == "An MCP server that is required by Codex's configuration did not start: mine."


async def test_a_login_that_the_user_has_ruled_out() -> None:
    """Codex logs out and ends. No login at all is told by the provider, as a turn that fails."""
    async with bench() as here:
        here.config.write_text('forced_login_method = "chatgpt"\n' + here.config.read_text())
        (here.home / "auth.json").write_text('{"OPENAI_API_KEY": "sk-none"}')
        assert launch(await here.run("%say x"), "login") == "Codex is not logged in: run `codex login`."


async def test_a_prompt_that_is_empty_or_too_long() -> None:
    """We refuse both before; a version that takes a longer one just runs it."""
    async with bench() as here:
        assert launch(await here.run(" \n"), "prompt") == "The prompt is empty."
        ended = await here.run("%say x\n" + "x" * 1_048_576)
        if ended.returncode:
            assert launch(ended, "prompt") == "The prompt is longer than Codex takes."


async def test_a_command_line_that_is_not_understood() -> None:
    """By an older version than the one it was written for."""
    async with bench() as here:
        for more, words in (
            (("--disable", "nonsense"), "Unknown feature flag: nonsense"),
            (("--nonsense",), "unexpected argument '--nonsense' found"),
        ):
            text = launch(await here.run("%say x", extra=more), "version")
            assert (
                text == f"This version of Codex does not take a worker's command line ({words}): upgrade it."
            )


@pytest.mark.covers("J-workers.1")
@pytest.mark.needs("item_before_question")
async def test_calls_that_are_refused_give_no_event() -> None:
    """By a rule, for leaving the sandbox, for writing without being allowed to, for being wrong."""
    async with bench() as here:
        prompt = "%run rm -rf /nonexistent/x\n%run! touch /x\n%patch a b\n%tool nonsense\n%run rm -rf it"
        ended = await here.run(prompt)
        assert ended.verdict() == Verdict()
        assert ended.contents("tool_call", "tool_result") == []
        rule, outside, patch, nonsense, quoted = refused_calls(ended.stderr)
        assert rule.command == "rm -rf /nonexistent/x"
        assert "rm -f" in rule.reason or "policy" in rule.reason
        assert outside.reason.startswith("approval policy is Never; reject command")
        assert patch.reason.startswith("patch rejected: writing is blocked by read-only sandbox")
        assert (nonsense.reason, nonsense.is_rejected) == ("unsupported call: nonsense", False)
        assert quoted.command is not None
        assert "rm -rf" in quoted.command
        assert [call.is_rejected for call in (rule, outside, patch, quoted)] == [True] * 4


@pytest.mark.needs("item_before_question")
async def test_a_patch_that_does_not_fit_is_wrong_and_not_rejected() -> None:
    """Its message goes over several lines."""
    async with bench() as here:
        (here.work / "a").write_text("one\n")
        ended = await here.run("%edit a two => three\n%say x", sandbox="workspace-write")
        (call,) = refused_calls(ended.stderr)
        assert call.reason.startswith("apply_patch verification failed: Failed to find expected lines")
        assert call.reason.endswith("two")
        assert not call.is_rejected
