"""Plays the calls of docs/reference/CODEX_SUBAGENTS_ORCHESTRATION.md with real jobs and a scripted model.

A call stands on a line that begins with an arrow to the right; its answer follows, behind an arrow to the
left. What differs from run to run (ids, times, cursors, the folders) is replaced by what the page has.
`python -m tests.jobs.orchestration` writes the answers anew.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from laneway.base.clock import LoopClock
from laneway.core.tools import Caller
from laneway.jobs.contract import rules
from laneway.jobs.model import Job
from laneway.jobs.tools import JobTools
from tests.jobs.stage import Stage, stage

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "CODEX_SUBAGENTS_ORCHESTRATION.md"
HOME = "/home/ann"
CONTRACT = rules(f"{HOME}/site", is_writing=True, scope=("src/**",))
CALL, ANSWER = "→ ", "← "
WIDTH = 110
BOSS = Caller(agent_id="", principal="local")
README = "# Apple\n\nA program for fruit.\n\nUsage: apple [FILE]\n"

SCRIPTS = {
    "Rename the project": "%edit README.md # Apple => # Pear\n%patch NAMES.md It was called Apple.\n",
    "Describe the flag": "%edit README.md Usage: apple [FILE] => Usage: apple [--json] [FILE]\n",
    "Find every place": "%run grep -rn Apple README.md\n",
    "Rewrite the manual": "%patch MANUAL.md Half of it.\n",
}
"""What the scripted model does, by how a prompt of the page begins."""
REPORTS = {
    "Rename the project": "Renamed.\\n\\nModified files:\\nREADME.md\\nNAMES.md",
    "Describe the flag": "Described.\\n\\nModified files:\\nREADME.md",
    "Find every place": "Only README.md, line 1.",
    "Rewrite the manual": "Done.\\n\\nModified files:\\nMANUAL.md",
}
HELD = ("Rename the project", "Describe the flag", "Rewrite the manual")
"""These do not end before the page wants it, and so run at the same time."""
SHOWN = (
    (re.compile(r'("head":")[0-9a-f]{40}'), r"\g<1>4f6c1e0f9d8b7a6958473625140f3e2d1c0b9a87"),
    (re.compile(r'("elapsedMs":)\d+'), r"\g<1>41250"),
    (re.compile(r'("nextCursor":")(?!w1:)[A-Za-z0-9_-]+'), r"\g<1>WyJqb2ItYTE…"),
    (re.compile(r'("timestamp":")[^"]+'), r"\g<1>2026-11-17T20:04:31.412Z"),
    (re.compile(r'("threadId":")[^"]+'), r"\g<1>01a1f050-ab06-7cd2-b8cd-bbfe6bc3a344"),
    (re.compile(r',"activity":"(?:[^"\\]|\\.)*"'), ""),
    (re.compile(r"/(?:usr/)?bin/\w+ -l?c "), "/bin/bash -lc "),
    (re.compile(r'"warnings":\[[^\]]*\],'), ""),
)
"""What the page has in place of values that differ from run to run, or that only a rehearsal has."""
LETTERS = {"job": "a", "run": "b", "rollback": "c"}
_IDS = re.compile(r"\b(job|run|rollback)-[0-9a-f]{16}\b")


class Exchange(NamedTuple):
    tool: str
    arguments: dict[str, Any]
    answer: str
    """As the page has it, with its line breaks."""


def exchanges(page: str) -> Iterator[Exchange]:
    for block in re.findall(r"```text\n(.*?)```", page, re.DOTALL):
        for part in re.split(rf"^{CALL}", block, flags=re.MULTILINE)[1:]:
            call, _, answer = part.partition(f"\n{ANSWER}")
            tool, _, arguments = call.partition(" ")
            yield Exchange(tool, json.loads(arguments), answer.strip())


def laid_out(value: Any, before: int = len(ANSWER)) -> str:
    """JSON that breaks only where a line would get too long."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + before <= WIDTH or not isinstance(value, dict | list) or not value:
        return flat
    inner = " " * (before + 1)
    if isinstance(value, list):
        return "[" + f",\n{inner}".join(laid_out(each, before + 1) for each in value) + "]"
    parts = [f"{json.dumps(key)}: {laid_out(each, before + len(key) + 5)}" for key, each in value.items()]
    return "{" + f",\n{inner}".join(parts) + "}"


