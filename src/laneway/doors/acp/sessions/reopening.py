"""A session that is opened again: what it was set to, and never more access than it had.

Codex brings back what the thread's last turn had, except for one sandbox: where the workspace
may be written it takes config.toml's instead (0.163), which may be wider. So what the session
had is taken from its record. Pure: what Codex answers and what was recorded, to values.
"""

from __future__ import annotations

from typing import Any

import msgspec

from laneway.doors.acp.sessions import modes as access
from laneway.doors.acp.sessions.models import Model
from laneway.doors.acp.sessions.modes import CONFIG, KEPT, MODES
from laneway.doors.acp.sessions.options import Choices, Facts, chosen, opened
from laneway.store.editor_sessions import Defaults, Permit


def reopened(
    answer: dict[str, Any],
    models: tuple[Model, ...],
    config: dict[str, Any],
    defaults: Defaults | None,
    roots: tuple[str, ...] = (),
    *,
    last: dict[str, Any] | None = None,
) -> tuple[Facts, Choices]:
    """From the answer to `thread/resume` or `thread/fork`; no defaults: a thread that others started.

    `last` is what the thread's last turn had, where only Codex's own record tells.
    """
    facts = opened(answer, models, config, roots)
    running = facts.running
    recorded = defaults or Defaults()
    configured = access.configured(config, _whole(recorded.configured) or _guess(running))
    facts = msgspec.structs.replace(facts, configured=configured)
    if defaults is None:
        allowed = running if last is None else access.narrower(running, access.permit(last))
        return _shown(allowed, Choices(), facts)
    had, sent = _whole(defaults.policy), _whole(defaults.sent)
    facts = msgspec.structs.replace(facts, kept=had)
    choices = _choices(defaults)
    allowed = access.narrower(chosen(choices, facts), had or running)
    if sent is not None and _is_changed(running, sent, facts):
        allowed = access.narrower(allowed, running)
    return _shown(allowed, choices, facts)


def _shown(allowed: Permit, choices: Choices, facts: Facts) -> tuple[Facts, Choices]:
    """The mode that stands for just this access: the one that was, if it still does, or another."""
    if chosen(choices, facts) == allowed:
        if choices.mode != KEPT:
            facts = msgspec.structs.replace(facts, kept=None)
        return facts, choices
    facts = msgspec.structs.replace(facts, kept=None)
    for mode in MODES:
        for network in (None, access.has_network(allowed)):
            other = msgspec.structs.replace(choices, mode=mode, network=network)
            if chosen(other, facts) == allowed:
                return facts, other
    facts = msgspec.structs.replace(facts, kept=allowed)
    return facts, msgspec.structs.replace(choices, mode=KEPT, network=None)


def _is_changed(running: Permit, sent: Permit, facts: Facts) -> bool:
    """Whether somebody else has used the thread since, with another access."""
    if running == sent:
        return False
    is_same_else = running.approval == sent.approval and running.profile == sent.profile
    if is_same_else and sent.sandbox["type"] == access.WORKSPACE:
        # Codex forgot it and took config.toml's. If that says nothing, what it took tells nothing.
        is_told = access.has_sandbox(facts.config)
        return is_told and running.sandbox != facts.configured.sandbox
    return True


def _choices(defaults: Defaults) -> Choices:
    recorded = {name: getattr(defaults, name) for name in Choices.__struct_fields__}
    choices = Choices(**recorded)
    is_known = choices.mode in MODES or (choices.mode == KEPT and defaults.policy is not None)
    return choices if is_known else msgspec.structs.replace(choices, mode=CONFIG, network=None)


def _whole(permit: Permit | None) -> Permit | None:
    return permit and msgspec.structs.replace(permit, sandbox=access.whole(permit.sandbox))


def _guess(running: Permit) -> Permit:
    """What Codex makes of a config.toml that says nothing. It comes to no more access than this by itself."""
    is_likely = running.profile is not None or running.sandbox["type"] in (access.READ_ONLY, access.WORKSPACE)
    approval = "on-request" if running.approval == "never" else running.approval
    return Permit(approval, running.sandbox if is_likely else access.whole(None), running.profile)
