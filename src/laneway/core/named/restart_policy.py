"""Whether an engine's process that died may be replaced, depending on whether a caller has seen the error.

Under the policy `reported`, one caller gets the error before the engine is started again. It is about a
process that all threads share; where each thread has its own, a dead one is replaced by the next call.
"""

from __future__ import annotations

from laneway.base.errors import EngineLost, LanewayError
from laneway.core.engines import Engines
from laneway.core.named.rules import Restart, after_death
from laneway.core.ports import Engine
from laneway.core.turn import TurnResult


class RestartPolicy:
    """Decides before each call to one engine whether its dead process is replaced."""

    def __init__(self, engine: Engine, policy: Restart) -> None:
        self._engine = engine
        self._policy = policy
        self._is_reported = False
        # From now on the engine replaces a dead process only if we say so.
        engine.renews = policy == "always" or not engine.shares_process

    def check(self) -> None:
        """Before every call: raise `EngineLost` if the engine is dead and may not be replaced now."""
        engine = self._engine
        if not engine.shares_process:
            return
        match after_death(self._policy, engine.ended, is_reported=self._is_reported):
            case "refuse":
                self._is_reported = True
                raise EngineLost(engine.ended or "it is not running", engine.ended_stderr, engine=engine.name)
            case "renew":
                engine.renew()
                self._is_reported = False
            case "go":
                pass

    def hear(self, end: TurnResult | LanewayError) -> None:
        """Note a settled turn: its caller may have been told that the engine died."""
        failure = end.failure if isinstance(end, TurnResult) else None
        if isinstance(end, EngineLost) or (failure is not None and failure.kind == "engine_lost"):
            self._is_reported = self._engine.ended is not None


class RestartPolicies:
    """The policy of each engine of a hub."""

    def __init__(self, engines: Engines, policy: Restart) -> None:
        self._engines = engines
        self._policy = policy
        self._by_engine = {engines.default: RestartPolicy(engines.default, policy)}

    def of(self, engine: Engine) -> RestartPolicy:
        """`renews` of an engine is set when it is first asked for: before its first process starts."""
        policy = self._by_engine.get(engine)
        if policy is None:
            policy = self._by_engine[engine] = RestartPolicy(engine, self._policy)
        return policy

    def check(self, backend: str | None) -> None:
        self.of(self._engines.get(backend)).check()
