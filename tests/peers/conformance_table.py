"""How we stand with the official conformance suite: what passes, what does not, and what was not tried.

`test_conformance` holds this against a run, in both directions; `docs/mcp-conformance.md` is
written from it by `scripts/generate_conformance.py`.
"""

from __future__ import annotations

import msgspec

NO_COMPLETION = "No prompt of Laneway's has arguments, and no template has any that could be completed."
NO_SUBSCRIPTIONS = (
    "The resources of this test cannot be subscribed to. A session's events arrive during its calls."
)
NO_TASK_QUESTIONS = "Laneway's tasks ask their clients nothing, so no task is ever `input_required`."
TASK_NEWS_UNTESTED = "Skipped by this version of the suite, which still looks for them in the wrong place."
NO_POLLING = "No stream ends before its answer, so there is nothing to poll for."
NO_LISTENING = "The server of this test has no `subscriptions/listen`; all checks about it are skipped."
NO_PARAM_HEADERS = "No tool takes arguments in headers (`x-mcp-header`), so the suite has nothing to try."


class Suite(msgspec.Struct, frozen=True):
    """One run of the suite."""

    version: str
    """Of the npm package `@modelcontextprotocol/conformance`."""
    words: tuple[str, ...]
    """What it is told to run."""
    title: str
    passes: tuple[str, ...]
    gaps: dict[str, str]
    """Scenarios that fail, in whole or in part, and why."""
    unchecked: dict[str, str] = {}
    """Scenarios that the suite reports as passed without having found anything to check, and why."""
    skipped: dict[str, str] = {}
    """Scenarios that pass, but of which the suite skips some checks, and why."""


_BOTH_ERAS = (
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "server-sse-multiple-streams",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "dns-rebinding-protection",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
)
_HANDSHAKE = (
    *_BOTH_ERAS,
    "server-initialize",
    "logging-set-level",
    "ping",
    "tools-call-with-logging",
    "tools-call-sampling",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
)
_HANDSHAKE_GAPS = {
    "completion-complete": NO_COMPLETION,
    "resources-subscribe": NO_SUBSCRIPTIONS,
    "resources-unsubscribe": NO_SUBSCRIPTIONS,
}

SUITES = (
    Suite("0.1.16", ("--suite", "active"), "Released suite, with a handshake", _HANDSHAKE, _HANDSHAKE_GAPS),
    Suite(
        "0.2.0-alpha.12",
        ("--requirements", "2025-11-25"),
        "Upcoming suite, version 2025-11-25",
        (*_HANDSHAKE, "server-session-lifecycle", "json-schema-2020-12"),
        _HANDSHAKE_GAPS,
        {"server-sse-polling": NO_POLLING},
    ),
    Suite(
        "0.2.0-alpha.12",
        ("--requirements", "2026-07-28"),
        "Upcoming suite, version 2026-07-28 (stateless)",
        (
            *_BOTH_ERAS,
            "server-stateless",
            "sep-2164-resource-not-found",
            "http-header-validation",
            "json-schema-2020-12",
            "input-required-result-basic-elicitation",
            "input-required-result-basic-sampling",
            "input-required-result-basic-list-roots",
            "input-required-result-request-state",
            "input-required-result-multiple-input-requests",
            "input-required-result-multi-round",
            "input-required-result-missing-input-response",
            "input-required-result-result-type",
            "input-required-result-unsupported-methods",
            "input-required-result-tampered-state",
            "input-required-result-capability-check",
            "input-required-result-ignore-extra-params",
            "input-required-result-validate-input",
            "input-required-result-non-tool-request",
            "caching",
            "tasks-lifecycle",
            "tasks-capability-negotiation",
            "tasks-wire-fields",
            "tasks-request-state-removal",
            "tasks-request-headers",
            "tasks-required-task-error",
        ),
        {
            "completion-complete": NO_COMPLETION,
            "http-custom-header-server-validation": NO_PARAM_HEADERS,
            "tasks-mrtr-input": NO_TASK_QUESTIONS,
            "tasks-dispatch-and-envelope": f"All checks pass but the one of such a task. {NO_TASK_QUESTIONS}",
            "tasks-mrtr-composition": NO_TASK_QUESTIONS,
        },
        {"tasks-status-notifications": TASK_NEWS_UNTESTED},
        {"server-stateless": NO_LISTENING},
    ),
)
