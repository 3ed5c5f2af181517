"""Checks of Claude Code: its version, the login, and one turn on a scripted model. Claude is optional."""

from __future__ import annotations

import time

from laneway.base.engines import CLAUDE
from laneway.base.errors import BinaryError, LanewayError
from laneway.claude import locate, version
from laneway.claude.login import LOGIN_REMEDY, is_login_missing
from laneway.claude.setup import ClaudeSetup
from laneway.cli.checks.model import Check, CheckContext, Severity, in_thread, sentence
from laneway.cli.login_claude import way_of

UNTESTED_CLAUDE = f"Use a Claude Code that is tested with this Laneway: {', '.join(version.TESTED)}."


async def look(context: CheckContext) -> list[Check]:
    settings = context.settings
    is_default = settings is not None and settings.engine == "claude"
    configured = settings.claude_bin if settings else None
    try:
        binary = locate.find(context.claude_bin, configured, context.environment)
        installed = await in_thread(lambda: version.probe(binary))
        version.check_age(installed, binary.path)
    except BinaryError as error:
        is_named = bool(context.claude_bin or configured or context.environment.get(locate.ENVIRONMENT_KEY))
        severity: Severity = "error" if is_named or is_default else "note"
        return [Check("claude", severity, str(error), f"Only needed for {CLAUDE} as an engine.")]
    spelled = version.spell(installed)
    is_tested = spelled in version.TESTED
    facts = {"version": spelled, "path": binary.path, "source": binary.source, "tested": is_tested}
    about = f"Claude Code {spelled} at {binary.path} (from {binary.source})"
    tested = "tested" if is_tested else "not tested"
    return [
        Check(
            "claude",
            "ok" if is_tested else "note",
            f"{about}, {tested} with this Laneway.",
            "" if is_tested else UNTESTED_CLAUDE,
            facts,
        ),
        await _on_login(ClaudeSetup(binary, context.environment), is_default=is_default),
        await _on_turn(context.claude_bin, configured),
    ]


async def _on_login(setup: ClaudeSetup, *, is_default: bool) -> Check:
    try:
        hello = await setup.greet()
    except LanewayError as problem:
        return Check("claude-login", "warning", sentence(str(problem)), UNTESTED_CLAUDE)
    facts = {"type": way_of(hello)}
    if not is_login_missing(hello):
        return Check("claude-login", "ok", f"Logged in to {CLAUDE} with {way_of(hello)}.", facts=facts)
    severity: Severity = "warning" if is_default else "note"
    remedy = sentence(LOGIN_REMEDY[:1].upper() + LOGIN_REMEDY[1:])
    return Check("claude-login", severity, f"Nobody is logged in to {CLAUDE}.", remedy, facts)


async def _on_turn(claude_bin: str | None, configured: str | None) -> Check:
    """A turn that the real Claude Code takes from a scripted model, in a throw-away home."""
    from laneway.app.claude import claude_place
    from laneway.app.options import ClaudeChoice
    from laneway.base.clock import LoopClock
    from laneway.core.hub import Hub
    from laneway.core.ports import TextPart, ThreadSpec, TurnSpec

    began = time.perf_counter()
    try:
        async with claude_place(ClaudeChoice(claude_bin, configured, is_rehearsal=True)) as place:
            assert place.work is not None
            async with Hub(place.engine, LoopClock()) as hub:
                session = await hub.start("doctor", ThreadSpec(cwd=place.work))
                result = await session.say(TurnSpec(parts=(TextPart("%say ready"),))).result()
    except LanewayError as problem:
        return Check("claude-turn", "warning", sentence(str(problem)), UNTESTED_CLAUDE)
    if (result.status, result.text) != ("completed", "ready"):
        why = result.failure.message if result.failure is not None else result.text
        return Check("claude-turn", "warning", sentence(f"A rehearsed turn failed: {why}"), UNTESTED_CLAUDE)
    took_s = round(time.perf_counter() - began, 1)
    return Check("claude-turn", "ok", f"A rehearsed turn took {took_s:g} s.", facts={"seconds": took_s})
