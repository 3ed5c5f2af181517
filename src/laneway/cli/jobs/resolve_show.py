"""What `codex_resolve` answers, as text for people: files, conflicts, three-way differences. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from laneway.base.counting import counted
from laneway.base.plain import code_label, label, plain_code
from laneway.cli.jobs.show import Data, conflict_rows, file_row
from laneway.cli.jobs.table import coloured, status_text
from laneway.terminal.foreign import fenced
from laneway.terminal.style import Style

MARKS = ("<<<<<<< ", "||||||| ", "=======", ">>>>>>> ")
"""How git marks what is in dispute: one version, what was before, the other version."""
AROUND = 2
"""Lines around a dispute: enough to recognise the place."""
TITLE_CHARS = 60
ENDINGS = {
    "done": "was rolled back",
    "refused": "was not rolled back, and nothing was written",
    "given up": "was not rolled back: all is as before",
    "partial": "was rolled back in part",
}


def answer_rows(action: str, answer: Data, style: Style, columns: int | None) -> Iterator[str]:
    match action:
        case "show":
            yield from run_rows(answer, style, columns)
        case "accept":
            yield from _accepted(answer, style)
        case "undo":
            yield from _outcome(answer, style, is_undo=True)
        case _:
            yield from _outcome(answer, style)
            for each in answer.get("jobs", ()):
                yield f"{each['was']} runs again as {each['jobId']}."


# ── show ───────────────────────────────────────────────────────────────────


def run_rows(answer: Data, style: Style, columns: int | None) -> Iterator[str]:
    state = answer["state"].replace("_", " ")
    yield style.bold(f"{answer['run']}  {state}") + f"  {code_label(answer['tree'])}"
    for job in answer["jobs"]:
        yield from _job(job, style)
    yield from conflict_rows(answer["conflicts"], style)
    if not answer["conflicts"]:
        yield "No path was changed by two jobs."
    for each in answer["diffs"]:
        yield from diff_rows(each, style, columns)
    if others := answer["changedByOthers"]:
        yield f"changed by somebody else meanwhile: {', '.join(map(code_label, others))}"
    if answer["unguarded"]:
        what = counted(answer["unguarded"], "path is", "paths are")
        why = "ignored folders, files that are too large to be kept, what is Codex's or Laneway's own"
        yield style.dim(f"{what} not guarded: {why}")
    if "note" in answer:
        yield style.dim(answer["note"])
    for each in answer["rollbacks"]:
        undoes = f" takes {each['undoes']} back" if each["undoes"] else f" of {' and '.join(each['jobs'])}"
        yield style.dim(f"{each['rollbackId']}{undoes}")


def _job(job: Data, style: Style) -> Iterator[str]:
    status = status_text(job)
    gone = style.yellow("  rolled back") if job.get("isRolledBack") else ""
    yield f"{job['jobId']}  {coloured(status, status, style)}  {label(job['title'], TITLE_CHARS)}{gone}"
    yield from (f"  {file_row(file)}" for file in job["modifiedFiles"])
    if not job["modifiedFiles"]:
        yield style.dim("    no changes")


def diff_rows(diff: Data, style: Style, columns: int | None) -> Iterator[str]:
    """A path: what each of two jobs made of it, and where they disagree."""
    yield ""
    yield style.bold(code_label(diff["path"]))
    if diff.get("isBinary"):
        yield "  It is no text: there is nothing to show."
        return
    if "diff" in diff:
        yield from _side(" and ".join(diff["jobs"]), diff["diff"], style, columns)
        if len(diff["jobs"]) > 1:
            yield "  Both changed it between the same two snapshots: who changed which line is not known."
        return
    for job_id, text in zip(diff["jobs"], (diff.get("one", ""), diff.get("other", "")), strict=True):
        yield from _side(job_id, text, style, columns)
    number = diff.get("conflicts", 0)
    if number == 0:
        yield "  Both fit together: nothing is in dispute."
        return
    yield style.red(f"  {counted(number, 'place is', 'places are')} in dispute:")
    for line in disputes(diff.get("merged", "")):
        yield from (_coloured_mark(row, line, style) for row in fenced(line, columns, visible=plain_code))


def _side(job_id: str, diff: str, style: Style, columns: int | None) -> Iterator[str]:
    if not diff:
        yield f"  {job_id} changed nothing that is left."
        return
    yield f"  {job_id}:"
    for line in diff.rstrip("\n").split("\n"):
        if not line.startswith(("--- ", "+++ ")):
            yield from (_coloured_sign(row, line, style) for row in fenced(line, columns, visible=plain_code))


def disputes(merged: str) -> list[str]:
    """The lines of a merged text that are in dispute, with some around them."""
    lines = merged.split("\n")
    shown: set[int] = set()
    inside = False
    for number, line in enumerate(lines):
        inside = inside or line.startswith(MARKS[0])
        if inside:
            shown.update(range(max(0, number - AROUND), min(len(lines), number + AROUND + 1)))
        inside = inside and not line.startswith(MARKS[-1])
    return _with_gaps(lines, sorted(shown))


def _with_gaps(lines: Sequence[str], numbers: Sequence[int]) -> list[str]:
    kept: list[str] = []
    for before, number in zip((-1, *numbers), numbers, strict=False):
        if number != before + 1 and kept:
            kept.append("…")
        kept.append(lines[number])
    return kept


def _coloured_sign(row: str, line: str, style: Style) -> str:
    if line.startswith("+"):
        return style.green(row)
    return style.red(row) if line.startswith("-") else style.dim(row)


def _coloured_mark(row: str, line: str, style: Style) -> str:
    return style.yellow(row) if line.startswith(MARKS) else row


# ── accept, rollback, rerun, undo ──────────────────────────────────────────


def _accepted(answer: Data, style: Style) -> Iterator[str]:
    if answer["accepted"]:
        yield f"{answer['run']} is accepted: what its jobs changed stays."
        return
    yield f"{answer['run']} is not accepted."
    yield from conflict_rows(answer["conflicts"], style)
    yield (
        "Jobs that ran at the same time have changed the same path: merge it by hand and name it with"
        " --resolved, or roll back."
    )


def _outcome(answer: Data, style: Style, *, is_undo: bool = False) -> Iterator[str]:
    ending = ENDINGS[answer["ending"]]
    if is_undo:
        ending = ending.replace("was rolled back", "has its rollback undone").replace(
            "was not rolled back", "stays rolled back"
        )
    yield f"{answer['run']} {ending}."
    merged = set(answer["merged"])
    for path in answer["paths"]:
        yield f"  {code_label(path)}{'  with what was changed since' if path in merged else ''}"
    for name in ("refused", "left"):
        for each in answer[name]:
            row = f"  {code_label(each['path'])}: {label(each['why'])}"
            yield style.red(row) if name == "refused" else style.yellow(row)
    if answer["refused"] and not is_undo:
        yield style.dim("--merge takes out only the job's part, where that can be done safely;")
        yield style.dim("--anyway PATH restores a path although others may have changed it.")
    if answer["rollbackId"] and not is_undo:
        yield style.dim(f"{answer['rollbackId']}: `laneway jobs resolve undo` undoes it.")
