"""Converts Claude Code's requests for a decision to `Question`s, and answers to its responses.

Pure, but that a `Write` over an existing file is shown as a diff of that file. Every kind of question can
be declined; an answer that does not clearly grant something declines.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from typing import Any

from laneway.base.engines import CLAUDE
from laneway.claude.activities import COMMAND, EDITORS, SERVER_PREFIX, ToolCall, change_of, maybe
from laneway.core.model import Answer, Choice, Field, FieldOption, FileChange, Question

ACCEPT = Choice(choice_id="accept", label="Allow once", grants="once")
NO = Choice(choice_id="decline", label="Decline and go on", grants="nothing", takes_words=True)
STOP = Choice(choice_id="cancel", label="Decline and stop", grants="stop", takes_words=True)

ASK_USER, PLAN = "AskUserQuestion", "ExitPlanMode"
SESSION = "session"
DECLINED = "The user declined this."
NOT_ANSWERED = "The user did not answer."
MAX_OLD_BYTES = 1024 * 1024
"""Of a file that is overwritten: a larger one is shown as a new file."""
MAX_PLAN_BYTES = 256 * 1024

Request = dict[str, Any]
Response = dict[str, Any]


def question_of(
    request: Request, question_id: str, thread_id: str, turn_id: str | None, cwd: str
) -> Question | None:
    """The question in a control request; none if that asks for no decision."""
    common = {
        "question_id": question_id,
        "thread_id": thread_id,
        "turn_id": turn_id,
        "cwd": cwd,
        "engine": CLAUDE,
        "params": request,
    }
    if request.get("subtype") == "elicitation":
        return _ask_elicitation(request, common)
    if request.get("subtype") != "can_use_tool":
        return None
    common |= {
        "item_id": maybe(request.get("tool_use_id"), str),
        "reason": maybe(request.get("decision_reason"), str),
    }
    call = ToolCall(str(request.get("tool_use_id")), str(request["tool_name"]), dict(request["input"]))
    return _maker(call.name)(call, request, common)


def reply(question: Question, answer: Answer) -> Response:
    """The response for Claude Code. An answer that the question does not offer declines."""
    choice = next((c for c in question.choices if c.choice_id == answer.choice_id), None)
    request = question.params
    if question.kind == "elicitation":
        return _elicitation_reply(question, choice, answer)
    if choice is None or choice.grants in ("nothing", "stop"):
        denial = {"behavior": "deny", "message": answer.words.strip() or DECLINED}
        return denial | ({"interrupt": True} if choice is not None and choice.grants == "stop" else {})
    if question.kind == "input":
        return _input_reply(question, answer)
    granted: Response = {"behavior": "allow", "updatedInput": request["input"]}
    if choice.grants == "session":
        granted["updatedPermissions"] = for_session(request)
    return granted


def for_session(request: Request) -> list[dict[str, Any]]:
    """Claude Code's own suggestions, but for this session: by itself it would write them into a file."""
    suggestions = request.get("permission_suggestions")
    return [{**each, "destination": SESSION} for each in suggestions or [] if isinstance(each, dict)]


# ── requests ────────────────────────────────────────────────────────────────

_Maker = Callable[[ToolCall, Request, dict[str, Any]], Question]


def _maker(tool: str) -> _Maker:
    if tool in EDITORS:
        return _ask_patch
    return {COMMAND: _ask_command, ASK_USER: _ask_input, PLAN: _ask_plan}.get(tool, _ask_tool)


def _choices(request: Request, subject: str) -> tuple[Choice, ...]:
    """A yes for the session only where Claude Code suggests one, and in every case a plain decline."""
    suggestions = for_session(request)
    if not suggestions:
        return (ACCEPT, NO, STOP)
    modes = [str(each.get("mode")) for each in suggestions if each.get("type") == "setMode"]
    label = (
        "Allow all edits for this session" if "acceptEdits" in modes else f"Allow {subject} for this session"
    )
    return (ACCEPT, Choice(choice_id="acceptForSession", label=label, grants="session"), NO, STOP)


def _ask_command(call: ToolCall, request: Request, common: dict[str, Any]) -> Question:
    command = str(call.arguments.get("command", ""))
    return Question(
        kind="command",
        message="Run this command?",
        command=command,
        choices=_choices(request, _rules(request) or "this"),
        **common,
    )


