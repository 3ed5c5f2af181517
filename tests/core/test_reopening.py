"""Sessions that are opened again: set as they were, and never with more access than they had."""

from __future__ import annotations

import os
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from laneway.base.clock import LoopClock
from laneway.codex.models import models
from laneway.core import access
from laneway.core.access import Permit, whole
from laneway.core.editor_sessions import Defaults
from laneway.core.hub import Hub
from laneway.core.ports import TextPart, ThreadSpec, TurnSpec
from laneway.core.session import Session
from laneway.core.session_settings import Choices, Facts, defaults, policy
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.sessions.options import choose, render
from laneway.testing.rehearse import rehearsal
from tests.doors.acp.access import CONFIGS, PERMITS, configured, opened, overrides, powers, reopened

MODELS = models(
    {
        "model": model,
        "supportedReasoningEfforts": [{"reasoningEffort": effort} for effort in efforts],
        "defaultReasoningEffort": efforts[0],
    }
    for model, efforts in {"big": ["medium", "high"], "small": ["low", "medium"]}.items()
)
READ_ONLY = whole(None)
WORKSPACE = whole({"type": "workspaceWrite"})
FULL = {"type": "dangerFullAccess"}
CODE = Permit("on-request", WORKSPACE)
CEILINGS = {
    "ask": Permit("untrusted", WORKSPACE),
    "code": CODE,
    "read-only": Permit("on-request", READ_ONLY),
    "full": Permit("never", FULL),
}


class Codex:
    """What the real one does with settings: keeps them over turns, and all but one over a restart."""

    def __init__(self, config: dict[str, Any], *, is_trusted: bool) -> None:
        self.config = config
        self._trusted = {"type": "workspaceWrite"} if is_trusted else {"type": "readOnly"}
        self.has: dict[str, Any] = {"model": "big", "effort": None}
        self.has |= {"approvalPolicy": self._configured.approval, "sandboxPolicy": self._configured.sandbox}

    @property
    def _configured(self) -> Permit:
        return configured(self.config, Permit("on-request", whole(self._trusted)))

    def turn(self, overrides: dict[str, Any]) -> None:
        self.has |= overrides

    def restart(self) -> None:
        if self.has["sandboxPolicy"]["type"] == "workspaceWrite":  # probed: 0.163 takes config.toml's instead
            self.has["sandboxPolicy"] = self._configured.sandbox

    def answer(self) -> dict[str, Any]:
        return {
            "model": self.has["model"],
            "reasoningEffort": self.has["effort"],
            "approvalPolicy": self.has["approvalPolicy"],
            "sandbox": self.has["sandboxPolicy"],
        }

    @property
    def permit(self) -> Permit:
        return Permit(self.has["approvalPolicy"], self.has["sandboxPolicy"])


