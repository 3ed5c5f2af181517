"""What only the standard error of `codex exec` tells: why it did not start, and which calls it refused.

Meaning is read from text, because there is nothing else: one function for each of the two, and a test with
the real Codex for each row. What a command prints never gets there, but words of the model do, inside the
messages about refused calls; so launch faults are only looked for where no turn has begun.
"""

from __future__ import annotations

import re
from itertools import pairwise

import msgspec

from laneway.base.plain import label
from laneway.codex.exec.shell_line import without_shell

MAX_REFUSALS = 100
MAX_REASON_CHARS = 500
BACKTRACE = "Stack backtrace:"
_LOGGED = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z +[A-Z]+ [\w:]+: ", re.MULTILINE)
"""The head of a line of Codex's log."""
_ROUTER = re.compile(r"^\S+ +ERROR codex_core::tools::router: error=")
_CREATE = re.compile(r'CreateProcess \{ message: "Rejected\(\\"(.*)\\"\)" \}$', re.DOTALL)
_COMMAND = re.compile(r"^`(.*)` rejected: (.*)$", re.DOTALL)
_ESCAPE = re.compile(r"""\\(?:u\{([0-9a-f]{1,6})\}|([\\"'nrt0]))""")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}


class LaunchFault(msgspec.Struct, frozen=True):
    """Why no turn began."""

    reason: str
    """`busy`, `thread`, `folder`, `schema`, `config`, `login`, `prompt`, `server`, `version` or `other`."""
    text: str
    """A sentence."""


class RefusedCall(msgspec.Struct, frozen=True):
    """A call of the model that Codex did not run, and of which it prints no event."""

    reason: str
    command: str | None = None
    """Of a shell command, if it is told."""
    is_rejected: bool = True
    """By a rule, the sandbox or the approval policy; else the call itself was wrong."""


_FAULTS: tuple[tuple[str, str, str], ...] = (
    ("busy", r"already has an active writer", "The thread is in use by another Codex."),
    ("thread", r"no rollout found for thread id", "Codex does not know the thread."),
    ("schema", r"^Failed to read output schema file", "Codex cannot read the file of the output schema."),
    ("schema", r"^Output schema file .* is not valid JSON", "The output schema is not valid JSON."),
    ("config", r"^Error loading config\.toml:?\s*(.*)", "Codex cannot load its configuration: {0}."),
    ("config", r"^Error: (Model provider `.*` not found)", "Codex's configuration is incomplete: {0}."),
    ("config", r"^Error finding codex home: (.*)", "Codex has no home: {0}."),
    (
        "server",
        r"required MCP servers failed to initialize: ([^:\n]+)",
        "An MCP server that is required by Codex's configuration did not start: {0}.",
    ),
    ("login", r"login is required|^Error: .*[Nn]ot logged in", "Codex is not logged in: run `codex login`."),
    ("prompt", r"^No prompt provided via stdin", "The prompt is empty."),
    ("prompt", r"Input exceeds the maximum length", "The prompt is longer than Codex takes."),
    ("folder", r"path contains invalid UTF-8", "Codex works in no folder whose name is not UTF-8."),
    ("folder", r"^Error: No such file or directory", "The folder to work in does not exist."),
    (
        "version",
        r"^(?:Error: (Unknown feature flag.*)|error: ((?:unexpected|invalid|unrecognized) .*))",
        "This version of Codex does not take a worker's command line ({0}): upgrade it.",
    ),
    ("other", r"^(?:Error: |error: )(.*)", "Codex did not start: {0}."),
)
"""Reason, pattern, sentence; the first that fits counts. `{0}` is what the pattern catches."""


def launch_fault(tail: str) -> LaunchFault | None:
    """Why Codex did not begin a turn, from the end of its standard error; none if it tells nothing."""
    text = tail.partition(f"\n{BACKTRACE}")[0]
    for reason, pattern, sentence in _FAULTS:
        found = re.search(pattern, text, re.MULTILINE)
        if found is not None:
            caught = next((group for group in found.groups() if group), "")
            return LaunchFault(reason, sentence.format(_clause(caught)))
    last = next((line for line in reversed(text.splitlines()) if line.strip()), "")
    return LaunchFault("other", f"Codex did not start: {_clause(last)}.") if last else None


def _clause(text: str) -> str:
    return label(text.strip().rstrip(".:"))


def refused_calls(tail: str) -> list[RefusedCall]:
    """The calls that Codex refused, in order, as far as the end of its standard error tells of them."""
    heads = [match.start() for match in _LOGGED.finditer(tail)]
    entries = [tail[start:end] for start, end in pairwise((*heads, len(tail)))]
    calls = [_refused(_ROUTER.sub("", entry, count=1)) for entry in entries if _ROUTER.match(entry)]
    return calls[-MAX_REFUSALS:]


def _refused(message: str) -> RefusedCall:
    message = message.strip()
    created = _CREATE.search(message)
    inner = _unescaped(_unescaped(created[1])) if created else message
    command = _COMMAND.match(inner)
    if command is not None:
        return RefusedCall(label(command[2], MAX_REASON_CHARS), without_shell(command[1]))
    return RefusedCall(label(inner, MAX_REASON_CHARS), is_rejected="reject" in message)


def _unescaped(text: str) -> str:
    """Undo what Rust does to a text within a text."""

    def character(found: re.Match[str]) -> str:
        if found[1] is None:
            return _ESCAPES.get(found[2], found[2])
        number = int(found[1], 16)
        return chr(number) if number <= 0x10FFFF else found[0]

    return _ESCAPE.sub(character, text)
