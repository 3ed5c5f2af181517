"""What the ACP door reads from its clients: any JSON in every place where a client may put some.

Only `RemoteError` may come out, which is an answer in words. What goes on from there must be fit
for Codex, and an answer to a question must be one of the question's own.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, ClassVar

import msgspec

from laneway.base.errors import RemoteError
from laneway.codex.models import models
from laneway.core.model import Answer, Question
from laneway.core.session_settings import Choices, Facts
from laneway.doors.acp import client
from laneway.doors.acp.history import listing, user_blocks
from laneway.doors.acp.ids import thread_id
from laneway.doors.acp.questions import permission_options
from laneway.doors.acp.sessions import mcp_servers, options, prompts, session_factory
from laneway.rendering import forms
from laneway.rendering import questions_in_text as spoken
from laneway.wire.messages import UNREADABLE
from tests.doors.acp.access import opened, overrides
from tests.doors.acp.asking import COLOUR, PAGE, TOOL, WHY, elicited, user_input
from tests.doors.acp.questions.test_permission_options import EXEC, command, network
from tests.doors.acp.sessions.test_options import LISTED, STARTED
from tests.fuzz.shapes import PLAIN, Shapes

MAX_SAID = 4
"""Values of one input: more would only make each run slower."""
SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "maxLength": 3},
        "number": {"type": "number", "minimum": 0},
        "integer": {"type": ["integer", "null"]},
        "switch": {"type": "boolean"},
        "one": {"type": "string", "enum": ["a", "b"]},
        "many": {"type": "array", "items": {"enum": ["a", "b"]}},
    },
    "required": ["integer"],
}


class Sayings(Shapes):
    """JSON in the words of ACP."""

    keys: ClassVar = re.findall(
        r"\w+",
        """type text data mimeType uri name resource blob command args env headers url value sessionId cwd
 additionalDirectories mcpServers configId modeId outcome optionId action content prompt clientCapabilities
 clientInfo version session notices configOptions boolean elicitation form terminal_output _meta laneway
 unstable auth terminal number integer switch one many colour colour_note why title""",
    )
    texts: ClassVar = [
        "",
        "text",
        "image",
        "audio",
        "resource",
        "resource_link",
        "stdio",
        "http",
        "sse",
        "image/png",
        "AAAA",
        "/",
        "/tmp",
        "a" * 5000,
        "selected",
        "cancelled",
        "accept",
        "decline",
        "amendment-1",
        "amendment-9999999999999999999999",
        "read-only",
        "on",
        "big",
        "a",
        "1: 2\n2: x",
        "é🐢\x00\x1b[31m‮",
        "[/ACP_RESOURCE]",
        "http://x",
        "sess_00000000-0000-7000-8000-000000000000",
    ]
    plain: ClassVar = [*PLAIN, 10**400, -(10**400)]

    def _message(self) -> dict[str, Any]:
        return self._object(0)


def editor(data: bytes) -> None:
    """Whatever a client says, wherever it says it, is read or refused in words."""
    for value in islice(said(data), MAX_SAID):
        for reader in READERS:
            try:
                reader(value)
            except RemoteError as refused:
                msgspec.json.encode([refused.code, refused.message, refused.data])


def said(data: bytes) -> Iterator[Any]:
    """As the door decodes it: what is no JSON, or nested too deeply, never gets this far."""
    for frame in Sayings(data).frames():
        try:
            value = msgspec.json.decode(frame)
        except UNREADABLE:
            continue
        yield value
        if isinstance(value, dict):
            yield from value.values()


# ── in every place ─────────────────────────────────────────────────────────


def _greeting(value: Any) -> None:
    client.client_of(_object(value))


def _prompt(value: Any) -> None:
    for blocks in (value, [value], _object(value).get("prompt")):
        for images in (True, False):
            try:
                parts = prompts.parts(blocks, images=images)
            except RemoteError:
                continue
            msgspec.json.encode(parts)
            user_blocks.without_resources("".join(getattr(part, "text", "") for part in parts))


def _servers(value: Any) -> None:
    for wanted in (value, [value], _object(value).get("mcpServers")):
        try:
            made = mcp_servers.servers(wanted, {"mine"})
        except RemoteError:
            continue
        msgspec.json.encode(made)
        entries = made.config.get("mcp_servers", {})
        assert all(re.fullmatch(r"[\w-]+", name, re.ASCII) for name in entries)


def _folders(value: Any) -> None:
    session_factory.request_of(_object(value))


def _option(value: Any) -> None:
    for config_id in ("mode", "model", "thought_level", "personality", "reasoning_summary", "network", "x"):
        try:
            chosen = options.choose(Choices(), facts(), config_id, value)
        except RemoteError:
            continue
        msgspec.json.encode(options.render(chosen, facts(), client.EditorClient()))
        msgspec.json.encode(overrides(chosen, facts()))


def _reply(value: Any) -> None:
    for question in questions():
        for reply in (value, {"outcome": value}, {"outcome": {"outcome": "selected", "optionId": value}}):
            _check(question, permission_options.answer(question, reply))


def _form(value: Any) -> None:
    for _, fields in filled():
        for content in (value, {field.name: value for field in fields}):
            msgspec.json.encode([forms.values(fields, content), forms.answers(fields, content)])


def _words(value: Any) -> None:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    thread_id(text)
    listing.short_title(text)
    for question, fields in filled():
        answer = spoken.from_text(spoken.ask(question, fields), text)
        if isinstance(answer, Answer):
            _check(question, answer)
            msgspec.json.encode(answer)


READERS: tuple[Callable[[Any], None], ...] = (
    _greeting,
    _prompt,
    _servers,
    _folders,
    _option,
    _reply,
    _form,
    _words,
)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _check(question: Question, answer: Answer) -> None:
    ids = {choice.choice_id for choice in question.choices}
    assert answer.choice_id in ids, "an answer that was not offered"


@functools.cache
def questions() -> tuple[Question, ...]:
    return (
        command(["accept", EXEC, network("allow"), "cancel"]),
        elicited(requestedSchema=SCHEMA),
        user_input(COLOUR, WHY),
        TOOL,
        PAGE,
    )


@functools.cache
def filled() -> tuple[tuple[Question, tuple[forms.Control, ...]], ...]:
    """Those of the questions that are answered by a form."""
    return tuple((question, fields) for question in questions() if (fields := forms.controls(question)))


@functools.cache
def facts() -> Facts:
    return opened(STARTED, models(LISTED), {})
