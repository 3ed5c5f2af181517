"""The model's checklist: collects its tools' calls to the steps of a plan.

Claude Code has had two forms: one call with the whole list (`TodoWrite`), and a call for each change
(`TaskCreate`, `TaskUpdate`). Which of them a model has depends on the model.
"""

from __future__ import annotations

from typing import Any

from laneway.claude.activities import ToolCall, ToolCallResult, maybe
from laneway.core.model import Plan, PlanStep

TOOLS = frozenset({"TodoWrite", "TaskCreate", "TaskUpdate"})
_STATUS: dict[str, Any] = {"pending": "pending", "in_progress": "running", "completed": "completed"}


class Checklist:
    def __init__(self) -> None:
        self._steps: dict[str, PlanStep] = {}
        """By the id of the task, in their order."""

    def take(self, turn_id: str, call: ToolCall, result: ToolCallResult) -> Plan | None:
        """The plan after a call that succeeded; none if that changed nothing."""
        before = dict(self._steps)
        if not result.is_error:
            match call.name:
                case "TodoWrite":
                    self._replace(call.arguments.get("todos"))
                case "TaskCreate":
                    self._create(result.details)
                case "TaskUpdate":
                    self._update(call.arguments)
        if self._steps == before:
            return None
        return Plan(turn_id=turn_id, steps=tuple(self._steps.values()))

    def _replace(self, todos: Any) -> None:
        items = [item for item in todos if isinstance(item, dict)] if isinstance(todos, list) else []
        self._steps = {
            str(number): _step(str(item.get("content", "")), item.get("status"))
            for number, item in enumerate(items)
        }

    def _create(self, details: Any) -> None:
        task = details.get("task") if isinstance(details, dict) else None
        if isinstance(task, dict) and "id" in task:
            self._steps[str(task["id"])] = _step(str(task.get("subject", "")), "pending")

    def _update(self, arguments: dict[str, Any]) -> None:
        task_id, status = str(arguments.get("taskId")), arguments.get("status")
        step = self._steps.get(task_id)
        if step is None:
            return
        if status == "deleted":
            del self._steps[task_id]
            return
        text = maybe(arguments.get("subject"), str) or step.text
        self._steps[task_id] = PlanStep(text=text, status=_STATUS.get(str(status), step.status))


def _step(text: str, status: Any) -> PlanStep:
    return PlanStep(text=text, status=_STATUS.get(str(status), "pending"))
