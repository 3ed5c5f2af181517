"""Jobs on another machine, from this one: two homes joined by `laneway jobs node`, with real workers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import JobUnknown, LanewayError, NodeUnreachable, UsageError
from laneway.core.tools import Caller
from laneway.jobs.gc import collect, plan
from laneway.jobs.model import Job
from laneway.jobs.nodes.remote_ledger import RemoteLedger
from tests.jobs.nodes.homes import NODE, homes
from tests.jobs.nodes.hostile import JOB
from tests.jobs.nodes.test_pipe import command

BOB = Caller(agent_id="", principal="http:bob")
EVE = Caller(agent_id="", principal="http:eve")


def running(status: dict[str, Any]) -> bool:
    return bool(status["status"] == "running" and "activity" in status)


@pytest.mark.covers("J-nodes.1")
async def test_a_job_runs_on_the_other_machine_and_is_told_here(tmp_path: Path) -> None:
    """Status, result and events are those of the other ledger; its files change there."""
    async with homes(tmp_path) as both, both.near() as near:
        job_id = await near.spawn("%patch new.txt one\n%say Done.", sandbox="workspace-write")
        assert await near.ended(job_id) == {job_id: "succeeded"}
        (job,) = both.far.ledger.listed()
        assert (job.job_id, job.cwd, job.owner) == (job_id, str(both.there.work), "local")
        result = await near.ask("result", jobId=job_id)
        assert result["lastMessage"] == "Done."
        assert result["modifiedFiles"] == [{"path": "new.txt", "certainty": "patch", "change": "added"}]
        assert (both.there.work / "new.txt").read_text() == "one\n"
        assert await near.events(job_id) == both.there.events(both.far, job)
        (row,) = (await near.ask("list"))["jobs"]
        shown = {name: row[name] for name in ("jobId", "status", "node", "mode")}
        assert shown == {"jobId": job_id, "status": "succeeded", "node": NODE, "mode": "write"}


@pytest.mark.covers("J-nodes.4")
async def test_a_worker_has_its_machines_environment_and_nothing_of_the_spawners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPAWNERS", "secret")
    async with homes(tmp_path) as both, both.near() as near:
        job_id = await near.spawn("%run env\n%say Seen.")
        await near.until(job_id, lambda status: status["status"] != "queued")
        await near.ended(job_id)
        seen = json.dumps(both.there.events(both.far, both.far.get(job_id)))
        assert "PATH=" in seen
        assert "SPAWNERS" not in seen
        assert not (both.places.job(job_id).folder / "environment.json").exists()


@pytest.mark.covers("J-nodes.2")
async def test_a_folder_is_named_by_its_repository(tmp_path: Path) -> None:
    """By the innermost one; it need not be here at all. Scopes by absolute paths move along."""
    async with homes(tmp_path) as both, both.near() as near:
        (both.there.work / "src" / "deep").mkdir(parents=True)
        job_id = await near.spawn(
            "%say x",
            cwd="src/deep",
            sandbox="workspace-write",
            scope=[str(both.site / "src" / "**")],
        )
        await near.ended(job_id)
        (job,) = both.far.ledger.listed()
        assert (job.cwd, job.scope) == (str(both.there.work / "src" / "deep"), ("src/**",))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"node": "gpu2"}, "There is no machine gpu2: jobs.nodes has local, gpu1."),
        ({"cwd": "/tmp"}, "/tmp is in no repository of jobs.repositories, so gpu1 cannot know which folder"),
        ({"cwd": "/shop"}, "gpu1: it has no repository shop (its jobs.repositories: site)"),
        ({"cwd": "none"}, "gpu1: There is no folder"),
        ({"prompt": " "}, "The prompt is empty"),
        ({"sandbox": "danger-full-access"}, "Jobs may go as far as workspace-write"),
        (
            {"run": "run-0123456789abcdef", "sandbox": "workspace-write"},
            "gpu1: run-0123456789abcdef is no open",
        ),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_what_cannot_be_ordered_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, arguments: dict[str, Any], sentence: str
) -> None:
    async with homes(tmp_path) as both:
        async with both.near(repositories={"site": both.site, "shop": Path("/shop")}) as near:
            with pytest.raises(UsageError) as refused:
                await near.ask("spawn", **({"prompt": "%say x", "node": NODE} | arguments))
            assert sentence in str(refused.value)
            assert "\n" not in str(refused.value)
            assert (await near.ask("list"))["jobs"] == []
        assert both.far.ledger.listed() == []
        assert not list(both.places.jobs.glob("*"))


async def test_without_other_machines_every_name_but_ours_is_unknown(tmp_path: Path) -> None:
    async with homes(tmp_path) as both, both.near(nodes={}) as near:
        with pytest.raises(UsageError, match="There is no machine gpu1"):
            await near.spawn("%say x")


# ── out of reach ───────────────────────────────────────────────────────────


@pytest.mark.covers("J-nodes.5")
async def test_a_job_for_a_machine_out_of_reach_waits_here_and_is_sent_when_it_is_back(
    tmp_path: Path,
) -> None:
    """Also by another process than the one that was asked; it is shown as unreachable until then."""
    async with homes(tmp_path) as both:
        both.up.unlink()
        async with both.near() as near:
            first, second = await near.spawn("%say One."), await near.spawn("%say Two.")
            status = await near.ask("status", jobId=first)
            assert (status["status"], status["lastStatus"]) == ("unreachable", "queued")
            waited = await near.ask("wait_any", jobIds=[first, second], timeoutMs=0)
            assert sorted(waited["unreachable"]) == sorted([first, second])
            (page, result) = await near.ask("events", jobId=first), await near.ask("result", jobId=first)
            assert (page["events"], page["done"], result["isPartial"]) == ([], False, True)
            (warning,) = result["warnings"]
            assert warning.startswith("gpu1 is out of reach: ")
            assert (await near.ask("list"))["unreachable"] == {NODE: f"{warning}."}
            cancelled = await near.ask("cancel", jobId=second)
            assert cancelled["status"] == "cancelled"
            assert [event["type"] for event in await near.events(second)] == ["final"]
        both.up.touch()
        async with both.near() as near:
            assert await near.ended(first, second) == {first: "succeeded", second: "cancelled"}
        assert [job.job_id for job in both.far.ledger.listed()] == [first]


async def test_nobody_begins_to_follow_a_machine_while_a_process_is_ending(tmp_path: Path) -> None:
    """As a tick that had begun before: it would be followed until the machine is back, and the end waited."""
    async with homes(tmp_path) as both:
        both.up.unlink()
        async with both.near() as near:
            await near.spawn("%say x")
            await near.tools.remote.close()
            await near.tools.remote.follow()
            assert f"jobs on {NODE}" not in {task.get_name() for task in asyncio.all_tasks()}


@pytest.mark.covers("J-nodes.5")
async def test_a_job_goes_on_while_its_machine_is_out_of_reach_and_is_adopted(tmp_path: Path) -> None:
    """Never lost by guess: what was known stays, `unreachable` is shown, and its end is told afterwards."""
    async with homes(tmp_path) as both:
        go = tmp_path / "go"
        async with both.near() as near:
            job_id = await near.spawn(f"%run until test -e {go}; do sleep 0.02; done\n%say Went on.")
            await near.until(job_id, running)
            both.up.unlink()
            near.cut()
            status = await near.until(job_id, lambda status: status["status"] == "unreachable")
            assert status["lastStatus"] == "running"
            with pytest.raises(NodeUnreachable, match=r"^gpu1 is out of reach: .*no route to gpu1"):
                await near.ask("events", jobId=job_id)
            with pytest.raises(NodeUnreachable):
                await near.ask("result", jobId=job_id)
            go.touch()
            await both.there.ended(both.far, job_id)
            assert (await near.ask("list"))["jobs"][0]["status"] == "unreachable"
            both.up.touch()
            assert await near.ended(job_id) == {job_id: "succeeded"}
        both.up.unlink()
        async with both.near() as near:
            # What ended is known here, whatever becomes of the machine.
            result = await near.ask("result", jobId=job_id)
            assert (result["status"], result["lastMessage"]) == ("succeeded", "Went on.")
            assert (await near.ask("status", jobId=job_id))["status"] == "succeeded"


async def test_a_cancellation_waits_for_the_machine_too(tmp_path: Path) -> None:
    async with homes(tmp_path) as both:
        async with both.near() as near:
            job_id = await near.spawn("%run sleep 100\n%say Never.")
            await near.until(job_id, running)
            both.up.unlink()
            near.cut()
            await near.until(job_id, lambda status: status["status"] == "unreachable")
            status = await near.ask("cancel", jobId=job_id)
            assert (status["status"], status["lastStatus"]) == ("unreachable", "cancelling")
            assert both.far.get(job_id).status == "running"
        both.up.touch()
        async with both.near() as near:
            assert await near.ended(job_id) == {job_id: "cancelled"}
        assert both.far.get(job_id).status == "cancelled"


async def test_a_machine_that_is_no_longer_named_is_given_up_by_force(tmp_path: Path) -> None:
    """Until then its jobs are unreachable; a cancellation without force waits."""
    async with homes(tmp_path) as both:
        async with both.near() as near:
            job_id = await near.spawn("%run sleep 100\n%say Never.")
            await near.until(job_id, running)
        async with both.near(nodes={}) as near:
            assert (await near.ask("status", jobId=job_id))["status"] == "unreachable"
            assert (await near.ask("cancel", jobId=job_id))["status"] == "unreachable"
            answer = await near.ask("cancel", jobId=job_id, force=True)
            assert (answer["status"], answer["error"][:21]) == ("cancelled", "cancelled: Given up. ")
        assert both.far.get(job_id).status == "running"


async def test_another_ledger_under_the_same_name_has_no_say(tmp_path: Path) -> None:
    """Whoever points the name at another machine hears that, and of no lost job."""
    async with homes(tmp_path) as both:
        async with both.near() as near:
            job_id = await near.spawn("%run sleep 100\n%say Never.")
            await near.until(job_id, running)
        other = {NODE: both.command.replace("far-state", "other-state")}
        async with both.near(nodes=other) as near:
            status = await near.ask("status", jobId=job_id)
            assert (status["status"], status["lastStatus"]) == ("unreachable", "running")
            with pytest.raises(NodeUnreachable, match="another ledger answers"):
                await near.ask("events", jobId=job_id)
            new = await near.spawn("%say Here.")
            assert await near.ended(new) == {new: "succeeded"}
        async with both.near() as near:
            assert (await near.ask("status", jobId=job_id))["status"] == "running"


async def test_a_job_that_its_machine_has_removed_is_lost_here(tmp_path: Path) -> None:
    """That is known, not guessed."""
    async with homes(tmp_path) as both:
        go = tmp_path / "go"
        async with both.near() as near:
            job_id = await near.spawn(f"%run until test -e {go}; do sleep 0.02; done\n%say x")
            await near.until(job_id, running)
        go.touch()
        await both.there.ended(both.far, job_id)
        both.far.ledger.remove([job_id])
        async with both.near() as near:
            assert await near.ended(job_id) == {job_id: "lost"}
            result = await near.ask("status", jobId=job_id)
            assert "it was removed there" in result["error"]
            assert [event["type"] for event in await near.events(job_id)] == ["final"]


@pytest.mark.parametrize("how", ["wrong shape", "another job", "silly"])
async def test_an_answer_that_makes_no_sense_changes_nothing_here(tmp_path: Path, how: str) -> None:
    """A machine has no say about jobs that it was not asked about, nor about those of others."""
    async with homes(tmp_path) as both, both.near(nodes={NODE: command(how)}) as near:
        both.jobs().ledger.add(Job(job_id=JOB, number=0, owner="local", mode="read", status="queued"))
        job_id = await near.spawn("%say x")
        status = await near.ask("status", jobId=job_id)
        assert (status["status"], status["lastStatus"]) == ("unreachable", "queued")
        assert (await near.ask("status", jobId=JOB))["status"] == "queued"
        with pytest.raises(LanewayError):
            await near.ask("resolve", action="show", jobIds=[job_id])
        assert [job.status for job in both.jobs().ledger.unfinished()] == ["queued", "queued"]


async def test_a_result_or_a_page_that_is_none_is_an_error_of_one_sentence(tmp_path: Path) -> None:
    async with homes(tmp_path) as both, both.near(nodes={NODE: command("accepts")}) as near:
        job_id = await near.spawn("%say x")
        assert (await near.ask("status", jobId=job_id))["status"] == "running"
        for tool in ("result", "events"):
            with pytest.raises(NodeUnreachable, match="its answer is none of Laneway's"):
                await near.ask(tool, jobId=job_id)
        assert both.jobs().get(job_id).status == "running"


async def test_ended_jobs_are_collected_here_as_all_others(tmp_path: Path) -> None:
    """There they stay: that is the other machine's own matter."""
    async with homes(tmp_path) as both, both.near() as near:
        job_id = await near.spawn("%say x")
        await near.ended(job_id)
        jobs = near.tools.jobs
        assert collect(jobs, plan(jobs, -1.0)).jobs == (job_id,)
        assert (await near.ask("list"))["jobs"] == []
        assert RemoteLedger(jobs.ledger).get(job_id) is None
        assert not both.places.job(job_id).folder.exists()
        assert both.far.get(job_id).status == "succeeded"


