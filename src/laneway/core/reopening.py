"""A session that is opened again: what it was set to, and never more access than it had.

Codex brings back what the thread's last turn had, except for one sandbox: where the workspace
may be written it takes config.toml's instead (0.163), which may be wider. So what the session
had is taken from its record. Pure: how the engine would run it and what was recorded, to values.
"""

from __future__ import annotations

import msgspec

from laneway.core import access
from laneway.core.access import CONFIG, KEPT, MODES, FolderConfig, Permit
from laneway.core.editor_sessions import Defaults
from laneway.core.models import Model
from laneway.core.offers import ThreadState
from laneway.core.session_settings import Choices, Facts, chosen, opened


def reopened(
    state: ThreadState,
    models: tuple[Model, ...],
    config: FolderConfig,
    defaults: Defaults | None,
    roots: tuple[str, ...] = (),
    *,
    last: Permit | None = None,
) -> tuple[Facts, Choices]:
    """Of a thread that was resumed or forked; no defaults: one that others started.

    `last` is what the thread's last turn had, where only the engine's own record tells.
    """
    facts = opened(state, models, config, roots)
    running = facts.running
    recorded = defaults or Defaults()
    configured = access.configured(config, _whole(recorded.configured) or _guess(running))
    facts = msgspec.structs.replace(facts, configured=configured)
    if defaults is None:
        allowed = running if last is None else access.narrower(running, last)
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
        return facts.config.is_sandbox_set and running.sandbox != facts.configured.sandbox
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
