"""The `UpdateListener` of a session: passes events to its questions, settings, commands and `/undo`."""

from __future__ import annotations

from laneway.commands.last_turns import LastTurns
from laneway.core.model import TurnDone, TurnStarted
from laneway.core.stored_settings import StoredSettings
from laneway.doors.acp.questions.open_questions import OpenQuestions
from laneway.doors.acp.sessions.session_commands import SessionCommands


class SessionEvents:
    """Called on the engine's reader."""

    def __init__(
        self,
        questions: OpenQuestions,
        settings: StoredSettings,
        last_turns: LastTurns,
        commands: SessionCommands,
    ) -> None:
        self._questions = questions
        self._settings = settings
        self._last_turns = last_turns
        self._commands = commands
        self.on_question = questions.on_question
        self.on_withdrawn = questions.on_withdrawn
        self.on_gone = questions.on_gone
        self.on_edit = last_turns.add_edit
        self.on_diff = last_turns.set_diff
        self.on_thread = settings.on_thread
        self.on_settings = commands.on_settings

    def on_turn(self, event: TurnStarted | TurnDone) -> None:
        if isinstance(event, TurnStarted):
            self._settings.on_turn_started()
            self._last_turns.begin()
        else:
            self._last_turns.end(event)
            self._settings.on_turn_done()
            self._questions.drop_text_questions()
