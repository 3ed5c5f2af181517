"""Settings of a session that is opened again: the recorded ones, with never more access than it had.

Codex restores the access of the thread's last turn, except for one sandbox: instead of
`workspace-write` it takes config.toml's (0.163), which may be wider. So the access comes from the
session's record. Pure: from the engine's state and the record to `Facts` and `Choices`.
"""

from __future__ import annotations

import msgspec

from laneway.core import access
from laneway.core.access import CONFIG, KEPT, MODES, FolderConfig, Permit
from laneway.core.editor_sessions import Defaults
from laneway.core.models import Model
from laneway.core.offers import ThreadState
from laneway.core.session_settings import Choices, Facts, base_policy, new_facts


def reopened(
    state: ThreadState,
    models: tuple[Model, ...],
    config: FolderConfig,
    defaults: Defaults | None,
    roots: tuple[str, ...] = (),
    *,
    last: Permit | None = None,
) -> tuple[Facts, Choices]:
    """The settings of a thread that was resumed or forked; no defaults if Laneway did not start it.

    `last` is the access of the thread's last turn, where only the engine's own record has it.
    """
    facts = new_facts(state, models, config, roots)
    running = facts.running
    recorded = defaults or Defaults()
    configured = access.configured(config, _complete(recorded.configured) or _guess(running))
    facts = msgspec.structs.replace(facts, configured=configured)
    if defaults is None:
        allowed = running if last is None else access.narrower(running, last)
        return _with_mode(allowed, Choices(), facts)
    had, sent = _complete(defaults.policy), _complete(defaults.sent)
    facts = msgspec.structs.replace(facts, kept=had)
    choices = _choices(defaults)
    allowed = access.narrower(base_policy(choices, facts), had or running)
    if sent is not None and _is_changed(running, sent, facts):
        allowed = access.narrower(allowed, running)
    return _with_mode(allowed, choices, facts)


def _with_mode(allowed: Permit, choices: Choices, facts: Facts) -> tuple[Facts, Choices]:
    """The choices with a mode for exactly this access: the recorded mode if it still fits, or another."""
    if base_policy(choices, facts) == allowed:
        if choices.mode != KEPT:
            facts = msgspec.structs.replace(facts, kept=None)
        return facts, choices
    facts = msgspec.structs.replace(facts, kept=None)
    for mode in MODES:
        for network in (None, access.has_network(allowed)):
            other = msgspec.structs.replace(choices, mode=mode, network=network)
            if base_policy(other, facts) == allowed:
                return facts, other
    facts = msgspec.structs.replace(facts, kept=allowed)
    return facts, msgspec.structs.replace(choices, mode=KEPT, network=None)


def _is_changed(running: Permit, sent: Permit, facts: Facts) -> bool:
    """Whether another program has used the thread since, with another access."""
    if running == sent:
        return False
    is_otherwise_same = running.approval == sent.approval and running.profile == sent.profile
    if is_otherwise_same and sent.sandbox["type"] == access.WORKSPACE:
        # Codex lost it and took config.toml's. Where that sets no sandbox, the difference proves nothing.
        return facts.config.is_sandbox_set and running.sandbox != facts.configured.sandbox
    return True


def _choices(defaults: Defaults) -> Choices:
    recorded = {name: getattr(defaults, name) for name in Choices.__struct_fields__}
    choices = Choices(**recorded)
    is_known = choices.mode in MODES or (choices.mode == KEPT and defaults.policy is not None)
    return choices if is_known else msgspec.structs.replace(choices, mode=CONFIG, network=None)


def _complete(permit: Permit | None) -> Permit | None:
    return permit and msgspec.structs.replace(permit, sandbox=access.whole(permit.sandbox))


def _guess(running: Permit) -> Permit:
    """Codex's access by default: a config.toml that sets nothing never grants more than this."""
    is_default = running.profile is not None or running.sandbox["type"] in (
        access.READ_ONLY,
        access.WORKSPACE,
    )
    approval = "on-request" if running.approval == "never" else running.approval
    return Permit(approval, running.sandbox if is_default else access.whole(None), running.profile)
