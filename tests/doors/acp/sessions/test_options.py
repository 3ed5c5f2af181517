"""Config options: what a client is shown, what it may choose, and what Codex is told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from laneway.base.errors import RemoteError
from laneway.codex.models import models
from laneway.core.session_settings import (
    Choices,
    Facts,
    current_effort,
    current_model,
    policy,
    takes_images,
)
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.sessions.options import choose, modes, render
from tests.doors.acp.access import opened, overrides
from tests.doors.acp.lint import Lint

PLAIN = EditorClient()
SWITCHES = EditorClient(takes_booleans=True)
LISTED = [
    {
        "id": "big-id",
        "model": "big",
        "displayName": "Big",
        "description": "Thinks long.",
        "hidden": False,
        "supportedReasoningEfforts": [
            {"reasoningEffort": "medium", "description": "Balanced."},
            {"reasoningEffort": "xhigh", "description": ""},
        ],
        "defaultReasoningEffort": "medium",
        "inputModalities": ["text", "image"],
        "supportsPersonality": True,
    },
    {
        "model": "small",
        "displayName": "Small",
        "description": "",
        "hidden": False,
        "supportedReasoningEfforts": [{"reasoningEffort": "low", "description": "Quick."}],
        "defaultReasoningEffort": "low",
        "inputModalities": ["text"],
    },
    {"model": "secret", "displayName": "Secret", "hidden": True},
    {"displayName": "no model"},
    "nonsense",
]
STARTED: dict[str, Any] = {
    "model": "big",
    "reasoningEffort": None,
    "approvalPolicy": "on-request",
    "sandbox": {"type": "readOnly", "networkAccess": False},
    "activePermissionProfile": {"id": ":read-only"},
}


def facts(config: dict[str, Any] | None = None, roots: tuple[str, ...] = (), **answer: Any) -> Facts:
    return opened(STARTED | answer, models(LISTED), config or {}, roots)


def shown(choices: Choices, known: Facts, client: EditorClient = PLAIN) -> dict[str, dict[str, Any]]:
    return {option["id"]: option for option in render(choices, known, client)}


def values(option: dict[str, Any]) -> list[str]:
    return [each["value"] for each in option["options"]]


def after(known: Facts, *steps: tuple[str, Any]) -> Choices:
    choices = Choices()
    for config_id, value in steps:
        choices = choose(choices, known, config_id, value)
    return choices


def test_everything_is_shown_with_names_for_people() -> None:
    """The whole state, for a client that knows no switches."""
    options = render(Choices(), facts(), PLAIN)
    assert [(o["id"], o["name"], o["category"], o["currentValue"]) for o in options] == [
        ("mode", "Mode", "mode", "config"),
        ("model", "Model", "model", "big"),
        ("thought_level", "Thinking", "thought_level", "medium"),
        ("personality", "Personality", "model_config", "default"),
        ("reasoning_summary", "Reasoning shown", "model_config", "default"),
        ("network", "Network", "_permissions", "off"),
    ]
    assert {o["type"] for o in options} == {"select"}
    assert options[0]["options"][0] == {
        "value": "config",
        "name": "As configured",
        "description": "What config.toml says: read-only, asks on request, no network.",
    }
    assert options[2]["options"] == [
        {"value": "medium", "name": "Medium", "description": "Balanced."},
        {"value": "xhigh", "name": "Extra high"},
    ]


def test_what_is_chosen_can_be_told_without_the_name_of_its_option() -> None:
    """A toolbar that shows values alone must not show “Default” beside “None” beside “Off”."""
    names = [entry["name"] for option in render(Choices(), facts(), PLAIN) for entry in option["options"]]
    assert len(set(names)) == len(names)
    assert not {"Default", "None", "On", "Off"} & set(names)


@pytest.mark.parametrize("client", [PLAIN, SWITCHES])
@pytest.mark.parametrize("steps", [(), (("mode", "full"),), (("model", "small"), ("network", "on"))])
def test_what_is_shown_fits_the_official_schema(
    client: EditorClient, steps: tuple[tuple[str, Any], ...]
) -> None:
    """And the rules beyond it: each current value is among its options, switches only on request."""
    known = facts()
    choices = after(known, *steps)
    can: dict[str, Any] = {"session": {"configOptions": {"boolean": {}}}} if client.takes_booleans else {}
    lint = Lint()
    result = {
        "sessionId": "s",
        "modes": modes(choices, known),
        "configOptions": render(choices, known, client),
    }
    asked: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("initialize", {"protocolVersion": 1, "clientCapabilities": can}, {"protocolVersion": 1}),
        ("session/new", {"cwd": "/", "mcpServers": []}, result),
    ]
    for number, (method, params, answer) in enumerate(asked):
        lint.check("client", {"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        lint.check("agent", {"jsonrpc": "2.0", "id": number, "result": answer})
    lint.assert_clean()


def test_nothing_is_told_to_codex_until_something_is_chosen() -> None:
    """The user's config.toml rules; choosing what is so already is no choice."""
    known = facts()
    assert overrides(Choices(), known) == {}
    assert after(known, ("mode", "config"), ("network", "off"), ("reasoning_summary", "default")) == Choices()


