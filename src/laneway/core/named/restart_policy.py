"""Whether a Codex process that died may be replaced, depending on whether a caller has seen the error.

Under the policy `reported`, one caller gets the error before Codex is started again.
"""

from __future__ import annotations

from laneway.base.errors import EngineLost, LanewayError
from laneway.core.named.rules import Restart, after_death
from laneway.core.ports import Engine
from laneway.core.turn import TurnResult


class RestartPolicy:
    """Decides before each call whether a dead engine is replaced."""

    def __init__(self, engine: Engine, policy: Restart) -> None:
        self._engine = engine
        self._policy = policy
        self._is_reported = False
        # From now on the engine replaces a dead process only if we say so.
        engine.renews = policy == "always"

    def check(self) -> None:
        """Before every call: raise `EngineLost` if Codex is dead and may not be replaced now."""
        engine = self._engine
        match after_death(self._policy, engine.ended, is_reported=self._is_reported):
            case "refuse":
                self._is_reported = True
                raise EngineLost(engine.ended or "it is not running", engine.ended_stderr)
            case "renew":
                engine.renew()
                self._is_reported = False
            case "go":
                pass

    def hear(self, end: TurnResult | LanewayError) -> None:
        """Note a settled turn: its caller may have been told that Codex died."""
        failure = end.failure if isinstance(end, TurnResult) else None
        if isinstance(end, EngineLost) or (failure is not None and failure.kind == "engine_lost"):
            self._is_reported = self._engine.ended is not None
