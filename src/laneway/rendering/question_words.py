"""What a question says to a person: who asks, what a yes would mean, why, and how it ended. Pure."""

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

NO_CHANGES = "Codex did not tell which changes."
_SUBJECTS = {"command": "the command", "patch": "the changes", "permissions": "the permissions"}


def who(question: Question) -> str:
    """Who wants to know: Codex itself, or the MCP server that asks through it."""
    server = question.params.get("serverName") if isinstance(question.params, dict) else None
    return (
        f"The MCP server {code_label(str(server))}" if question.kind == "elicitation" and server else "Codex"
    )


def asks(question: Question) -> str:
    """The question with who wants to know."""
    return f"{who(question)} asks: {question.message}"


def subject(question: Question) -> str:
    """What is asked about, inside of a sentence."""
    if question.kind == "elicitation":
        return f"the request of {who(question).replace('The', 'the', 1)}"
    return _SUBJECTS.get(question.kind, "the question")


def dismissed(question: Question) -> str:
    return f"Nobody answered, so {subject(question)} was declined."


def headline(question: Question, field: Control) -> str:
    """One field as a question of its own: some clients show nothing else of it."""
    words = field.text or field.title
    return title(f"{question.message} ({words})" if question.kind == "elicitation" else words)


def explained(question: Question, field: Control) -> str:
    """The same at length, with what is known of its options."""
    lines = [asks(question)] if question.kind == "elicitation" else []
    lines += [field.text or field.title]
    lines += [f"- {option.title}: {option.text}" for option in field.options if option.text]
    return "\n".join(lines)


def question_title(question: Question) -> str:
    """One line that says what is wanted."""
    if question.kind == "patch":
        return code_title(edit_title(question.changes))
    is_network = isinstance(_params(question).get("networkApprovalContext"), dict)
    if question.kind == "command" and question.command and not is_network:
        return code_title(question.command)
    return title(question.message)


def explanation(question: Question, base: str) -> list[str]:
    """All that somebody needs to know to decide, but for the changes themselves; one text a paragraph.

    `base` is the folder in which it would be done.
    """
    match question.kind:
        case "command":
            command = question.command or ""
            words = [fenced(plain_code(command), "sh")] if command else []
            return [*words, *([f"In {quoted(base)}."] if base else []), *conditions(question)]
        case "patch":
            return [*conditions(question), *([] if question.changes else [NO_CHANGES])]
        case _:
            return _foreign(question)


def _foreign(question: Question) -> list[str]:
    """Permissions, input, and what MCP servers ask."""
    server, shown = _params(question).get("serverName"), subject_of(question)
    words = [plain(question.message)] if title(question.message) != question.message else []
    if isinstance(server, str):
        words.append(f"Asked by the MCP server {quoted(server)}.")
    if question.url:
        words.append(f"The address is {quoted(question.url)}.")
    if shown:
        words.append(as_code(shown))
    if question.kind == "permissions" and question.cwd:
        words.append(f"In {quoted(question.cwd)}.")
    return [*words, *reason(question)]


def subject_of(question: Question) -> Any:
    """What it is about as data: permissions, or what a tool would be called with; none if nothing."""
    if question.kind == "permissions":
        return question.schema
    meta = _params(question).get("_meta")
    return meta.get("tool_params") if isinstance(meta, dict) else None


def conditions(question: Question) -> list[str]:
    """What a yes would mean beyond the command or the changes themselves, and why it is asked for."""
    params = _params(question)
    said = []
    network = params.get("networkApprovalContext")
    if isinstance(network, dict):
        host, protocol = quoted(str(network.get("host"))), quoted(str(network.get("protocol")))
        said.append(f"It wants to reach {host} by {protocol}.")
    if params.get("additionalPermissions"):
        said.append("With these further permissions:\n\n" + as_code(params["additionalPermissions"]))
    hiding = unseen("".join(change.diff for change in question.changes))
    if hiding:
        said.append(UNSEEN.format(", ".join(hiding[:MAX_UNSEEN_NAMED])))
    said += reason(question)
    if isinstance(params.get("grantRoot"), str):
        said.append(f"A yes for the session covers all files below {quoted(params['grantRoot'])}.")
    return said


def reason(question: Question) -> list[str]:
    """The model's words on one line: they must not pass for the command, or for ours."""
    words = " ".join((question.reason or "").split())
    return [f"Reason: {plain(words)}"] if words else []


def is_web(url: str) -> bool:
    """Nothing else is opened on the word of a server: no file, no script, no program's own scheme."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return (
        parts.scheme in ("http", "https") and bool(parts.hostname) and is_plain_code(url) and " " not in url
    )


def _params(question: Question) -> dict[str, Any]:
    """The question in the engine's own form, for what its fields leave out."""
    return question.params if isinstance(question.params, dict) else {}
