"""How a bot words what a conversation shows: banners, activities, plans, questions and their ends. Pure.

Markdown in, Markdown out. What a model, a repository or a person wrote is fenced, quoted, or at least
shown with its hidden characters.
"""

from __future__ import annotations

from laneway.base.plain import code_label, fenced, label, plain, plain_code, quoted
from laneway.core.model import Activity, FileChange, Plan
from laneway.doors.chat.outputs import Button, QuestionOver, QuestionShown, TurnBegan, TurnEnded
from laneway.doors.chat.platforms.bots.markdown import inline
from laneway.rendering import choices, forms, questions_in_text
from laneway.rendering.activities import activity_title, outcome
from laneway.rendering.diffs import sentence
from laneway.rendering.lane_titles import RULE, began_head, ended_head, lane_name
from laneway.rendering.question_texts import explanation, question_title

BADGES = {"codex": "🔶", "claude": "🔷"}
PLAIN_BADGE = "🔹"
EDITED = "✏️ I have taken this message as it was. Send the new words as a message of their own."
MAX_TASK_CHARS = 120
"""Of the task, in the banner of a turn."""
MAX_THOUGHT_CHARS = 300
MAX_TAIL_LINES = 8
"""Of the output of a command that failed."""
MAX_TAIL_CHARS = 500
MAX_CHANGE_CHARS = 2500
"""Of one file's changes in a question."""
MAX_TITLE_CHARS = 160
MAX_WHY_CHARS = 200
"""Of the reason that a service gives."""

_TOOLS = {
    "command": "Bash",
    "edit": "Edit",
    "read": "Read",
    "search": "WebSearch",
    "image": "Image",
    "agent": "Agent",
    "review": "Review",
    "compaction": "Compaction",
    "sleep": "Sleep",
}
_MARKS = {
    "running": "⏳",
    "completed": "✓",
    "failed": "✗",
    "declined": "🚫",
    "interrupted": "⏹",
    "detached": "↪",
}
_STEPS = {"completed": "✅", "running": "🔄", "pending": "⬜"}


def badge(lane: str) -> str:
    return BADGES.get(lane, PLAIN_BADGE)


def shown_name(lane: str) -> str:
    return lane_name(lane).upper()


# ── turns ──────────────────────────────────────────────────────────────────


def began(turn: TurnBegan) -> str:
    task = label(turn.task.strip().split("\n")[0], MAX_TASK_CHARS) if turn.task.strip() else ""
    by = f" (for {lane_name(turn.caller)})" if turn.caller else ""
    what = f": {escaped(task)}" if task else ""
    return f"{RULE} {badge(turn.lane)} **{began_head(turn.lane)}**{by}{what} {RULE}"


def ended(turn: TurnEnded) -> str:
    """The end of a turn; empty where nothing needs to be said."""
    lines = []
    if turn.has_banner:
        seconds = f" · {turn.seconds:,.0f} s" if turn.seconds >= 1 else ""
        lines.append(f"{RULE} {badge(turn.lane)} **{ended_head(turn.lane, turn.status)}**{seconds} {RULE}")
    elif turn.status == "interrupted":
        lines.append(f"⏹ {shown_name(turn.lane).capitalize()} was stopped.")
    elif turn.buttons and turn.failure is None:
        lines.append("This turn was cut short.")
    if turn.stopped_by == "silence":
        lines.append("It was silent for too long.")
    if turn.failure is not None:
        lines.append(f"❌ {escaped(plain(turn.failure.message))}")
    return "\n".join(lines)


def activity_line(activity: Activity, cwd: str, prefix: str) -> str:
    """One line; for a command that failed with the end of its output below."""
    tool = _TOOLS.get(activity.kind) or code_label(activity.tool or activity.kind, 40)
    title = quoted(code_label(activity_title(activity, cwd), MAX_TITLE_CHARS))
    line = f"🔧 {escaped(prefix)}{escaped(tool)} {title} {_MARKS[activity.status]}"
    if activity.status in ("running", "completed"):
        return line
    why = outcome(activity, has_content=bool(activity.output), engine=prefix.rstrip(":") or "the engine")
    line += f" {escaped(why)}" if why else ""
    tail = _tail(activity.output or "") if activity.status == "failed" else ""
    return f"{line}\n{fenced(plain_code(tail))}" if tail else line


def thought_line(text: str) -> str:
    bare = "".join(part.text for part in inline(" ".join(text.split())))
    return f"💭 *{escaped(label(bare, MAX_THOUGHT_CHARS))}*"


