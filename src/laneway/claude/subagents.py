"""The subagents of one thread: a translator for each, whose events are wrapped with the agent's id.

Claude Code marks what a subagent does with the id of the call that started it, and reports its start and
end as a task. A subagent in the background outlives the turn that started it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from laneway.base.errors import EngineLost
from laneway.claude.process import StreamEvent
from laneway.claude.translate import MessageTranslator
from laneway.core.model import Event, Failure, FromSubagent, Status, UserSaid

AGENT_TASK = "local_agent"
_STATUS: dict[str, Status] = {"completed": "completed", "failed": "failed"}


class SubagentReader:
    def __init__(
        self, agent_id: str, parent_id: str, emit: Callable[[Event], None], cwd: str, declined: set[str]
    ) -> None:
        self.agent_id = agent_id
        self.parent_id = parent_id
        self._emit = emit
        self.translator = MessageTranslator(self._wrap, cwd, declined)
        self.runs = 0
        self.is_in_background = False

    def begin(self) -> None:
        """Begin a turn, unless one is running: an agent can be given further work after its end."""
        if self.translator.turn_id is None:
            self.runs += 1
            self.translator.begin(f"{self.agent_id}/{self.runs}")

    def say(self, text: str, item_id: str) -> None:
        turn_id = self.translator.turn_id
        if turn_id is not None:
            self._wrap(UserSaid(turn_id=turn_id, item_id=item_id, text=text))

    def _wrap(self, event: Event) -> None:
        self._emit(
            FromSubagent(thread_id=self.agent_id, parent_id=self.parent_id, inner=event, frame=event.frame)
        )


class Subagents:
    def __init__(self, emit: Callable[[Event], None], thread_id: str, cwd: str, declined: set[str]) -> None:
        """`declined`: as for `MessageTranslator`."""
        self._emit = emit
        self._declined = declined
        self._thread_id = thread_id
        self._cwd = cwd
        self._by_call: dict[str, SubagentReader] = {}
        """By the id of the call that started it."""

    def agent_of(self, agent_id: str | None) -> SubagentReader | None:
        return next((each for each in self._by_call.values() if each.agent_id == agent_id), None)

    def stream(self, call_id: str, event: StreamEvent, frame: bytes) -> None:
        agent = self._by_call.get(call_id)
        if agent is not None:
            agent.begin()
            agent.translator.stream(event, frame)

    def message(self, call_id: str, message: dict[str, Any], frame: bytes) -> None:
        """A message that a subagent sent or got."""
        agent = self._agent(call_id, str(message.get("agent_id") or call_id))
        agent.begin()
        prompt = _prompt(message)
        if prompt is not None:
            agent.say(prompt, str(message.get("uuid")))
        else:
            agent.translator.message(message, frame)

    def task(self, message: dict[str, Any]) -> bool:
        """The start or the end of a task; false if it is no agent's."""
        call_id = str(message.get("tool_use_id"))
        match message.get("subtype"):
            case "task_started" if message.get("task_type") == AGENT_TASK:
                agent = self._agent(call_id, str(message.get("task_id")))
                agent.is_in_background = message.get("is_backgrounded") is True
                agent.begin()
                return True
            case "task_notification" if call_id in self._by_call:
                self._finish(self._by_call[call_id], message)
                return True
        return False

    def _finish(self, agent: SubagentReader, message: dict[str, Any]) -> None:
        status = _STATUS.get(str(message.get("status")), "interrupted")
        summary = str(message.get("summary") or "")
        failure = Failure(kind="other", message=summary) if status == "failed" else None
        agent.translator.finish(status, failure)

    def end_turn(self, status: Status) -> None:
        """The thread's own turn is over: what did not go to the background is over, too."""
        for agent in self._by_call.values():
            if not agent.is_in_background:
                agent.translator.finish("completed" if status == "completed" else "interrupted")

    def lost(self, loss: EngineLost) -> None:
        for agent in self._by_call.values():
            agent.translator.lost(loss)
        self._by_call.clear()

    def _agent(self, call_id: str, agent_id: str) -> SubagentReader:
        agent = self._by_call.get(call_id)
        if agent is None:
            parents = [each for each in self._by_call.values() if each.translator.call(call_id) is not None]
            parent_id = parents[0].agent_id if parents else self._thread_id
            agent = self._by_call[call_id] = SubagentReader(
                agent_id, parent_id, self._emit, self._cwd, self._declined
            )
        return agent


def _prompt(message: dict[str, Any]) -> str | None:
    """The text of a message that gives a subagent its work; none if it is another message."""
    if message.get("type") != "user":
        return None
    try:
        content = msgspec.convert(message["message"]["content"], list[dict[str, Any]])
    except (KeyError, TypeError, msgspec.ValidationError):
        return None
    texts = [str(block.get("text")) for block in content if block.get("type") == "text"]
    return "\n".join(texts) if texts and len(texts) == len(content) else None
