"""Answers of the job tools as text for people. Pure: takes data, gives rows.

Messages, commands, paths and errors are foreign: they are fenced or put on one line, and characters that
cannot be seen are spelt out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from laneway.base.counting import counted
from laneway.base.plain import code_label, plain
from laneway.cli.jobs.table import coloured, note_text, status_text
from laneway.codex.exec.shell_line import without_shell
from laneway.terminal.foreign import fenced, label
from laneway.terminal.status import count, elapsed
from laneway.terminal.style import Style

Data = Mapping[str, Any]
MAX_OUTPUT_ROWS = 10
"""Of one command's output among events; `--full` shows all of it."""
SLOTS = ("read", "write", "total")
MAX_RUNS = 5
"""Named with their tokens; the others are counted."""
HEAD_CELLS = 24
"""In front of an event: the time and the type."""


def status_row(answer: Data, style: Style) -> str:
    """One job on one line: `job-1  running  3 min 5 s  1.2k tokens  npm test`."""
    status = status_text(answer)
    parts = [answer["jobId"], coloured(status, status, style)]
    if "elapsedMs" in answer:
        parts.append(elapsed(answer["elapsedMs"] / 1000))
    if answer.get("tokens"):
        parts.append(f"{count(answer['tokens'])} tokens")
    if note := note_text(answer):
        parts.append(style.dim(label(note, None)))
    return "  ".join(parts)


def total_rows(answer: Data) -> list[str]:
    """How many jobs run and wait, and the tokens of today, of the last days and of each run."""
    slots, tokens = answer["slots"], answer["tokens"]
    reading, writing, together = ([int(part) for part in slots[kind].split("/")] for kind in SLOTS)
    parts = [f"{reading[0]} of {reading[1]} reading", f"{writing[0]} of {writing[1]} writing"]
    if together[1] < reading[1] + writing[1]:
        parts.append(f"{together[0]} of {together[1]} together")
    parts += [f"{slots['queued']} queued", f"{count(tokens['today'])} tokens today"]
    if len(tokens["byDay"]) > 1:
        parts.append(f"{count(sum(tokens['byDay'].values()))} in {len(tokens['byDay'])} days")
    rows = [" · ".join(parts)]
    if tokens["byRun"]:
        runs = [f"{run} {count(number)}" for run, number in list(tokens["byRun"].items())[:MAX_RUNS]]
        more = [f"{len(tokens['byRun']) - MAX_RUNS} more"] if len(tokens["byRun"]) > MAX_RUNS else []
        rows.append(f"tokens by run: {', '.join((*runs, *more))}")
    rows += map(plain, answer.get("unreachable", {}).values())
    return rows


# ── the result ─────────────────────────────────────────────────────────────


def result_rows(answer: Data, style: Style, columns: int | None) -> Iterator[str]:
    """Everything that a job produced."""
    head = {name: value for name, value in answer.items() if name != "error"}  # which is told below, whole
    yield status_row(head, style) + (" (partial: it has not ended)" if answer["isPartial"] else "")
    if error := answer.get("error"):
        yield from map(style.red, fenced(f"{error['kind']}: {error['text']}", columns, mark="  ! "))
        if wants_login(error):
            yield "Log in with `laneway login`, or see what `laneway doctor` says."
    if answer["lastMessage"]:
        yield from fenced(answer["lastMessage"].rstrip("\n"), columns)
    yield from _files(answer)
    for name, what in (
        ("onlyReported", "reported by the worker, but not changed"),
        ("notReported", "changed, but not reported by the worker"),
        ("outsideScope", "changed outside its scope"),
    ):
        if answer.get(name):
            yield style.yellow(f"{what}: {_listed(answer[name])}")
    yield from conflict_rows(answer.get("conflicts", ()), style)
    for what in ("breaches", "warnings"):
        for text in answer.get(what, ()):
            yield from map(style.yellow, fenced(text, columns, mark="  ! "))
    if answer.get("isInconsistent"):
        yield style.yellow("It was ended while it may have been writing: check the files that it changed.")
    yield from (style.dim(row) for row in _ids(answer))


def wants_login(error: Data) -> bool:
    """Whether the model's provider refused for want of a login: only Codex's own sentence tells."""
    return error["kind"] == "turn" and "unexpected status 401 Unauthorized" in error["text"]