def plan_text(plan: Plan, lane: str) -> str:
    steps = [f"{_STEPS[step.status]} {escaped(label(step.text))}" for step in plan.steps]
    return "\n".join([f"{badge(lane)} **{shown_name(lane)} plan**", *steps])


def diff_text(diff: str) -> str:
    """A summary, and the diff as a code block."""
    return f"{diff_summary(diff)}\n{fenced(plain_code(diff), 'diff')}"


def diff_summary(diff: str) -> str:
    """How much has changed, in one line."""
    lines = diff.splitlines()
    files = sum(line.startswith("+++ ") for line in lines)
    added = sum(line.startswith("+") and not line.startswith("+++ ") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("--- ") for line in lines)
    count = f"{files} file{'' if files == 1 else 's'}" if files else "Files"
    return f"✏️ **{count} changed** (+{added} −{removed})"


def refused(service: str, why: str) -> str:
    """Instead of a message that a service takes in no form."""
    reason = escaped(code_label(why, MAX_WHY_CHARS))
    return f"⚠️ A message cannot be shown here: {service.capitalize()} refused it ({reason})."


def _tail(output: str) -> str:
    lines = output.rstrip("\n").split("\n")[-MAX_TAIL_LINES:]
    return "\n".join(lines)[-MAX_TAIL_CHARS:]


# ── questions ──────────────────────────────────────────────────────────────


def question_text(shown: QuestionShown, cwd: str) -> str:
    """All that a person needs to answer it."""
    question = shown.question
    head = f"❓ **{shown_name(shown.lane)} asks** · question {shown.number}"
    controls = forms.controls(question)
    if controls and question.kind in ("input", "elicitation"):
        paragraphs = [head, questions_in_text.ask(question, controls).text]
    else:
        base = question.cwd or cwd
        explained = explanation(question, base)
        has_command = question.kind == "command" and any(each.startswith("```") for each in explained)
        title = [] if has_command else [quoted(question_title(question))]
        changes = [_change(change, base) for change in question.changes]
        paragraphs = [head, *title, *explained, *changes]
    if shown.for_owners:
        paragraphs.append("Only owners of this bot can answer.")
    return "\n\n".join(paragraphs)


def dialogs(shown: QuestionShown) -> tuple[Button, ...]:
    """Buttons for what its other buttons cannot say: own words, several fields, a no with a reason."""
    question, data = shown.question, f"q:{shown.number}"
    if question.kind in ("input", "elicitation"):
        fields = forms.controls(question) or ()
        only = fields[0] if len(fields) == 1 else None
        is_enough = only is not None and only.options and only.kind != "array" and not only.takes_free_text
        return (Button(data, "Answer …"),) if fields and not is_enough else ()
    offered = choices.offered(question)
    no = question.words_choice
    if no is None or no not in offered:
        return ()
    return (Button(f"{data}:{offered.index(no)}", f"{choices.name(question, no)} and say why …", "no"),)


def over_text(over: QuestionOver, question: str) -> str:
    """The question's text, and how it ended."""
    by = f" by {escaped(code_label(over.by, 60))}" if over.by else ""
    what = f": {escaped(label(over.text))}" if over.text else ""
    end = {
        "answered": f"✅ Answered{by}{what}",
        "declined": f"🚫 Declined{by}{what}",
        "expired": "⌛ Nobody answered in time, so it was declined.",
        "withdrawn": "↩️ It needs no answer any more.",
        "void": "↩️ The program that asked has ended: it needs no answer any more.",
    }[over.how]
    return f"{question}\n\n{end}" if question else f"Question {over.number}: {end}"


def _change(change: FileChange, base: str) -> str:
    text = change.diff if len(change.diff) <= MAX_CHANGE_CHARS else _cut(change.diff)
    return f"{sentence(change, base)}\n{fenced(plain_code(text), 'diff')}"


def _cut(text: str) -> str:
    left_out = len(text) - MAX_CHANGE_CHARS
    return f"{text[:MAX_CHANGE_CHARS]}\n[{left_out:,} more characters are not shown here]"


# ── Markdown ───────────────────────────────────────────────────────────────

_SPECIAL = str.maketrans({each: f"\\{each}" for each in "\\`*_[]<>~|"})


def escaped(text: str) -> str:
    """Foreign words within our own Markdown: nothing in them is markup."""
    return text.translate(_SPECIAL)