def _rules(request: Request) -> str:
    """What a yes for the session would cover, as Claude Code spells it."""
    rules = [
        str(rule["ruleContent"])
        for each in for_session(request)
        for rule in each.get("rules") or []
        if isinstance(rule, dict) and rule.get("ruleContent")
    ]
    return ", ".join(f"`{rule}`" for rule in rules)


def _ask_patch(call: ToolCall, request: Request, common: dict[str, Any]) -> Question:
    return Question(
        kind="patch",
        message="Apply these changes?",
        changes=(_shown_change(call, str(common["cwd"])),),
        choices=_choices(request, "this"),
        **common,
    )


def _shown_change(call: ToolCall, cwd: str) -> FileChange:
    change = change_of(call)
    old = _old_text(os.path.join(cwd, change.path)) if change.kind == "add" else None
    if old is None:
        return change
    new = str(call.arguments.get("content", ""))
    lines = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True))
    ended = [line if line.endswith("\n") else line + "\n" for line in lines]
    return FileChange(path=change.path, kind="update", diff="".join(ended[2:]))


def _old_text(path: str) -> str | None:
    """The text of a file that exists, and is a text of ordinary size."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > MAX_OLD_BYTES:
            return None
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None


def _ask_tool(call: ToolCall, request: Request, common: dict[str, Any]) -> Question:
    name = call.name
    if name.startswith(SERVER_PREFIX):
        server, _, tool = name.removeprefix(SERVER_PREFIX).partition("__")
        name = f"{server}.{tool}"
    return Question(
        kind="tool",
        message=f"Use the tool {name}?",
        tool=name,
        arguments=call.arguments,
        choices=_choices(request, "this tool"),
        **common,
    )


def _ask_plan(call: ToolCall, request: Request, common: dict[str, Any]) -> Question:
    plan = maybe(call.arguments.get("plan"), str) or ""
    return Question(
        kind="plan",
        message="Carry out this plan?",
        plan=plan[:MAX_PLAN_BYTES],
        choices=(
            Choice(choice_id="accept", label="Approve and begin", grants="once"),
            Choice(choice_id="decline", label="Keep planning", grants="nothing", takes_words=True),
            STOP,
        ),
        **common,
    )


def _ask_input(call: ToolCall, request: Request, common: dict[str, Any]) -> Question:
    fields = tuple(
        Field(
            field_id=f"answer-{number}",
            header=str(question.get("header", "")),
            text=str(question.get("question", "")),
            options=tuple(_option(option) for option in question.get("options") or []),
            allows_other=True,
            is_multiple=question.get("multiSelect") is True,
        )
        for number, question in enumerate(call.arguments.get("questions") or [], 1)
    )
    return Question(
        kind="input",
        message=fields[0].text if len(fields) == 1 else f"{CLAUDE} has questions.",
        fields=fields,
        choices=(Choice(choice_id="accept", label="Answer", grants="once"), NO),
        is_escalation=False,
        **common,
    )


def _option(option: dict[str, Any]) -> FieldOption:
    return FieldOption(label=str(option.get("label", "")), description=str(option.get("description") or ""))


def _ask_elicitation(request: Request, common: dict[str, Any]) -> Question:
    server = request.get("mcp_server_name") or "An MCP server"
    return Question(
        kind="elicitation",
        item_id=None,
        message=str(request.get("message") or f"{server} asks for input."),
        schema=request.get("requested_schema"),
        url=maybe(request.get("url"), str),
        choices=(
            Choice(choice_id="accept", label="Accept", grants="once"),
            Choice(choice_id="decline", label="Decline and go on", grants="nothing"),
        ),
        is_escalation=False,
        **common,
    )


# ── responses ─────────────────────────────────────────────────────────────


def _input_reply(question: Question, answer: Answer) -> Response:
    answers = {}
    for field in question.fields:
        value = answer.values.get(field.field_id)
        texts = [str(each) for each in value] if isinstance(value, list) else [str(value or "")]
        text = ", ".join(each for each in texts if each)
        if text:
            answers[field.text] = text
    if not answers:
        return {"behavior": "deny", "message": NOT_ANSWERED}
    return {"behavior": "allow", "updatedInput": {**question.params["input"], "answers": answers}}


def _elicitation_reply(question: Question, choice: Choice | None, answer: Answer) -> Response:
    if choice is None or choice.grants != "once":
        return {"action": "decline"}
    return {"action": "accept", "content": answer.values or ({} if question.schema else None)}
