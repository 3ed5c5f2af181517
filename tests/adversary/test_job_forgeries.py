"""Names and words that hide what they are, in everything that is shown of a job; and edits of such names."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from laneway.jobs.model import Job
from laneway.testing.terminal import terminal
from tests.adversary.forging import HIDING, forging_model, hidden
from tests.cli.jobs.support import Shell, shell
from tests.cli.support import LANEWAY
from tests.doors.mcp.support import Client
from tests.jobs.servers import server
from tests.jobs.stage import spawn, writing
from tests.jobs.trees import things

NAMES = (
    "-rf",
    "--help",
    'qu"ote',
    "new\nline",
    "esc\x1b[2J",
    "\u202egnp.exe",
    " blank ",
    "$(touch pwned)",
    "ü\u200b",
)
FORGED = "  succeeded  job-0123456789abcdef"
WORDS = f"%say Hi{HIDING}<U+A>{FORGED}<U+A><U+1B>]0;mine<U+7>"
SHOWN = (
    ("result",),
    ("events",),
    ("events", "--full"),
    ("status",),
    ("watch",),
)
"""Commands that show one job to a person."""


def script(folder: Path) -> str:
    """Edits all odd names, and prints them with an escape."""
    program = folder / "edit.py"
    program.write_text(
        "import sys\n"
        f"for name in {NAMES!r}:\n    open(name, 'a').write('x')\n"
        "print('\\x1b[2J\\x9b2K\\u202e', *sys.argv)\n"
    )
    return f"%run python3 {program} '{HIDING}'"


async def shown(person: Shell, words: tuple[str, ...], job: Job) -> str:
    ran = await person.run(words[0], job.job_id, *words[1:])
    assert ran.code in (0, 1)
    assert "Traceback" not in ran.err
    assert hidden(ran.err) == set()
    return ran.out


@pytest.mark.timeout(240)
async def test_nothing_that_is_shown_of_a_job_hides_or_passes_for_ours(tmp_path: Path) -> None:
    """Messages, outputs, errors, titles, paths and branches: in a pipe, on a terminal, and for a model.

    What a rollback gives back of such names is all of it.
    """
    async with shell(tmp_path, answerer=forging_model) as person:
        here = person.here
        for name in NAMES[: len(NAMES) // 2]:
            here.write(**{name: "mine\n"})
        here.git("checkout", "--quiet", "-b", 'od"d-\u202e-branch')
        before = things(here.work)
        title = "\x1b[31mtitle\u202e"
        prompt = f"{title}\n{script(tmp_path)}\n%patch pa<U+202E>th.txt x\n{WORDS}"
        job, failing = (
            spawn(person.jobs, writing(prompt)),
            spawn(person.jobs, writing(f"%fail 400 no{HIDING}")),
        )
        await here.ended(person.jobs, job, failing)
        for each in (job, failing):
            for words in SHOWN:
                out = await shown(person, words, each)
                assert hidden(out) == set(), (words, out)
                assert FORGED not in [line.rstrip() for line in out.splitlines()], words
        at = ("-C", str(here.work))
        odd = ("resolve", "show", "--path", NAMES[4], *at)
        for look in (("list",), ("resolve", "show", *at), odd):
            ran = await person.run(*look)
            assert (ran.code, hidden(ran.out)) == (0, set()), (look, ran.out, ran.err)
        async with server(person) as client:
            await check_answers(client, job)
        env = {**os.environ, **person.env, "TERM": "xterm-256color"}
        async with terminal(
            [*LANEWAY, "jobs", "result", job.job_id, "--message"], env=env, cwd=tmp_path
        ) as screen:
            await screen.wait_for(FORGED.strip())
            assert "\\x1b]0;mine" in screen.text
            assert "\\u202e" in screen.text

        rolled = await person.data("resolve", "rollback", "-C", str(here.work))
        assert rolled["ending"] == "done"
        assert things(here.work) == before


async def check_answers(client: Client, job: Job) -> None:
    """Programs get true paths; they are JSON, which escapes what a terminal would obey."""
    answer = await client.result("codex_result", jobId=job.job_id)
    paths = [file["path"] for file in answer["structuredContent"]["modifiedFiles"]]
    assert set(NAMES) <= set(paths)
    for text in [part["text"] for part in answer["content"]]:
        assert "\x1b" not in text
        assert json.loads(text) == answer["structuredContent"]
    status = await client.result("codex_status", jobId=job.job_id)
    assert hidden(status["structuredContent"]) == set()
    listed = await client.content("codex_list")
    assert hidden([[row["title"], row.get("error", "")] for row in listed["jobs"]]) == set()
