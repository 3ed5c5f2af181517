"""What the removed `codex mcp-server` said, and what `laneway mcp-server` says to the same calls.

The traces were recorded from the real 0.153.4 (`make golden-mcp`). Every difference is listed
in `REPAIRS` with its reason; an unlisted one fails, and so does a listed one that is gone.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import msgspec
import pytest

import laneway
from laneway.codex import locate
from laneway.testing.mcp_compare import differences
from laneway.testing.mcp_scenarios import SCENARIOS
from laneway.testing.mcp_traces import ENVIRONMENT, Scenario, converse, event_type, load

GOLDEN = Path(__file__).parent.parent.parent / "golden" / "mcp-server-0.153.4"
EVERYWHERE: tuple[str, ...] = ()
EXAMPLE = "words"
"""The scenario in which all that differs everywhere can be seen."""
ASKING = ("approvals", "denials", "accept", "command-aborted", "patch-aborted")
DEAF = ("command-aborted", "patch-aborted", "cancelled")
ACCEPTED_NOW = ("legacy-approval", "legacy-include-plan-tool")


class Repair(msgspec.Struct, frozen=True):
    """Differences of one kind: where they are, how they read, why they are meant."""

    where: tuple[str, ...]
    what: str
    why: str


REPAIRS = (
    Repair(
        EVERYWHERE,
        r"serverInfo\.user_agent is missing",
        "Not a field of MCP; our clients need no such header.",
    ),
    Repair(
        EVERYWHERE,
        r"mcp_startup_complete\.params\.id: \"\" → \"turn-\d\"",
        "App-server does not say that there are no MCP servers: we know when the first turn begins.",
    ),
    Repair(
        EVERYWHERE,
        r"task_started\.params\.msg\.model_context_window: \d+ → null",
        "App-server tells it with the first count of tokens, and from then on so do we.",
    ),
    Repair(EVERYWHERE, r"rate_limits\.normal_model_slug is new", "A field that Codex has had since."),
    Repair(
        ("version-unknown",),
        r"protocolVersion: \"1999-01-01\" → \"2025-11-25\"",
        "Versions are negotiated; the old server repeated whatever it was told.",
    ),
    Repair(
        ("protocol",),
        r"call [23] answer\.error\.",
        "A call of a wrong shape is told what is wrong with it; the old server denied having the method.",
    ),
    Repair(("unanswered",), r"call [12] answer is new", "Every request is answered."),
    Repair(ASKING, r"elicitation/create\.id: \d → \d", "Our requests count from one."),
    Repair(
        ASKING,
        r"elicitation/create\.params\.message: ",
        "The person who decides is told why, and which files.",
    ),
    Repair(
        ("denials",),
        r"item\.output: .*(approval request failed|Not today\.).* → .*rejected by user",
        "App-server takes no reason along with a denial; the model is told that it was denied.",
    ),
    Repair(
        ("denials",),
        r"call 5 \S+\.stderr: \"approval request failed\" → \"\"",
        "App-server does not pass on what the patch tool said.",
    ),
    Repair(
        ("accept",),
        r"(item_started|item_completed|exec_command_\w+) is new|item\.output: .*Process exited",
        "`action: accept` is a yes; the old server took it for a no.",
    ),
    Repair(DEAF, r"end: killed by SIGTERM → exit code 0", "The end of standard input always ends us."),
    Repair(
        ("command-aborted", "patch-aborted"),
        r"call 1 answer is new",
        "A call whose turn was aborted is answered; the old server forgot it.",
    ),
    Repair(
        ("patch-aborted",),
        r"call 1 (item_completed|patch_apply_end) is new",
        "An edit that was begun is also ended.",
    ),
    Repair(
        ("cancelled",),
        r"token_count is missing",
        "App-server tells no count where nothing was counted.",
    ),
    Repair(
        ("failure",),
        r"We're currently .* → .*We’re currently",
        "The words are Codex's own, and it has changed its apostrophe.",
    ),
    Repair(
        ("failure",),
        r"task_complete is new",
        "A call is answered when its turn is over; the old server answered before, and the rest"
        " ended the next call.",
    ),
    Repair(
        ("config-refused",),
        r"overrides: invalid type.* → .*overrides: failed to load configuration: invalid type",
        "The words are Codex's own.",
    ),
    Repair(
        ("parameters",),
        r"call [45] warning is new",
        "Today's Codex has no data on that model and says so.",
    ),
    Repair(
        ACCEPTED_NOW,
        r" is new|isError is missing|Failed to parse configuration.* → \"Hi\.\"",
        "Parameters of older servers are taken again.",
    ),
    Repair(
        ("legacy-profile",),
        r"unknown field `profile`.* → .*no longer supported",
        "Codex itself says what has become of profiles.",
    ),
)

every_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)


@every_scenario
async def test_our_server_says_what_the_removed_one_said_but_for_the_listed_repairs(
    scenario: Scenario,
) -> None:
    """The same script of calls, on today's Codex, against the recorded truth."""
    environment = {
        **ENVIRONMENT,
        "LANEWAY_CODEX_BIN": locate.find().path,
        "PYTHONPATH": str(Path(laneway.__file__).parent.parent),
    }
    command = [sys.executable, "-m", "laneway", "mcp-server"]
    said = await converse(command, scenario, repaired=True, environment=environment)
    found = differences(load((GOLDEN / f"{scenario.name}.json").read_bytes()), said)

    meant = [row for row in REPAIRS if row.where == EVERYWHERE or scenario.name in row.where]
    unlisted = [line for line in found if not any(re.search(row.what, line) for row in meant)]
    assert unlisted == []
    due = [row for row in meant if row.where != EVERYWHERE or scenario.name == EXAMPLE]
    gone = [row.why for row in due if not any(re.search(row.what, line) for line in found)]
    assert gone == []


def test_there_is_a_trace_for_every_scenario_and_none_besides() -> None:
    """Recorded and played are the same list."""
    assert {path.stem for path in GOLDEN.glob("*.json")} == {scenario.name for scenario in SCENARIOS}


def test_every_repair_names_scenarios_that_exist() -> None:
    """A misspelt name would never be missed."""
    names = {scenario.name for scenario in SCENARIOS}
    assert {name for row in REPAIRS for name in row.where} <= names
    assert EXAMPLE in names


@every_scenario
def test_a_trace_names_no_machine(scenario: Scenario) -> None:
    """Nothing in the recordings tells where they were made."""
    text = (GOLDEN / f"{scenario.name}.json").read_text()
    for clue in ("/root", "/tmp/", "/Users", ".cache", str(Path.home()), "rollout-2"):
        assert clue not in text


def test_the_traces_show_the_events_that_clients_know() -> None:
    """Were an event lost in the recording, no comparison would miss it."""
    traces = [load(path.read_bytes()) for path in GOLDEN.glob("*.json")]
    seen = {event_type(line.message) for trace in traces for line in trace.lines if line.who == "server"}
    assert seen >= {
        "session_configured",
        "task_started",
        "user_message",
        "agent_message",
        "agent_reasoning",
        "plan_update",
        "exec_command_begin",
        "exec_command_end",
        "exec_approval_request",
        "patch_apply_begin",
        "patch_apply_end",
        "apply_patch_approval_request",
        "turn_diff",
        "token_count",
        "error",
        "turn_aborted",
        "task_complete",
    }
