"""A hand-driven engine that plays rehearsal scripts by itself: what `EngineKit` and demos run on.

Each line of a prompt that begins with `%` is a step, as in a rehearsal; commands really run, files are
really edited. Threads are kept in a `PlayedStore`, so that another engine on it finds them again.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.errors import EngineLost, QuestionGone, ThreadUnknown
from laneway.core.abilities import check_fork, check_turn
from laneway.core.model import (
    Accepted,
    Activity,
    Answer,
    Asked,
    Choice,
    Event,
    Failure,
    Field,
    FieldOption,
    FileChange,
    Location,
    Look,
    Output,
    Question,
    Text,
    TurnDone,
    TurnStarted,
    UserSaid,
    Withdrawn,
)
from laneway.core.ports import Host, Page, Part, TextPart, ThreadInfo, ThreadList, ThreadSpec, TurnSpec
from laneway.testing.engine import HandEngine, HandThread

ONCE = Choice(choice_id="accept", label="Allow once", grants="once")
FOR_SESSION = Choice(choice_id="acceptForSession", label="Allow for this session", grants="session")
NO = Choice(choice_id="decline", label="No", grants="nothing", takes_words=True)
_KEPT = (TurnStarted, UserSaid, Text, Activity, TurnDone)
"""Events that a history has."""


class PlayedStore:
    """All threads on a disk that is none: each with its folder, its turns and what its model was given."""

    def __init__(self) -> None:
        self.turns: dict[str, list[list[Event]]] = {}
        self.inputs: dict[str, list[str]] = {}
        self.folders: dict[str, Path] = {}
        self.heard = ""
        """What the model was given last, in any thread."""


class PlayedThread(HandThread):
    """One thread. Its turns are tasks, which end with it."""

    store: PlayedStore
    cwd: Path

    def __init__(self, thread_id: str, host: Host, *, is_obedient: bool = True) -> None:
        super().__init__(thread_id, host, is_obedient=is_obedient)
        self._playing: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._waiting: dict[str, asyncio.Future[Answer]] = {}
        self._granted: set[str] = set()
        self._steps: list[str] = []
        self._text = ""
        self._items = 0
        self._open: Activity | None = None
        """The command that runs."""

    # ── the port ───────────────────────────────────────────────────────────

    async def start_turn(self, ticket: str, spec: TurnSpec) -> str:
        self.started.append((ticket, spec))
        check_turn(self.engine_name, self.offers, spec)
        if self.refuse_with is not None:
            raise self.refuse_with
        turns = self.store.turns[self.info.thread_id]
        turns.append([])
        self.turn_id = turn_id = f"{self.info.thread_id}/{len(turns)}"
        self._text, self._items = "", 0
        self._tell(TurnStarted(turn_id=turn_id, ticket=ticket))
        self._take(ticket, spec.parts, spec.context)
        self._playing = asyncio.get_running_loop().create_task(self._play())
        return turn_id

    async def steer(self, ticket: str, turn_id: str, parts: tuple[Part, ...]) -> None:
        await super().steer(ticket, turn_id, parts)
        self._steps.clear()
        self._take(ticket, parts, "")

    async def interrupt(self, turn_id: str) -> None:
        self.interrupted.append(turn_id)
        if turn_id == self.turn_id:
            await self._stop()
            self.finish("interrupted")

    def answer(self, question_id: str, answer: Answer) -> None:
        waiting = self._waiting.get(question_id)
        if waiting is None or waiting.done():
            raise QuestionGone(question_id)
        waiting.set_result(answer)

    async def history(self, older: str | None = None, limit: int = 50, *, oldest_first: bool = False) -> Page:
        return page(self.store.turns[self.info.thread_id], older, limit, oldest_first=oldest_first)

    async def release(self) -> None:
        await self._stop()
        await super().release()

    def accept(self, ticket: str | None) -> None:
        pass  # told by `_take`, after what was said

    def die(self, how: str = "killed by SIGKILL") -> None:
        self._kill()
        if self._playing is not None:
            self._playing.cancel()
        loss = EngineLost(how, engine=self.engine_name)
        if self.turn_id is not None:
            self.finish("failed", Failure(kind="engine_lost", message=str(loss)))
        super().die(how)

    # ── playing ────────────────────────────────────────────────────────────

    def _take(self, ticket: str, parts: tuple[Part, ...], context: str) -> None:
        text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
        self._hear(*filter(None, (context, text)))
        self._steps += [line[1:] for line in text.splitlines() if line.startswith("%")]
        turn_id, item_id = self.turn_id or "", self._new_item()
        self._tell(UserSaid(turn_id=turn_id, item_id=item_id, text=text))
        self._tell(Accepted(turn_id=turn_id, client_id=ticket))

    def _hear(self, *texts: str) -> None:
        inputs = self.store.inputs.setdefault(self.info.thread_id, [])
        inputs += texts
        self.store.heard = "\n".join(inputs)

    def _tell(self, event: Event) -> None:
        if isinstance(event, _KEPT):
            self.store.turns[self.info.thread_id][-1].append(event)
        self.host.on_event(event)

    def _new_item(self) -> str:
        self._items += 1
        return f"{self.turn_id}/{self._items}"

    async def _play(self) -> None:
        while self._steps:
            verb, _, rest = self._steps.pop(0).partition(" ")
            match verb:
                case "say":
                    self._say(rest)
                case "stream":
                    await self._stream(rest)
                case "run":
                    await self._run(rest)
                case "run!":
                    await self._run_asking(rest)
                case "edit":
                    self._edit(rest)
                case "read":
                    self._read(rest)
                case "ask":
                    await self._ask(rest)
                case _:
                    self._say(f"There is no step %{verb}.")
        self.finish("completed")

    def finish(self, status: Any, failure: Failure | None = None) -> None:
        for question_id in list(self._waiting):
            self._withdraw(question_id)
        self._steps.clear()
        if self._open is not None:
            self._end_command(status="interrupted")
        turn_id, self.turn_id = self.turn_id or "", None
        self._tell(TurnDone(turn_id=turn_id, status=status, text=self._text, failure=failure))

    def _say(self, text: str) -> None:
        item_id = self._new_item()
        self._text = text
        for piece in re.findall(r"\S+\s*", text):
            self._tell(Text(turn_id=self.turn_id or "", item_id=item_id, text=piece))

    async def _stream(self, rest: str) -> None:
        count, over_s = re.findall(r"[\d.]+", rest)
        item_id, self._text = self._new_item(), ""
        for number in range(int(count)):
            word = f"word{number} "
            self._text += word
            self._tell(Text(turn_id=self.turn_id or "", item_id=item_id, text=word))
            await asyncio.sleep(float(over_s) / int(count))

    async def _run(self, command: str, item_id: str = "") -> None:
        self._open = activity = Activity(
            turn_id=self.turn_id or "",
            item_id=item_id or self._new_item(),
            kind="command",
            title=command,
            status="running",
            cwd=str(self.cwd),
            output="",
        )
        self._tell(msgspec.structs.replace(activity, output=None))
        self._process = await asyncio.create_subprocess_shell(
            command,
            cwd=self.cwd,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            text = line.decode(errors="replace")
            self._open = msgspec.structs.replace(self._open, output=f"{self._open.output}{text}")
            if self.offers.live_output:
                self._tell(Output(turn_id=activity.turn_id, item_id=activity.item_id, text=text))
        code = await self._process.wait()
        known_code = code if code or self.offers.exit_codes else None
        self._end_command(status="failed" if code else "completed", exit_code=known_code)

    def _end_command(self, **fields: Any) -> None:
        activity, self._open = self._open, None
        assert activity is not None
        if not self.offers.live_output:
            fields["late_output"] = activity.output or ""
        self._tell(msgspec.structs.replace(activity, **fields))

    async def _run_asking(self, command: str) -> None:
        item_id = self._new_item()
        if command not in self._granted:
            answer = await self._question(
                kind="command",
                message="Run this command?",
                command=command,
                item_id=item_id,
                choices=(ONCE, FOR_SESSION, NO),
            )
            if answer.choice_id == NO.choice_id:
                self._hear(answer.words)
                return
            if answer.choice_id == FOR_SESSION.choice_id:
                self._granted.add(command)
        await self._run(command, item_id)

    def _edit(self, rest: str) -> None:
        name, old, new = re.fullmatch(r"(\S+) (.*) => (.*)", rest).groups()  # type: ignore[union-attr]
        path = self.cwd / name
        lines = path.read_text().splitlines()
        at = lines.index(old)
        diff = f"@@ -{at + 1} +{at + 1} @@\n-{old}\n+{new}\n"
        path.write_text("\n".join([*lines[:at], new, *lines[at + 1 :], ""]))
        activity = Activity(
            turn_id=self.turn_id or "",
            item_id=self._new_item(),
            kind="edit",
            title=f"Edit {path.name}",
            status="running",
            changes=(FileChange(path=str(path), kind="update", diff=diff),),
            locations=(Location(path=str(path), line=at + 1),),
        )
        self._tell(activity)
        self._tell(msgspec.structs.replace(activity, status="completed"))

    def _read(self, name: str) -> None:
        path = self.cwd / name
        activity = Activity(
            turn_id=self.turn_id or "",
            item_id=self._new_item(),
            kind="read",
            title=str(path),
            status="running",
            look=Look(purpose="read", path=str(path)),
            locations=(Location(path=str(path)),),
        )
        self._tell(activity)
        self._hear(path.read_text())
        self._tell(msgspec.structs.replace(activity, status="completed"))

    async def _ask(self, rest: str) -> None:
        text, _, options = rest.partition("?")
        labels = [label.strip() for label in options.split("|")]
        field = Field(
            field_id="choice",
            header="",
            text=f"{text}?",
            options=tuple(FieldOption(label=label) for label in labels),
        )
        answer = await self._question(
            kind="input", message=field.text, fields=(field,), choices=(ONCE, NO), item_id=None
        )
        self._hear(str(answer.values))

    async def _question(self, **fields: Any) -> Answer:
        question = Question(
            question_id=f"q-{self._new_item()}",
            thread_id=self.info.thread_id,
            turn_id=self.turn_id,
            engine=self.engine_name,
            **fields,
        )
        self._waiting[question.question_id] = asyncio.get_running_loop().create_future()
        self._tell(Asked(question=question))
        answer = await self._waiting[question.question_id]
        self._withdraw(question.question_id)
        return answer

    def _withdraw(self, question_id: str) -> None:
        self._waiting.pop(question_id).cancel()
        self._tell(Withdrawn(question_id=question_id))

    # ── the end ────────────────────────────────────────────────────────────

    async def _stop(self) -> None:
        self._kill()
        if self._playing is not None:
            self._playing.cancel()
            await asyncio.wait((self._playing,))

    def _kill(self) -> None:
        """End the command and all below it, however they have left its group."""
        if self._process is None or self._process.returncode is not None:
            return
        from laneway.wire.guardian import descendants  # reads every process of the machine

        for pid in (*descendants(self._process.pid), self._process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


class PlayedEngine(HandEngine):
    """Threads that play. Whether they share a process matters only to a death."""

    def __init__(self, store: PlayedStore, *, backend: str = "codex", shares_process: bool = True) -> None:
        super().__init__(backend=backend, shares_process=shares_process)
        self.kind = PlayedThread
        self.store = store

    async def start(self, spec: ThreadSpec, host: Host) -> HandThread:
        self._begin()
        thread_id = f"played-{len(self.store.turns) + 1}"
        self.store.turns[thread_id], self.store.folders[thread_id] = [], spec.cwd
        return self._add(thread_id, host)

    async def resume(self, thread_id: str, spec: ThreadSpec, host: Host) -> HandThread:
        if thread_id not in self.store.turns:
            raise ThreadUnknown(thread_id, engine=self.name)
        return await super().resume(thread_id, spec, host)

    async def fork(self, thread_id: str, spec: ThreadSpec, host: Host) -> HandThread:
        check_fork(self.name, self.offers)
        copy_id = f"{thread_id}-copy-{len(self.store.turns)}"
        self.store.turns[copy_id] = [list(turn) for turn in self.store.turns[thread_id]]
        self.store.inputs[copy_id] = list(self.store.inputs.get(thread_id, ()))
        self.store.folders[copy_id] = spec.cwd
        return self._add(copy_id, host)

    async def list_threads(
        self, *, cwd: Path | None = None, cursor: str | None = None, limit: int = 50
    ) -> ThreadList:
        found = [
            ThreadInfo(thread_id=thread_id, cwd=str(folder))
            for thread_id, folder in self.store.folders.items()
            if cwd in (None, folder)
        ]
        return ThreadList(tuple(found[:limit]), None)

    async def aclose(self) -> None:
        for thread in self.threads.values():
            if isinstance(thread, PlayedThread):
                await thread.release()
        await super().aclose()

    def _add(self, thread_id: str, host: Host) -> HandThread:
        thread = super()._add(thread_id, host)
        assert isinstance(thread, PlayedThread)
        thread.store, thread.cwd = self.store, self.store.folders[thread_id]
        return thread


def page(turns: list[list[Event]], older: str | None, limit: int, *, oldest_first: bool) -> Page:
    """A page of turns; its cursor is the number of turns that were told already."""
    told = int(older or 0)
    if oldest_first:
        chosen = turns[told : told + limit]
    else:
        end = len(turns) - told
        chosen = turns[max(0, end - limit) : end]
    is_last = told + len(chosen) >= len(turns)
    events = tuple(event for turn in chosen for event in _joined(turn))
    return Page(events, None if is_last else str(told + limit))


def _joined(turn: list[Event]) -> list[Event]:
    """A turn without tickets, with the pieces of each text joined and only the ends of its activities."""
    events: list[Event] = []
    for event in turn:
        last = events[-1] if events else None
        if isinstance(event, Text) and isinstance(last, Text) and last.item_id == event.item_id:
            events[-1] = msgspec.structs.replace(last, text=last.text + event.text)
        elif isinstance(event, TurnStarted):
            events.append(msgspec.structs.replace(event, ticket=None))
        elif not (isinstance(event, Activity) and event.status == "running"):
            events.append(event)
    return events