# ── the other verbs ────────────────────────────────────────────────────────


async def test_a_follow_up_goes_where_the_thread_is(tmp_path: Path) -> None:
    async with homes(tmp_path) as both, both.near() as near:
        first = await near.spawn("%say One.", tags=["x"])
        second = (await near.ask("send", jobId=first, prompt="%say Two."))["jobId"]
        assert await near.ended(first, second) == {first: "succeeded", second: "succeeded"}
        one, two = both.far.get(first), both.far.get(second)
        assert one.thread_id == two.thread_id != ""
        rows = {row["jobId"]: row for row in (await near.ask("list", tag="x"))["jobs"]}
        assert rows[second]["title"] == "%say Two."
        with pytest.raises(UsageError, match="The prompt is empty"):
            await near.ask("send", jobId=first, prompt=" ")


async def test_a_run_is_resolved_where_it_is(tmp_path: Path) -> None:
    """By its id or by its jobs; jobs that run again are followed here."""
    async with homes(tmp_path) as both, both.near() as near:
        job_id = await near.spawn("%patch new.txt one\n%say Done.", sandbox="workspace-write")
        await near.ended(job_id)
        run_id = (await near.ask("result", jobId=job_id))["run"]
        shown = await near.ask("resolve", action="show", jobIds=[job_id])
        assert (shown["run"], shown["tree"]) == (run_id, str(both.there.work))
        again = await near.ask("resolve", action="rerun", run=run_id, jobIds=[job_id])
        (new,) = [each["jobId"] for each in again["jobs"]]
        assert await near.ended(new) == {new: "succeeded"}
        run_id = (await near.ask("result", jobId=new))["run"]
        rolled_back = await near.ask("resolve", action="rollback", run=run_id)
        assert (rolled_back["ending"], rolled_back["paths"]) == ("done", ["new.txt"])
        assert not (both.there.work / "new.txt").exists()
        both.up.unlink()
        near.cut()
        with pytest.raises(NodeUnreachable):
            await near.ask("resolve", action="undo", run=run_id)