class Sitting(RuleBasedStateMachine):
    """One session over many choices, turns, restarts and edits of config.toml."""

    @initialize(config=CONFIGS, is_trusted=st.booleans())
    def new(self, config: dict[str, Any], is_trusted: bool) -> None:
        self.codex = Codex(config, is_trusted=is_trusted)
        self.facts: Facts = opened(self.codex.answer(), MODELS, config)
        self.choices = Choices()
        self.begun_with = self.codex.permit
        self.has_begun_here = True
        self.sent: Permit | None = None

    def shown(self) -> dict[str, dict[str, Any]]:
        return {option["id"]: option for option in render(self.choices, self.facts, EditorClient())}

    @rule(data=st.data())
    def pick(self, data: st.DataObject) -> None:
        """Whatever is offered can be had."""
        option = data.draw(st.sampled_from(list(self.shown().values())))
        value = data.draw(st.sampled_from([each["value"] for each in option["options"]]))
        self.choices = choose(self.choices, self.facts, option["id"], value)
        assert self.shown()[option["id"]]["currentValue"] == value

    @rule()
    def prompt(self) -> None:
        """What Codex then has is what is shown."""
        self.codex.turn(overrides(self.choices, self.facts))
        self.sent = policy(self.choices, self.facts)
        now = {config_id: option["currentValue"] for config_id, option in self.shown().items()}
        assert self.codex.permit == self.sent
        assert self.codex.has["model"] == now["model"]
        efforts = {model.model: model.default_effort for model in MODELS}
        assert (self.codex.has["effort"] or efforts[now["model"]]) == now["thought_level"]
        assert ("network" in powers(self.codex.permit)) == (now["network"] == "on")

    @rule(config=CONFIGS)
    def edit(self, config: dict[str, Any]) -> None:
        """The user changes config.toml; an open session goes on as it is."""
        self.codex.config = config

    @rule()
    def restart(self) -> None:
        before = powers(policy(self.choices, self.facts))
        self._reopen()
        assert powers(policy(self.choices, self.facts)) <= before

    @rule(elsewhere=PERMITS)
    def use_elsewhere(self, elsewhere: Permit) -> None:
        """Another program runs the thread with an access of its own, then it is opened here again."""
        before = powers(policy(self.choices, self.facts))
        self.codex.turn({"approvalPolicy": elsewhere.approval, "sandboxPolicy": elsewhere.sandbox})
        self._reopen()
        assert powers(policy(self.choices, self.facts)) <= before

    @precondition(lambda self: not self.has_begun_here)
    @rule()
    def forget(self) -> None:
        """The record is lost: it opens like a thread of others, with what Codex says that it has."""
        self.codex.restart()
        self.facts, self.choices = reopened(self.codex.answer(), MODELS, self.codex.config, None)
        self.sent = None
        assert overrides(self.choices, self.facts) == {}
        assert policy(self.choices, self.facts) == self.codex.permit

    def _reopen(self) -> None:
        kept = msgspec.json.encode(defaults(self.choices, self.facts, sent=self.sent))
        self.codex.restart()
        record = msgspec.json.decode(kept, type=Defaults)
        self.facts, self.choices = reopened(self.codex.answer(), MODELS, self.codex.config, record)
        self.has_begun_here, self.sent = False, None

    @invariant()
    def nothing_is_wider_than_the_mode_shown(self) -> None:
        """The network and the user's own settings of the workspace aside."""
        mode = self.shown()["mode"]["currentValue"]
        own = {"network", "/a", "/a/b", "/c"}
        allowed = powers(policy(self.choices, self.facts)) - own
        if mode in CEILINGS:
            assert allowed == powers(CEILINGS[mode]) - own
        elif mode == "config" and self.has_begun_here:
            assert allowed == powers(self.begun_with) - own
        elif mode == "config":
            said = self.codex_said()
            assert said is None or allowed <= powers(said) - own

    def codex_said(self) -> Permit | None:
        """What config.toml said when the session was opened again, if it said all of it."""
        config = self.facts.config
        if not (config.sandbox and config.approval):
            return None
        return access.configured(config, Permit("never", FULL))


TestSitting = pytest.mark.chaos(Sitting.TestCase)
TestSitting.settings = settings(
    max_examples=300 if os.environ.get("LANEWAY_CHAOS") else 75, stateful_step_count=20
)


def recorded(choices: Choices, config: dict[str, Any], running: Permit) -> Defaults:
    """Of a session that ran a turn with these choices."""
    answer = {"approvalPolicy": running.approval, "sandbox": running.sandbox, "model": "big"}
    facts = opened(answer, MODELS, config)
    return defaults(choices, facts, sent=policy(choices, facts))


def again(
    running: Permit, config: dict[str, Any], record: Defaults | None
) -> tuple[str, Permit, dict[str, Any]]:
    """The mode that is shown, what it comes to, and what Codex is told."""
    answer = {"approvalPolicy": running.approval, "sandbox": running.sandbox, "model": "big"}
    facts, choices = reopened(answer, MODELS, config, record)
    return choices.mode, policy(choices, facts), overrides(choices, facts)


def test_a_chosen_mode_comes_back_though_codex_forgot_it() -> None:
    """Codex took config.toml's sandbox, which is wider or narrower; the next turn sets it right."""
    record = recorded(Choices(mode="code", model="small", effort="low", is_set=True), {}, CODE)
    for mode, running in (("danger-full-access", FULL), ("read-only", READ_ONLY), (None, READ_ONLY)):
        shown, allowed, told = again(Permit("on-request", running), {"sandbox_mode": mode}, record)
        assert (shown, allowed) == ("code", CODE)
        assert told == {
            "model": "small",
            "effort": "low",
            "approvalPolicy": "on-request",
            "sandboxPolicy": WORKSPACE,
        }


