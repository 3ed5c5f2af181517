"""Standard error of other versions, and of none; what the installed one says is in `test_real_stderr`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.codex.exec.stderr import LaunchFault, RefusedCall, launch_fault, refused_calls

LOG = "2026-11-18T19:08:43.232067Z ERROR codex_core::tools::router: error="
BACKTRACE = "\n\nStack backtrace:\n   0: <unknown>\n"


@pytest.mark.covers("J-workers.9")
@pytest.mark.parametrize(
    ("tail", "reason", "text"),
    [
        (
            "Error loading config.toml: unknown variant `nope`, expected one of `low`\nin `x`\n",
            "config",
            "Codex cannot load its configuration: unknown variant `nope`, expected one of `low`.",
        ),
        (
            "Error loading config.toml: invalid transport\nin `mcp_servers.nope`\n\n",
            "config",
            "Codex cannot load its configuration: invalid transport.",
        ),
        (
            f"Error: thread/start: failed to serialize response: path contains invalid UTF-8{BACKTRACE}",
            "folder",
            "Codex works in no folder whose name is not UTF-8.",
        ),
        (
            "error: invalid value 'nope' for '--sandbox <SANDBOX_MODE>'\n  [possible values: read-only]\n",
            "version",
            "This version of Codex does not take a worker's command line (invalid value 'nope' for"
            " '--sandbox <SANDBOX_MODE>'): upgrade it.",
        ),
        (f"Error: the sky fell{BACKTRACE}", "other", "Codex did not start: the sky fell."),
        ("a shell's words\nlast \x1b[31mwords\n\n", "other", r"Codex did not start: last \x1b[31mwords."),
    ],
)
def test_why_codex_did_not_start(tail: str, reason: str, text: str) -> None:
    """By what it says, else by its last words, in which nothing is hidden."""
    assert launch_fault(tail) == LaunchFault(reason, text)


def test_silence_tells_nothing() -> None:
    """Also of refused calls."""
    assert launch_fault(" \n") is None
    assert refused_calls("") == []


@pytest.mark.covers("J-workers.9")
@pytest.mark.parametrize(
    ("message", "call"),
    [
        (  # 0.133
            "exec_command failed for `/bin/bash -c 'rm -rf /x'`: CreateProcess { message:"
            ' "Rejected(\\"`/bin/bash -c \'rm -rf /x\'` rejected: blocked by policy\\")" }',
            RefusedCall("blocked by policy", "rm -rf /x"),
        ),
        (  # 0.163: quotes of its own, two lines
            r"""exec_command failed: CreateProcess { message: "Rejected(\"`/bin/bash -lc """
            r"""\\\"rm -rf 'a\\\\\\\" b' \\\\\\\\x\\necho 'é\\t'\\\"` rejected: no. Use x\")" }""",
            RefusedCall("no. Use x", "rm -rf 'a\" b' \\x\necho 'é\t'"),
        ),
        ("patch rejected: outside of the project", RefusedCall("patch rejected: outside of the project")),
        ("unsupported call: x", RefusedCall("unsupported call: x", is_rejected=False)),
    ],
)
def test_how_a_refused_call_is_told(message: str, call: RefusedCall) -> None:
    """The command and the reason, where they can be told apart."""
    assert refused_calls(f"{LOG}{message}\n2026-11-18T19:08:44Z  WARN other: x\n") == [call]


def test_only_the_routers_words_are_about_calls() -> None:
    """Other lines of the log are not, nor is the rest of an entry that was cut off."""
    cut, other = "rejected: the end of an entry", "2026-11-18T19:08:43Z ERROR codex_core::session: rejected"
    tail = f"{cut}\n{other}\n{LOG}patch rejected"
    assert refused_calls(tail) == [RefusedCall("patch rejected")]


@given(st.text(st.sampled_from('Error: `\\"(){}\n2026-11-18T19:08:43Z rejected')) | st.text())
def test_any_text_can_be_read(tail: str) -> None:
    """It is whatever Codex and the model said."""
    launch_fault(tail)
    refused_calls(LOG + tail)
