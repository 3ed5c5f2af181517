"""Texts of a question for the user: its title, who asks, what approval would allow, and why. Pure."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from laneway.base.plain import (
    MAX_UNSEEN_NAMED,
    UNSEEN,
    code_label,
    fenced,
    is_plain_code,
    plain,
    plain_code,
    quoted,
    unseen,
)
from laneway.core.model import Question
from laneway.rendering.as_code import as_code
from laneway.rendering.diffs import edit_title
from laneway.rendering.forms import Control
from laneway.rendering.titles import code_title, title

_SUBJECTS = {
    "command": "the command",
    "patch": "the changes",
    "permissions": "the permissions",
    "tool": "the use of the tool",
    "plan": "the plan",
}


def asker(question: Question) -> str:
    """Who asks: the engine itself, or the MCP server that asks through it."""
    server = question.params.get("serverName") if isinstance(question.params, dict) else None
    if question.kind == "elicitation" and server:
        return f"The MCP server {code_label(str(server))}"
    return question.engine


def attributed(question: Question) -> str:
    """The question's message with who asks it."""
    return f"{asker(question)} asks: {question.message}"


def subject(question: Question) -> str:
    """What the question is about, as a phrase for the middle of a sentence."""
    if question.kind == "elicitation":
        return f"the request of {asker(question).replace('The', 'the', 1)}"
    return _SUBJECTS.get(question.kind, "the question")


def dismissed_text(question: Question) -> str:
    return f"Nobody answered, so {subject(question)} was declined."


def headline(question: Question, field: Control) -> str:
    """One field as a question on one line: some clients show nothing else of it."""
    text = field.text or field.title
    return title(f"{question.message} ({text})" if question.kind == "elicitation" else text)


def explained(question: Question, field: Control) -> str:
    """One field in full, with the descriptions of its options."""
    lines = [attributed(question)] if question.kind == "elicitation" else []
    lines += [field.text or field.title]
    lines += [f"- {option.title}: {option.text}" for option in field.options if option.text]
    return "\n".join(lines)


def question_title(question: Question) -> str:
    """The title of a question: the command, the edit or the message, on one line."""
    if question.kind == "patch":
        return code_title(edit_title(question.changes))
    is_network = isinstance(_params(question).get("networkApprovalContext"), dict)
    if question.kind == "command" and question.command and not is_network:
        return code_title(question.command)
    if question.kind == "tool" and question.tool:
        return code_title(question.tool)
    return title(question.message)


def explanation(question: Question, base: str) -> list[str]:
    """All that a user needs to decide, except for the file changes; each text is a paragraph.

    `base` is the folder in which a command would run.
    """
    match question.kind:
        case "command":
            command = question.command or ""
            code = [fenced(plain_code(command), "sh")] if command else []
            return [*code, *([f"In {quoted(base)}."] if base else []), *conditions(question)]
        case "tool":
            code = [] if question.arguments in (None, {}) else [as_code(question.arguments)]
            return [*code, *([f"In {quoted(base)}."] if base else []), *reason(question)]
        case "plan":
            return [*([plain(question.plan.strip())] if question.plan else []), *reason(question)]
        case "patch":
            return [*conditions(question), *([] if question.changes else [no_changes(question)])]
        case _:
            return _other(question)


def _other(question: Question) -> list[str]:
    """The explanation of questions about permissions or input, and of MCP servers' questions."""
    server, data = _params(question).get("serverName"), subject_data(question)
    paragraphs = [plain(question.message)] if title(question.message) != question.message else []
    if isinstance(server, str):
        paragraphs.append(f"Asked by the MCP server {quoted(server)}.")
    if question.url:
        paragraphs.append(f"The address is {quoted(question.url)}.")
    if data:
        paragraphs.append(as_code(data))
    if question.kind == "permissions" and question.cwd:
        paragraphs.append(f"In {quoted(question.cwd)}.")
    return [*paragraphs, *reason(question)]


def subject_data(question: Question) -> Any:
    """What the question is about as data: permissions, or the arguments of a tool call; none if neither."""
    if question.kind == "permissions":
        return question.schema
    if question.kind == "tool":
        return question.arguments
    meta = _params(question).get("_meta")
    return meta.get("tool_params") if isinstance(meta, dict) else None


def no_changes(question: Question) -> str:
    return f"{question.engine} did not tell which changes."


def conditions(question: Question) -> list[str]:
    """What approval would allow beyond the command or the changes, and the reason given."""
    params = _params(question)
    paragraphs = []
    network = params.get("networkApprovalContext")
    if isinstance(network, dict):
        host, protocol = quoted(str(network.get("host"))), quoted(str(network.get("protocol")))
        paragraphs.append(f"It wants to reach {host} by {protocol}.")
    if params.get("additionalPermissions"):
        paragraphs.append("With these further permissions:\n\n" + as_code(params["additionalPermissions"]))
    unseen_names = unseen("".join(change.diff for change in question.changes))
    if unseen_names:
        paragraphs.append(UNSEEN.format(", ".join(unseen_names[:MAX_UNSEEN_NAMED])))
    paragraphs += reason(question)
    if isinstance(params.get("grantRoot"), str):
        paragraphs.append(f"A yes for the session covers all files below {quoted(params['grantRoot'])}.")
    return paragraphs


def reason(question: Question) -> list[str]:
    """The model's reason on one line, so that it cannot pass for the command or for a text of ours."""
    text = " ".join((question.reason or "").split())
    return [f"Reason: {plain(text)}"] if text else []


def is_web(url: str) -> bool:
    """Whether it is the address of a web page. Servers may not have files or other schemes opened."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return (
        parts.scheme in ("http", "https") and bool(parts.hostname) and is_plain_code(url) and " " not in url
    )


def _params(question: Question) -> dict[str, Any]:
    """The engine's own parameters, for what the fields of `Question` leave out."""
    return question.params if isinstance(question.params, dict) else {}