async def test_owners_are_kept_apart_on_this_side(tmp_path: Path) -> None:
    """There all of them are the local user's."""
    async with homes(tmp_path) as both, both.near() as near:
        writing: dict[str, Any] = {"sandbox": "workspace-write"}
        bobs = await near.spawn("%patch b.txt bob\n%say B.", BOB, **writing)
        await near.until(bobs, lambda status: status["status"] == "succeeded")
        run_id = (await near.ask("result", BOB, jobId=bobs))["run"]
        for tool in ("status", "result", "events", "cancel"):
            with pytest.raises(JobUnknown):
                await near.ask(tool, EVE, jobId=bobs)
        with pytest.raises(JobUnknown):
            await near.ask("send", EVE, jobId=bobs, prompt="%say x")
        with pytest.raises(JobUnknown):
            await near.ask("resolve", EVE, action="show", run=run_id)
        assert (await near.ask("resolve", BOB, action="show", run=run_id))["run"] == run_id
        assert (await near.ask("list", EVE))["jobs"] == []
        mine = await near.spawn("%patch m.txt mine\n%say M.", **writing)
        await near.ended(mine)
        # The run is not Bob's alone any more.
        with pytest.raises(JobUnknown):
            await near.ask("resolve", BOB, action="accept", run=run_id)
        assert (await near.ask("resolve", action="accept", run=run_id))["accepted"]


@pytest.mark.covers("J-nodes.3")
async def test_any_machine_is_the_one_with_room_that_has_the_repository(tmp_path: Path) -> None:
    """This one, if no other has more room; and where the folder has no name that others know."""
    async with homes(tmp_path) as both:
        nodes = {"down": "sh -c 'exit 255'", NODE: both.command}
        async with both.near(nodes=nodes) as near:
            job_id = await near.spawn("%say x", node="any")
            assert await near.ended(job_id) == {job_id: "succeeded"}
            assert both.far.get(job_id).status == "succeeded"
            assert await near.nodes.choose("shop", "read") == "local"
            near.nodes._free_here = lambda mode: 8
            assert await near.nodes.choose("site", "read") == "local"


async def test_a_machine_without_a_codex_starts_nothing_and_says_so(tmp_path: Path) -> None:
    async with homes(tmp_path) as both:
        nodes = {NODE: both.command.replace("LANEWAY_CODEX_BIN=", "LANEWAY_CODEX_BIN=/no/codex/")}
        async with both.near(nodes=nodes) as near:
            with pytest.raises(LanewayError, match="gpu1: "):
                await near.spawn("%say x")
            assert (await near.ask("list"))["jobs"] == []
