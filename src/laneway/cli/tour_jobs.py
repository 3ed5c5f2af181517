"""The tour's demo of background jobs: two workers edit one file at the same time, and nothing is lost.

Speaks to `laneway mcp` as a boss does. The work tree is a repository of its own, in the rehearsal's folder.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from laneway.cli.tour_mcp import DemoClient, Note
from laneway.wire.git import git_apart

FLAGS = ("--tools", "jobs")
FILE = "menu.txt"
BEFORE = ("soup", "bread", "cheese")
TASKS = (("Say which soup.", "soup", "tomato soup"), ("Say which cheese.", "cheese", "goat cheese"))
"""What each worker is told, and the edit that its scripted model makes."""
BOTH = ("tomato soup", "bread", "goat cheese")
FIRST_ONLY = ("tomato soup", "bread", "cheese")
OVEN = "oven-is-hot"
"""A file beside the tree. Each worker waits for it after its edit, so that both are at work at once."""
WAITING = f"until test -e ../{OVEN}"
LOOKS, LOOK_S = 400, 0.05
"""For a worker to have made its edit; it takes half a second."""
APART = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


Check = Callable[[bool, str], None]
"""Raises if a condition does not hold, with the sentence that says what is wrong."""


async def run_demo(client: DemoClient, folder: Path, note: Note, check: Check) -> None:
    """Run it to its end; the caller limits the time."""
    tree = folder / "kitchen"
    tree.mkdir()
    await asyncio.to_thread(git_apart, tree, "init", "--quiet", place=APART)
    (tree / FILE).write_text("\n".join(BEFORE) + "\n")
    await _Boss(client, tree, note, check).run()


class _Boss:
    def __init__(self, client: DemoClient, tree: Path, note: Note, check: Check) -> None:
        self._client = client
        self._tree = tree
        self._note = note
        self._check = check

    async def run(self) -> None:
        self._expect_file(BEFORE)
        jobs = [await self._spawn(number, *task) for number, task in enumerate(TASKS, 1)]
        (self._tree.parent / OVEN).touch()
        await self._wait(jobs)
        self._expect_file(BOTH)
        await self._find_conflict(jobs)

        await self._write("rollback", "worker 2 is rolled back", jobIds=jobs[1:])
        self._expect_file(FIRST_ONLY)
        await self._write("undo", "the rollback is undone")
        self._expect_file(BOTH)

        rerun = await self._write("rerun", "both are rolled back, and run one after the other")
        await self._wait([each["jobId"] for each in rerun.get("jobs", [])])
        self._expect_file(BOTH)
        accepted = await self._resolve("accept")
        self._check(accepted.get("accepted") is True, f"the run was not accepted: {accepted}")
        self._say("codex_resolve accept", "accepted: there is no conflict any more")

    async def _spawn(self, number: int, task: str, old: str, new: str) -> str:
        """Start a worker, and wait until it has made its edit."""
        self._say("codex_spawn", f"worker {number}: “{task}”")
        prompt = f"{task}\n%edit {FILE} {old} => {new}\n%run {WAITING}; do sleep 0.05; done"
        answer = await self._client.call(
            "codex_spawn", prompt=prompt, cwd=str(self._tree), sandbox="workspace-write"
        )
        job_id = str(answer.get("jobId"))
        for _ in range(LOOKS):
            status = await self._client.call("codex_status", jobId=job_id)
            is_active = status.get("status") in ("queued", "starting", "running")
            if not is_active or WAITING in status.get("activity", ""):
                break
            await asyncio.sleep(LOOK_S)
        return job_id

    async def _wait(self, jobs: list[str]) -> None:
        waited = await self._client.call("codex_wait_all", jobIds=jobs)
        statuses = [each["status"] for each in waited.get("ended", [])]
        self._check(statuses == ["succeeded"] * len(TASKS), f"the workers ended as {statuses}")
        self._say("codex_wait_all", "both have succeeded")

    async def _find_conflict(self, jobs: list[str]) -> None:
        shown = await self._resolve("show")
        expected = [{"path": FILE, "kind": "overlap", "jobs": jobs}]
        self._check(shown.get("conflicts") == expected, f"the conflicts are {shown.get('conflicts')}")
        self._say("codex_resolve show", f"conflict: both changed {FILE}, at the same time")
        refused = await self._resolve("accept")
        self._check(refused.get("accepted") is False, f"the run was accepted all the same: {refused}")
        self._say("codex_resolve accept", "refused, because of that conflict")

    async def _write(self, action: str, text: str, **more: Any) -> dict[str, Any]:
        """An action that writes to the tree, all or nothing."""
        answer = await self._resolve(action, **more)
        self._check(answer.get("ending") == "done", f"{action} ended with {answer}")
        self._say(f"codex_resolve {action}", text)
        return answer

    async def _resolve(self, action: str, **more: Any) -> dict[str, Any]:
        return await self._client.call("codex_resolve", action=action, cwd=str(self._tree), **more)

    def _expect_file(self, expected: tuple[str, ...]) -> None:
        lines = tuple((self._tree / FILE).read_text().splitlines())
        self._say(f"  {FILE}", " · ".join(lines))
        self._check(lines == expected, f"{FILE} has {lines} instead of {expected}")

    def _say(self, what: str, text: str) -> None:
        self._note(f"{what:<24}{text}")