class Play:
    """One boss, two repositories."""

    def __init__(self, here: Stage) -> None:
        self.here = here
        self.jobs = here.jobs()
        self.tools = JobTools(lambda: self.jobs, LoopClock())
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        for name in ("site", "manual"):
            folder = here.work / name
            folder.mkdir()
            here.git("init", "--quiet", str(folder))
            (folder / "README.md").write_text(README)
            here.git("-C", str(folder), "add", ".")
            who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
            here.git("-C", str(folder), *who, "commit", "--quiet", "-m", "first")

    async def answer(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The answer to a call of the page, in the page's words."""
        await self._prepare(tool, arguments)
        text = json.dumps(self._scripted(arguments)).replace(HOME, str(self.here.work))
        for real, shown in self._names.items():
            text = text.replace(shown, real)
        result = await self.tools.handler(tool)(BOSS, json.loads(text))
        assert not result.is_error, result.text
        await asyncio.to_thread(self.jobs.dispatch)
        answer: dict[str, Any] = json.loads(self._as_on_the_page(result.text))
        return answer

    def _scripted(self, arguments: dict[str, Any]) -> dict[str, Any]:
        start = _start(arguments.get("prompt", ""))
        if start is None:
            return arguments
        hold = f"%run until test -e {self._go(start)}; do sleep 0.02; done\n" if start in HELD else ""
        return {**arguments, "prompt": f"{arguments['prompt']}\n{SCRIPTS[start]}{hold}%say {REPORTS[start]}"}

    def _go(self, start: str) -> Path:
        return self.here.state / f"go-{start.partition(' ')[0]}"

    async def _prepare(self, tool: str, arguments: dict[str, Any]) -> None:
        """What takes its time on the page: jobs that are held have done their part, others have ended."""
        unfinished = self.jobs.unfinished()
        held = [job for job in unfinished if _start(job.title) in HELD and not self._is_free(job)]
        for job in held:
            # Also before a spawn: of two patches of one file at the same moment, either may be lost.
            await self.here.until(self.jobs, job, lambda each: "until test" in each.activity)
        if tool != "codex_spawn":
            await self.here.ended(self.jobs, *(job for job in unfinished if job not in held))
        if tool == "codex_wait_all":
            for job in held:  # one after the other, so that their order is known
                self._go(str(_start(job.title))).touch()
                await self.here.ended(self.jobs, job)
        if tool == "codex_resolve":
            await self.here.ended(self.jobs, *(job for job in held if job.status == "cancelling"))

    def _is_free(self, job: Job) -> bool:
        return job.status == "cancelling" or self._go(str(_start(job.title))).exists()

    def _as_on_the_page(self, text: str) -> str:
        text = text.replace(str(self.here.work), HOME)
        for real in dict.fromkeys(match[0] for match in _IDS.finditer(text)):
            if real not in self._names:
                kind = real.partition("-")[0]
                self._counts[kind] = self._counts.get(kind, 0) + 1
                self._names[real] = f"{kind}-{LETTERS[kind]}{self._counts[kind]:015x}"
            text = text.replace(real, self._names[real])
        for pattern, shown in SHOWN:
            text = pattern.sub(shown, text)
        return text


def _start(prompt: str) -> str | None:
    return next((each for each in SCRIPTS if prompt.startswith(each)), None)


async def rewritten(page: str, folder: Path) -> str:
    """The page with the answers of today."""
    page = page.replace("CONTRACT\n", CONTRACT)
    async with stage(folder, is_repo=False) as here:
        play = Play(here)
        for each in exchanges(page):
            answer = laid_out(await play.answer(each.tool, each.arguments))
            call = f"{CALL}{each.tool} {json.dumps(each.arguments, ensure_ascii=False)}\n{ANSWER}"
            assert call + each.answer in page, call
            page = page.replace(call + each.answer, call + answer, 1)
    return page


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        PAGE.write_text(asyncio.run(rewritten(PAGE.read_text(), Path(made))))