def test_a_narrower_config_holds_for_a_session_that_follows_it() -> None:
    """Codex alone would go on with what the thread had."""
    had = Permit("never", FULL)
    config = {"sandbox_mode": "read-only", "approval_policy": "on-request"}
    narrow = Permit("on-request", READ_ONLY)
    record = recorded(Choices(), {"sandbox_mode": "danger-full-access", "approval_policy": "never"}, had)
    assert again(had, config, record) == (
        "config",
        narrow,
        {"approvalPolicy": "on-request", "sandboxPolicy": READ_ONLY},
    )


def test_a_wider_config_does_not_widen_a_session_that_was_narrow() -> None:
    """It shows what it had; the configured access is one choice away."""
    had = Permit("untrusted", READ_ONLY)
    config = {"sandbox_mode": "danger-full-access", "approval_policy": "never"}
    record = recorded(Choices(), {"sandbox_mode": "read-only", "approval_policy": "untrusted"}, had)
    answer = {"approvalPolicy": "untrusted", "sandbox": READ_ONLY, "model": "big"}
    facts, choices = reopened(answer, MODELS, config, record)
    assert (choices.mode, policy(choices, facts), overrides(choices, facts)) == ("kept", had, {})
    option = render(choices, facts, EditorClient())[0]
    assert option["options"][-1] == {
        "value": "kept",
        "name": "As this session was",
        "description": "What it had when it was last used:"
        " read-only, asks before everything untrusted, no network.",
    }
    assert policy(choose(choices, facts, "mode", "config"), facts) == Permit("never", FULL)


def test_a_session_that_others_narrowed_stays_narrow() -> None:
    """It was used read-only elsewhere, which is not what config.toml says: somebody chose that."""
    record = recorded(Choices(mode="code", is_set=True), {}, CODE)
    narrow = Permit("on-request", READ_ONLY)
    shown, allowed, _ = again(narrow, {"sandbox_mode": "workspace-write"}, record)
    assert (shown, allowed) == ("read-only", narrow)


def test_a_network_that_others_went_without_is_not_given_back() -> None:
    """Though it was chosen here. No turn was run since the session was opened, which is no difference."""
    had = Permit("on-request", WORKSPACE)
    answer = {"approvalPolicy": had.approval, "sandbox": had.sandbox, "model": "big"}
    facts = opened(answer, MODELS, {})
    record = defaults(Choices(network=True, is_set=True), facts, sent=None)
    narrow = Permit("untrusted", READ_ONLY)
    shown, allowed, _ = again(narrow, {"sandbox_mode": "workspace-write"}, record)
    assert (shown, allowed) == ("kept", narrow)


def test_an_access_of_its_own_is_kept_over_many_restarts() -> None:
    """Until another is chosen; from the next restart on it is no longer offered."""
    own = Permit("never", READ_ONLY)
    config = {"sandbox_mode": "workspace-write", "approval_policy": "on-request"}
    answer = {"approvalPolicy": own.approval, "sandbox": own.sandbox, "model": "big"}
    facts, choices = reopened(answer, MODELS, config, None)
    for _ in range(2):
        assert (choices.mode, policy(choices, facts)) == ("kept", own)
        facts, choices = reopened(answer, MODELS, config, defaults(choices, facts, sent=None))
    away = choose(choices, facts, "mode", "code")
    assert choose(away, facts, "mode", "kept").mode == "kept"
    facts, choices = reopened(answer, MODELS, config, defaults(away, facts, sent=None))
    assert (choices.mode, facts.kept) == ("code", None)


def test_what_the_config_leaves_open_is_remembered_from_the_beginning() -> None:
    """Codex decided it when the thread was new; now that it has full access nobody can see it."""
    record = recorded(Choices(mode="full", is_set=True), {}, CODE)
    answer = {"approvalPolicy": "never", "sandbox": FULL, "model": "big"}
    facts, choices = reopened(answer, MODELS, {}, record)
    assert choices.mode == "full"
    assert policy(choose(choices, facts, "mode", "config"), facts) == CODE


@pytest.mark.parametrize(
    ("running", "config", "mode"),
    [
        (CODE, {}, "config"),
        (CODE, {"sandbox_mode": "read-only"}, "code"),
        (Permit("never", FULL), {}, "full"),
        (Permit("never", FULL), {"sandbox_mode": "danger-full-access", "approval_policy": "never"}, "config"),
        (Permit("never", FULL), {"sandbox_mode": "workspace-write"}, "full"),
        (Permit("never", READ_ONLY), {"approval_policy": "on-request"}, "kept"),
        (Permit("never", READ_ONLY), {}, "kept"),
        (Permit("on-request", FULL), {}, "kept"),
        (Permit("on-request", WORKSPACE | {"networkAccess": True}), {"sandbox_mode": "read-only"}, "code"),
    ],
)
def test_a_thread_of_others_shows_the_mode_that_it_is_in(
    running: Permit, config: dict[str, Any], mode: str
) -> None:
    """It goes on with what Codex says that it has, and Codex is told nothing."""
    assert again(running, config, None) == (mode, running, {})