def _files(answer: Data) -> Iterator[str]:
    files = answer.get("modifiedFiles", ())
    if files:
        yield f"{counted(len(files), 'file')} changed:"
        yield from map(file_row, files)


def file_row(file: Data) -> str:
    evidence = file["certainty"]
    return f"  {file.get('change') or 'modified':<8}  {code_label(file['path'])}  ({evidence})"


def conflict_rows(conflicts: Any, style: Style) -> Iterator[str]:
    if not conflicts:
        return
    yield f"{counted(len(conflicts), 'conflict')}:"
    for each in conflicts:
        end = "  (resolved)" if each.get("isResolved") else ""
        row = f"  {each['kind']:<8}  {code_label(each['path'])}  {' and '.join(each['jobs'])}{end}"
        yield style.red(row) if each["kind"] == "overlap" and not end else style.yellow(row)


def _ids(answer: Data) -> Iterator[str]:
    ids = [answer["run"]] if answer.get("run") else []
    if answer.get("threadId"):
        ids.append(f"thread {answer['threadId']}")
    if ids:
        yield "  ".join(ids)


def _listed(paths: Any) -> str:
    return ", ".join(map(code_label, paths))


# ── events ─────────────────────────────────────────────────────────────────


def event_rows(event: Data, style: Style, columns: int | None, *, is_full: bool) -> list[str]:
    """One event: its time, its type, and what it is about."""
    content = event["content"]
    facts = content if isinstance(content, dict) else {"text": str(content)}
    head = f"{style.dim(clock(event['timestamp']))}  {event['type'].replace('_', ' '):<11}"
    room = None if columns is None else max(columns - HEAD_CELLS, HEAD_CELLS)
    match event["type"]:
        case "message":
            return [head.rstrip(), *fenced(str(facts.get("text", "")).rstrip("\n"), columns)]
        case "tool_call":
            return [f"{head}  {label(_call(facts), room)}"]
        case "tool_result":
            return [f"{head}  {label(_outcome(facts), room)}", *_output(facts, columns, is_full=is_full)]
        case "error":
            text = f"{facts.get('kind', '')}: {facts.get('message', '')}".strip(": ")
            return [head.rstrip(), *map(style.red, fenced(text, columns, mark="  ! "))]
        case "final":
            error = f": {facts['error']}" if facts.get("error") else ""
            return [f"{head}  {label(str(facts.get('status', '')) + error, room)}"]
        case _:
            return [style.dim(f"{head}  {label(_progress(facts), room)}")]


def clock(timestamp: str) -> str:
    """The local time of day."""
    try:
        return f"{datetime.fromisoformat(timestamp).astimezone():%H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return "--:--:--"


def _call(facts: Data) -> str:
    match facts.get("tool"):
        case "command":
            return without_shell(str(facts.get("command", "")))
        case "patch":
            return f"edit {', '.join(_paths(facts))}"
        case "mcp":
            return f"{facts.get('server', '')} {facts.get('name', '')}"
        case "web_search":
            return f"search {facts.get('query', '')}"
        case other:
            return str(other or "")


def _outcome(facts: Data) -> str:
    if facts.get("exitCode"):
        return f"exit code {facts['exitCode']}"
    return str(facts.get("status") or "completed") + (f" {', '.join(_paths(facts))}" if _paths(facts) else "")


def _paths(facts: Data) -> list[str]:
    changes = facts.get("changes")
    return (
        [str(each.get("path", "")) for each in changes if isinstance(each, dict)]
        if isinstance(changes, list)
        else []
    )


def _output(facts: Data, columns: int | None, *, is_full: bool) -> list[str]:
    text = str(facts.get("output") or "").rstrip("\n")
    if not text:
        return []
    rows = fenced(text, columns)
    hidden = len(rows) - MAX_OUTPUT_ROWS
    if is_full or hidden <= 1:
        return rows
    return [*rows[:MAX_OUTPUT_ROWS], f"  … {counted(hidden, 'more line')}: --full"]


def _progress(facts: Data) -> str:
    kind = str(facts.get("kind", "")).replace("_", " ").replace(".", " ")
    text = facts.get("text") or ""
    return f"{kind}: {text}" if text else kind
