"""A real job in a large work tree."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from laneway.jobs.partial import result_of
from laneway.jobs.resolving import Resolution, resolve
from tests.jobs.stage import spawn, stage, writing

FILES = 100_000 if os.environ.get("LANEWAY_CHAOS") else 2_000
FOLDERS = 100


@pytest.mark.covers("J-a2.23")
@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_in_a_hundred_thousand_files_every_edit_is_found_given_back_and_back_again(
    tmp_path: Path,
) -> None:
    """Two thousand in `make test`. Half of them are committed; of the other half git knows nothing."""
    async with stage(tmp_path) as here:
        for number in range(FILES):
            folder = here.work / f"d{number % FOLDERS}"
            folder.mkdir(exist_ok=True)
            (folder / f"{number}.txt").write_text(f"{number}\n")
            if number == FILES // 2:
                here.git("add", "--all")
                here.git("commit", "--quiet", "-m", "many")
        jobs = here.jobs()
        first, last = f"d0/{FOLDERS}.txt", f"d{FOLDERS - 1}/{FILES - 1}.txt"
        job = spawn(jobs, writing(f"%run echo more >> {first}; rm {last}\n%patch d7/new.txt one"))
        (ended,) = await here.ended(jobs, job)
        assert ended.status == "succeeded", here.log_of(job.job_id)
        found = result_of(jobs, ended)[0].modified_files
        assert [(file.path, file.change) for file in found] == [
            (first, "modified"),
            ("d7/new.txt", "added"),
            (last, "deleted"),
        ]
        back = resolve(jobs, "local", Resolution(action="rollback"))
        assert (back["ending"], sorted(back["paths"])) == ("done", sorted(file.path for file in found))
        assert (here.work / first).read_text() == f"{FOLDERS}\n"
        assert (here.work / last).read_text() == f"{FILES - 1}\n"
        assert not (here.work / "d7" / "new.txt").exists()
        assert resolve(jobs, "local", Resolution(action="undo"))["ending"] == "done"
        assert not (here.work / last).exists()