@pytest.mark.parametrize(
    ("last", "allowed"),
    [
        ({"approvalPolicy": "on-request", "sandbox": {"type": "workspaceWrite"}}, CODE),
        ({"approvalPolicy": "never", "sandbox": FULL}, Permit("never", FULL)),
        ({}, Permit("on-request", READ_ONLY)),
    ],
    ids=["its record says less", "its record says the same", "its record says nothing"],
)
def test_a_thread_of_others_has_no_more_than_its_last_turn(last: dict[str, Any], allowed: Permit) -> None:
    """Codex forgot that it could only write in its workspace, and takes config.toml's access for it."""
    config = {"sandbox_mode": "danger-full-access", "approval_policy": "never"}
    answer = {"approvalPolicy": "never", "sandbox": FULL, "model": "big"}
    facts, choices = reopened(answer, MODELS, config, None, last=last)
    assert policy(choices, facts) == allowed


def test_a_record_that_makes_no_sense_gives_no_access() -> None:
    """A mode of another version, and a policy without a sandbox."""
    record = Defaults(mode="turbo", approval_policy="never", sandbox_policy={}, is_set=True)
    config = {"sandbox_mode": "danger-full-access", "approval_policy": "never"}
    shown, allowed, told = again(Permit("never", FULL), config, record)
    assert (shown, allowed) == ("kept", Permit("never", READ_ONLY))
    assert told["sandboxPolicy"] == READ_ONLY


def test_a_profile_of_the_users_own_is_the_configured_access() -> None:
    """After another mode it is named again, because no sandbox says as much."""
    config = {"default_permissions": "mine"}
    answer = {"approvalPolicy": "on-request", "sandbox": READ_ONLY, "activePermissionProfile": {"id": "mine"}}
    facts, choices = reopened(answer, MODELS, config, None)
    assert (choices.mode, overrides(choices, facts)) == ("config", {})
    back = choose(choose(choices, facts, "mode", "code"), facts, "mode", "config")
    assert overrides(back, facts) == {"approvalPolicy": "on-request", "permissions": "mine"}


async def _turn(session: Session, choices: Choices, facts: Facts, text: str) -> str:
    turn = session.say(TurnSpec(parts=(TextPart(text),), native=overrides(choices, facts)))
    return (await turn.result()).status


async def test_the_real_codex_takes_every_mode_and_does_not_widen_a_session() -> None:
    """Config.toml allows everything; a session in `code` has it no more after a restart than before."""
    wide = 'sandbox_mode = "danger-full-access"\napproval_policy = "never"\n'
    async with rehearsal() as here:
        path = here.home / "config.toml"
        path.write_text(wide + path.read_text())
        config = {"sandbox_mode": "danger-full-access", "approval_policy": "never"}
        outside = here.home.parent / "outside"
        async with Hub(here.engine, LoopClock()) as hub:
            session = await hub.start("me", ThreadSpec(cwd=here.work))
            facts = opened(session.info.native, await here.engine.models(), config)
            assert facts.configured == Permit("never", FULL)
            choices = Choices()
            for mode in ("full", "read-only", "ask", "config", "code"):
                choices = choose(choices, facts, "mode", mode)
                assert await _turn(session, choices, facts, "%say Hello.") == "completed"
            record = defaults(choices, facts, sent=policy(choices, facts))
        other = here.another_engine()
        try:
            async with Hub(other, LoopClock()) as hub:
                session = await hub.resume("me", session.info.thread_id, ThreadSpec(cwd=here.work))
                facts, choices = reopened(session.info.native, facts.models, config, record)
                assert (choices.mode, policy(choices, facts)) == ("code", CODE)
                say = f"%run touch inside {outside}"
                assert await _turn(session, choices, facts, say) == "completed"
        finally:
            await other.aclose()
        assert ((here.work / "inside").exists(), outside.exists()) == (True, False)
