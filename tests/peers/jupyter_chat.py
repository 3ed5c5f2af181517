"""A chat of JupyterLab without the browser: its manager, its persona, its document. Run by `test_jupyter.py`.

Runs on the packages of a fetched folder alone and knows nothing of Laneway. `jupyter_chat.py FOLDER STEPS`:
FOLDER holds `.jupyter/personas`, STEPS is JSON: a list of `{"say": TEXT, "choose": OPTION}`, which clicks a
button of whatever is asked meanwhile, and of `{"say": TEXT, "stop": TITLE}`, that stops it when
a call of that title is shown. Prints the chat as JSON; a chat that was there before goes on.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from jupyter_ai_persona_manager.persona_manager import PersonaManager  # type: ignore[import-not-found]
from jupyterlab_chat.models import NewMessage, User  # type: ignore[import-not-found]
from jupyterlab_chat.ychat import YChat  # type: ignore[import-not-found]

USER = "person"
FILE = "kept.chat"


class Chat:
    def __init__(self, folder: Path) -> None:
        self.file = folder / FILE
        self.document = YChat()
        self.document.initial_path = FILE
        if self.file.exists():
            self.document.set(self.file.read_text())
        self.document.set_user(User(username=USER, name=USER, display_name=USER))
        loop = asyncio.get_running_loop()
        manager = PersonaManager(chat=self.document, root_dir=str(folder), event_loop=loop)
        self.persona = next(each for each in manager.personas.values() if each.name == "Laneway")
        self.changed = asyncio.Event()
        self.document.observe(lambda *_: self.changed.set())

    async def say(self, step: dict[str, Any]) -> None:
        message = self.document.add_message(NewMessage(body=step["say"], sender=USER), trigger_actions=[])
        turn = asyncio.ensure_future(self._turn(self.document.get_message(message)))
        while not turn.done():
            news = asyncio.ensure_future(self.changed.wait())
            await asyncio.wait((turn, news), return_when=asyncio.FIRST_COMPLETED)
            news.cancel()
            self.changed.clear()
            await self._attend(step)
        await turn

    async def _turn(self, message: Any) -> None:
        try:
            await self.persona.prepare()
            await self.persona.process_message(message)
        except Exception as failure:  # noqa: BLE001 - as JupyterLab does
            await self.persona.handle_uncaught_exception(failure)

    async def _attend(self, step: dict[str, Any]) -> None:
        for call in self.calls():
            if call.get("permission_status") == "pending" and "choose" in step:
                client = await self.persona.get_client()
                client.resolve_permission(call["session_id"], call["tool_call_id"], step["choose"])
            if call["title"] == step.get("stop") and call["status"] == "in_progress":
                await self.persona.cancel_response()

    def calls(self) -> list[dict[str, Any]]:
        return [
            call
            for each in self.document.get_messages()
            for call in (each.metadata or {}).get("tool_calls", [])
        ]

    def told(self) -> dict[str, Any]:
        settings = {each.id: each.current for each in self.persona.state.settings or ()}
        return {
            "messages": [each.body for each in self.document.get_messages() if each.sender != USER],
            "calls": self.calls(),
            "commands": [each.name for each in self.persona.state.slash_commands],
            "settings": settings,
        }


async def main(folder: str, steps: str) -> None:
    chat = Chat(Path(folder))
    try:
        for step in json.loads(steps):
            await chat.say(step)
        print(json.dumps(chat.told(), default=str))
        chat.file.write_text(chat.document.get())
    finally:
        await chat.persona.shutdown()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