def test_each_choice_is_told_in_codexs_words() -> None:
    """`code` takes the user's own settings of the sandbox along."""
    known = facts({"sandbox_workspace_write": {"writable_roots": ["/x"], "exclude_slash_tmp": True}})
    choices = after(
        known,
        ("mode", "code"),
        ("network", True),
        ("model", "big"),
        ("reasoning_effort", "xhigh"),
        ("personality", "friendly"),
        ("reasoning_summary", "concise"),
    )
    assert overrides(choices, known) == {
        "model": "big",
        "effort": "xhigh",
        "personality": "friendly",
        "summary": "concise",
        "approvalPolicy": "on-request",
        "sandboxPolicy": {
            "type": "workspaceWrite",
            "writableRoots": ["/x"],
            "networkAccess": True,
            "excludeTmpdirEnvVar": False,
            "excludeSlashTmp": True,
        },
    }


def test_going_back_to_the_config_is_told_too() -> None:
    """Codex would otherwise go on with what an earlier turn brought along."""
    known = facts()
    back = after(known, ("mode", "full"), ("mode", "config"))
    assert overrides(back, known) == {"approvalPolicy": "on-request", "sandboxPolicy": STARTED["sandbox"]}


def test_the_network_alone_changes_nothing_else_of_the_config() -> None:
    """In the mode that stands for config.toml."""
    known = facts(approvalPolicy="never")
    assert overrides(after(known, ("network", "on")), known) == {
        "approvalPolicy": "never",
        "sandboxPolicy": {"type": "readOnly", "networkAccess": True},
    }
    back = after(known, ("network", "on"), ("network", "off"))
    assert overrides(back, known) == {"approvalPolicy": "never", "sandboxPolicy": STARTED["sandbox"]}


def test_full_access_cannot_be_had_without_network() -> None:
    """It says so; what was chosen for the network counts again in the next mode."""
    known = facts({"sandbox_workspace_write": {"network_access": True}})
    choices = after(known, ("mode", "code"), ("network", False), ("mode", "full"))
    option = shown(choices, known)["network"]
    assert (option["currentValue"], values(option)) == ("on", ["on"])
    with pytest.raises(RemoteError, match="Choose another mode first"):
        choose(choices, known, "network", "off")
    assert shown(choose(choices, known, "mode", "ask"), known)["network"]["currentValue"] == "off"


def test_a_client_that_knows_switches_gets_one_for_the_network() -> None:
    """Either way of setting it is taken, whatever was shown."""
    known = facts()
    choices = after(known, ("network", True))
    option = shown(choices, known, SWITCHES)["network"]
    assert (option["type"], option["currentValue"], "options" in option) == ("boolean", True, False)
    assert choices == after(known, ("network", "on"))


def test_folders_of_the_client_are_writable_where_the_workspace_is() -> None:
    """Also when nothing was chosen, and nowhere else."""
    workspace = {"type": "workspaceWrite", "writableRoots": ["/mine"], "networkAccess": True}
    known = facts(roots=("/more",), sandbox=workspace)
    assert overrides(Choices(), known)["sandboxPolicy"]["writableRoots"] == ["/mine", "/more"]
    assert overrides(Choices(), known)["sandboxPolicy"]["networkAccess"] is True
    assert policy(after(known, ("mode", "ask")), known).sandbox["writableRoots"] == ["/more"]
    assert overrides(Choices(), facts(roots=("/more",))) == {}


def test_a_model_that_is_hidden_or_unknown_is_shown_only_while_it_is_in_use() -> None:
    """The one that the session began with can always be had back."""
    assert values(shown(Choices(), facts())["model"]) == ["big", "small"]
    assert values(shown(Choices(), facts(model="secret"))["model"]) == ["big", "small", "secret"]
    known = facts(model="own-model")
    away = after(known, ("model", "small"))
    assert values(shown(away, known)["model"]) == ["big", "small", "own-model"]
    assert current_model(choose(away, known, "model", "own-model"), known) == "own-model"
    assert current_model(after(facts(), ("model", "secret")), facts()) == "secret"


