"""The tool by which a lane's model sends a file to the people of its conversation.

A file below the folder that git does not ignore is sent at once; for any other, a person is asked first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from laneway.base.ids import new_id
from laneway.base.plain import quoted
from laneway.core.model import Answer, Asked, Choice, Event, Question, Withdrawn
from laneway.core.tools import Caller, Tool, ToolResult
from laneway.doors.chat.files_out import read_file_out
from laneway.lanes.contract import LaneFile

NAME = "send_file"
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "The file, absolute or relative to the folder."},
        "caption": {"type": "string", "description": "A sentence that is shown with it."},
    },
    "required": ["path"],
    "additionalProperties": False,
}
_YES = Choice(choice_id="accept", label="Send it", grants="once")
_NO = Choice(choice_id="decline", label="Do not send it", grants="nothing")


class FileTool:
    """Of one lane. `tell` takes its events; `turn_id` gives the turn that runs."""

    def __init__(self, lane: str, tell: Callable[[Event], None], turn_id: Callable[[], str | None]) -> None:
        self._lane = lane
        self._tell = tell
        self._turn_id = turn_id
        self._asked: dict[str, asyncio.Future[Answer]] = {}

    def tool(self, cwd: Path) -> Tool:
        async def send(caller: Caller, arguments: Mapping[str, Any]) -> ToolResult:
            return await self._send(cwd, str(arguments["path"]), str(arguments.get("caption", "")))

        return Tool(
            name=NAME,
            description=(
                "Send a file to the people of this conversation, such as a chart, a report or an archive:"
                " they see it in their chat and can save it. At most 20 MB. For a file outside of the"
                " folder, or one that git ignores, they are asked first."
            ),
            schema=_SCHEMA,
            handler=send,
            title="Send a file",
        )

    def answer(self, question_id: str, answer: Answer) -> bool:
        """Whether the question was one of this tool."""
        asked = self._asked.get(question_id)
        if asked is None:
            return False
        if not asked.done():
            asked.set_result(answer)
        return True

    async def _send(self, cwd: Path, named: str, caption: str) -> ToolResult:
        file = await asyncio.to_thread(read_file_out, named, cwd)
        is_approved = False
        if file.needs_approval:
            if not await self._is_allowed(named, file.problem):
                return ToolResult("The file was not sent: the person said no.", is_error=True)
            is_approved = True
            file = await asyncio.to_thread(read_file_out, named, cwd, is_approved=True)
        turn_id = self._turn_id()
        if file.problem or turn_id is None:
            return ToolResult(file.problem or "The turn is over.", is_error=True)
        self._tell(LaneFile(turn_id=turn_id, path=file.path, caption=caption, is_approved=is_approved))
        return ToolResult(f"{quoted(file.path)} was sent.")

    async def _is_allowed(self, named: str, problem: str) -> bool:
        question = Question(
            question_id=new_id("file"),
            kind="tool",
            thread_id="",
            turn_id=self._turn_id(),
            item_id=None,
            message=f"Send a file? {problem}",
            choices=(_YES, _NO),
            tool=NAME,
            arguments={"path": named},
            engine=self._lane,
        )
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asked[question.question_id] = answer
        self._tell(Asked(question=question))
        try:
            return (await answer).choice_id == _YES.choice_id
        finally:
            del self._asked[question.question_id]
            self._tell(Withdrawn(question_id=question.question_id))