def test_a_new_model_does_not_inherit_an_effort_that_it_lacks() -> None:
    """Codex keeps the old one unless told; one that both have stays."""
    known = facts(reasoningEffort="xhigh")
    small = after(known, ("model", "small"))
    assert overrides(small, known) == {"model": "small", "effort": "low"}
    assert shown(small, known)["thought_level"]["currentValue"] == "low"
    both = after(facts(reasoningEffort="xhigh", model="own-model"), ("model", "big"))
    assert (both.effort, current_effort(both, known)) == (None, "xhigh")


def test_an_effort_is_offered_for_an_unknown_model_only_if_it_has_one() -> None:
    """Nothing is known of what it takes."""
    assert "thought_level" not in shown(Choices(), facts(model="own-model"))
    option = shown(Choices(), facts(model="own-model", reasoningEffort="max"))["thought_level"]
    assert (option["currentValue"], values(option)) == ("max", ["low", "medium", "high", "max"])


def test_a_personality_is_for_models_that_have_one() -> None:
    """Elsewhere it does nothing, so it is neither shown nor told."""
    known = facts()
    choices = after(known, ("personality", "friendly"), ("model", "small"))
    assert "personality" not in shown(choices, known)
    assert overrides(choices, known) == {"model": "small"}
    with pytest.raises(RemoteError, match="There is no personality none"):
        choose(choices, known, "personality", "none")


def test_what_the_config_says_is_shown_as_the_current_value() -> None:
    """Then there is no unknown default to fall back to."""
    known = facts({"personality": "pragmatic", "model_reasoning_summary": "detailed"})
    options = shown(Choices(), known)
    assert options["personality"]["currentValue"] == "pragmatic"
    assert options["reasoning_summary"]["currentValue"] == "detailed"
    assert values(options["reasoning_summary"]) == ["auto", "concise", "detailed", "none"]


def test_images_are_for_models_that_take_them() -> None:
    """One that Codex does not know may."""
    known = facts()
    assert takes_images(Choices(), known)
    assert not takes_images(after(known, ("model", "small")), known)
    assert takes_images(Choices(), facts(model="own-model"))


def test_the_modes_are_also_there_for_clients_without_options() -> None:
    """The same ones in the same order."""
    known = facts()
    choices = after(known, ("mode", "read-only"))
    state = modes(choices, known)
    assert state["currentModeId"] == "read-only"
    assert [mode["id"] for mode in state["availableModes"]] == values(shown(choices, known)["mode"])
    assert all(mode["name"] and mode["description"].endswith(".") for mode in state["availableModes"])


@pytest.mark.parametrize(
    ("config_id", "value", "said"),
    [
        ("colour", "red", "There is no option colour."),
        ("mode", "yolo", "There is no mode yolo. Choose one of: config, ask, code, read-only, full."),
        ("mode", True, "There is no mode True. Choose one of: config, ask, code, read-only, full."),
        ("mode", "kept", "There is no mode kept. Choose one of: config, ask, code, read-only, full."),
        ("model", None, "There is no model None. Choose one of: big, small."),
        ("model", "x" * 500, f"There is no model {'x' * 79}…. Choose one of: big, small."),
        ("thought_level", "low", "There is no thought level low. Choose one of: medium, xhigh."),
        (
            "reasoning_summary",
            ["auto"],
            "There is no reasoning summary of this shape. Choose one of:",
        ),
        ("network", 1, "The network is on or off, not 1."),
        ("network", "maybe", "The network is on or off, not maybe."),
        ("network", {}, "The network is on or off, not of this shape."),
    ],
)
def test_what_is_not_offered_is_refused_in_a_sentence(config_id: str, value: Any, said: str) -> None:
    """With what could be chosen instead; nothing of a long value is sent back whole."""
    with pytest.raises(RemoteError) as refused:
        choose(Choices(), facts(), config_id, value)
    assert refused.value.code == -32602
    assert refused.value.message.startswith(said)


def test_choices_are_values() -> None:
    """What was before a choice stays as it was."""
    known = facts()
    before = Choices()
    choose(before, known, "mode", "full")
    assert before == Choices()
    assert msgspec.json.decode(msgspec.json.encode(before), type=Choices) == before
