"""All errors of Laneway, as one tree. An error carries facts; each front end turns it into words once.

    LanewayError
    ├── UsageError               what the user asked for cannot be done that way
    │   └── ConfigRefused        a key of Codex's config that cannot be taken (key)
    ├── BadCursor                a cursor that leads to no page of the list
    ├── TaskUnknown              no such task of an MCP client, or it belongs to somebody else
    ├── ClientFileError          another program's file cannot be read or edited (path)
    ├── SettingError             a setting is wrong (file and line or variable, key, what was expected)
    ├── ContentUnreadable        a file that a setting names cannot be read
    ├── TreeRefused              a work tree cannot be recorded, or not be changed back now (path)
    ├── ContentGone              a content that was recorded is missing or damaged (its id)
    ├── WireError
    │   ├── WireClosed           we closed this connection
    │   ├── WireBroken           the other end went away
    │   └── RemoteError          the other end answered with an error (code, message, data)
    ├── EngineError
    │   ├── BinaryError          no usable program of the engine: missing, too old, not executable
    │   ├── DiskFull             the engine cannot start: no space is left in its folder
    │   ├── NotLoggedIn          the model's provider wants a login, and nobody is logged in
    │   ├── EngineLost           the engine's process ended (exit code or signal name, its last words)
    │   │   └── EngineSilent     it did not answer in time, and was ended by us
    │   ├── EngineClosed         we ended the engine, and start no other one
    │   ├── EngineRefused        the engine answered a call with an error
    │   ├── EngineCannot         the engine does not have that ability (what)
    │   ├── ActiveWriter         another process holds the thread
    │   └── ThreadUnknown        the engine knows no such thread
    ├── StoreError               what we keep cannot be read or written (path)
    │   ├── BadName              no name for a team, an identity or a thread
    │   ├── IdentityHeld         a living process holds the identity (its pid)
    │   ├── ClaimLost            the identity is no longer ours: given up, or its lock file replaced
    │   ├── FileDamaged          not what we wrote; it is never overwritten
    │   ├── FileNewer            written by a newer version; it is never overwritten
    │   ├── TeamGone             no such team: it never was, or its owner removed it
    │   ├── MemberUnknown        nobody of that name is in the team
    │   ├── MemberForeign        somebody else registered that member
    │   ├── MailBusy             other programs held an inbox or a roster for too long
    │   ├── BadMail              a text that cannot be sent: empty, too long, or with a NUL
    │   ├── ConversationHeld     another process holds the conversation (its holder)
    │   └── ConversationUnknown  there is no such conversation
    ├── JobUnknown               no such background job, or it belongs to somebody else
    ├── NodeUnreachable          another machine that runs jobs cannot be asked now (its name, why)
    └── SessionError
        ├── SessionUnknown       no such session, or it belongs to somebody else
        ├── SessionClosed        it was closed before the call could be served
        ├── SessionStuck         the engine never ended a turn it was told to stop
        ├── IdentityTaken        the identity is bound to a live session
        ├── LimitReached         too many sessions or too many waiting turns
        ├── BudgetSpent          the session has used up its turns or its tokens
        ├── NoTurn               there is no running turn to steer or interrupt
        └── QuestionGone         the question was answered, withdrawn, or never existed

A turn that failed, was cancelled or ran out of time is a result, not an exception.
"""

from __future__ import annotations

from typing import Any

from laneway.base.engines import CODEX


class LanewayError(Exception):
    """Base of every error that Laneway raises on purpose."""


class UsageError(LanewayError):
    pass


class ConfigRefused(UsageError):
    """A key of Codex's config that is ambiguous, unreadable or not allowed. The text is one sentence."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(text)
        self.key = key


class BadCursor(LanewayError):
    def __init__(self) -> None:
        super().__init__("This cursor is not valid for this list: start again without one.")


class TaskUnknown(LanewayError):
    def __init__(self, task_id: str) -> None:
        super().__init__(f"There is no task {task_id[:200]}: it never was, has expired or is not yours.")
        self.task_id = task_id


class ClientFileError(LanewayError):
    """The text is a plain sentence with the remedy; nothing was written."""

    def __init__(self, text: str, path: str = "") -> None:
        super().__init__(text)
        self.path = path


class SettingError(LanewayError):
    """The text is one sentence that names the place, the key and what was expected."""

    def __init__(
        self, where: str, problem: str, *, line: int | None = None, key: str = "", expected: str = ""
    ) -> None:
        place = where if line is None else f"{where}, line {line}"
        super().__init__(f"{place}: {problem}")
        self.where = where
        self.line = line
        self.key = key
        self.expected = expected


class ContentUnreadable(LanewayError):
    """The text says which file and why, without a full stop."""


class TreeRefused(LanewayError):
    """The text is one sentence; nothing was written."""

    def __init__(self, text: str, path: str = "") -> None:
        super().__init__(text)
        self.path = path


class ContentGone(LanewayError):
    def __init__(self, blob: str) -> None:
        super().__init__(
            f"The recorded content {blob[:12]} is missing or damaged: it cannot be shown or given back."
        )
        self.blob = blob


class WireError(LanewayError):
    pass


class WireClosed(WireError):
    pass


class WireBroken(WireError):
    pass


class RemoteError(WireError):
    """The other end's error answer, kept whole so that a proxy can pass it on."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class EngineError(LanewayError):
    """Where the text names the engine, `engine` is that name."""


class BinaryError(EngineError):
    """No usable program of the engine. The text is one sentence with the remedy."""


class EngineLost(EngineError):
    """The engine's process ended. `how` is an exit code or a signal name in words."""

    def __init__(
        self, how: str, stderr_tail: str = "", *, engine: str = CODEX, is_shared: bool = True
    ) -> None:
        """`is_shared`: all threads of the engine ran in that process; else it was one thread's own."""
        from laneway.base.last_words import last_words  # not before an error needs it

        self.engine = engine
        self.is_shared = is_shared
        self.how = how
        self.stderr_tail = stderr_tail
        self.last_words = last_words(stderr_tail)
        """The last lines of its standard error, redacted: they may be shown to anybody."""
        super().__init__(self._sentence() + (f"; it said: {self.last_words}" if self.last_words else ""))

    def _sentence(self) -> str:
        return f"{self.engine} ended unexpectedly: {self.how}"


class EngineSilent(EngineLost):
    """`how` says which call was not answered, and how long we waited."""

    def _sentence(self) -> str:
        return f"{self.engine} does not answer, and was ended: {self.how}"


class DiskFull(EngineError):
    def __init__(self, folder: str) -> None:
        from laneway.base.disk import full_text

        super().__init__(full_text(folder))
        self.folder = folder


class NotLoggedIn(EngineError):
    def __init__(self, remedy: str = "run `laneway login`", *, engine: str = CODEX) -> None:
        where = "" if engine == CODEX else f" to {engine}"
        super().__init__(f"Nobody is logged in{where}: {remedy}")
        self.engine = engine


class EngineClosed(EngineError):
    def __init__(self) -> None:
        super().__init__("Laneway is shutting down")


class EngineRefused(EngineError):
    """`remedy` is what the user can do, as a sentence, where the engine's own message does not say it."""

    def __init__(
        self, method: str, code: int, message: str, *, engine: str = CODEX, remedy: str = ""
    ) -> None:
        super().__init__(f"{engine} refused {method}: {message}")
        self.engine = engine
        self.method = method
        self.code = code
        self.message = message
        self.remedy = remedy

    @property
    def is_unknown_method(self) -> bool:
        """Codex has no code for it: a method it does not know is an invalid request, told in words."""
        if self.code == -32601:
            return True
        return self.code == -32600 and f"unknown variant `{self.method}`" in self.message


class EngineCannot(EngineError):
    """The engine lacks an ability. `what` completes the sentence "… cannot"; `remedy` is a sentence."""

    def __init__(self, engine: str, what: str, remedy: str = "") -> None:
        super().__init__(f"{engine} cannot {what}." + (f" {remedy}" if remedy else ""))
        self.engine = engine
        self.what = what


class ActiveWriter(EngineError):
    """Another process holds the thread; reading and forking it still work."""

    def __init__(self, thread_id: str, holder_pid: int | None) -> None:
        holder = f"process {holder_pid}" if holder_pid else "another process"
        super().__init__(f"Thread {thread_id} is in use by {holder}; fork it to continue in a copy")
        self.thread_id = thread_id
        self.holder_pid = holder_pid


class ThreadUnknown(EngineError):
    def __init__(self, thread_id: str, *, engine: str = CODEX) -> None:
        super().__init__(f"{engine} has no thread {_visible(thread_id)}")
        self.engine = engine
        self.thread_id = thread_id


class StoreError(LanewayError):
    """The text is a plain sentence with the remedy."""

    def __init__(self, text: str, path: str = "") -> None:
        super().__init__(text)
        self.path = path


class BadName(StoreError):
    pass


class IdentityHeld(StoreError):
    """A living process holds the identity. The other facts are what that process wrote about itself."""

    def __init__(self, identity: str, pid: int | None, agent_id: str | None, started_at: str | None) -> None:
        holder = f"process {pid}" if pid else "another process"
        since = f" since {started_at}" if started_at else ""
        super().__init__(
            f"The identity {identity} is in use by {holder}{since}: end that process or use another identity"
        )
        self.identity = identity
        self.pid = pid
        self.agent_id = agent_id
        self.started_at = started_at


class ClaimLost(StoreError):
    pass


class FileDamaged(StoreError):
    pass


class FileNewer(StoreError):
    def __init__(self, path: str, version: int, known: int) -> None:
        super().__init__(
            f"{path} was written by a newer Laneway (format {version}; this one supports {known}). "
            "Update Laneway.",
            path,
        )
        self.version = version
        self.known = known


class TeamGone(StoreError):
    def __init__(self, team: str, path: str = "") -> None:
        super().__init__(
            f"There is no team {team}. Check the name; a team begins when its first session is started.",
            path,
        )
        self.team = team


class MemberUnknown(StoreError):
    def __init__(self, agent: str, team: str) -> None:
        super().__init__(f"Nobody called {_visible(agent)} is in the team {_visible(team)}.")
        self.agent = agent
        self.team = team


class MemberForeign(StoreError):
    """`agent` is the member, `name` the requested name: the same, or mistakable for it."""

    def __init__(self, agent: str, team: str, pid: int | None = None, *, name: str | None = None) -> None:
        who = f"process {pid}" if pid else "somebody else"
        visible_name = _visible(agent)
        like = f", and {name} could be mistaken for it" if name not in (None, agent) else ""
        super().__init__(
            f"{who.capitalize()} registered {visible_name} in the team {team}{like}. Choose another name."
        )
        self.agent = agent
        self.team = team
        self.pid = pid
        self.name = name or agent


class MailBusy(StoreError):
    def __init__(self, path: str, waited_s: float) -> None:
        super().__init__(f"Another program has kept {path} locked for {waited_s:g} s. Try again.", path)
        self.waited_s = waited_s


class BadMail(StoreError):
    pass


class ConversationHeld(StoreError):
    """`holder` is what that process wrote about itself, such as `laneway chat, process 4711`."""

    def __init__(self, conversation_id: str, holder: str) -> None:
        super().__init__(
            f"The conversation {_visible(conversation_id)} is open in {holder}: "
            "use it there, or end that first."
        )
        self.conversation_id = conversation_id
        self.holder = holder


class ConversationUnknown(StoreError):
    def __init__(self, conversation_id: str) -> None:
        super().__init__(f"There is no conversation {_visible(conversation_id) or 'with an empty id'}.")
        self.conversation_id = conversation_id


class JobUnknown(LanewayError):
    def __init__(self, job_id: str) -> None:
        super().__init__(
            f"There is no job {_visible(job_id[:100]) or 'with an empty id'}: it never existed, was removed, "
            "or is not yours."
        )
        self.job_id = job_id


class NodeUnreachable(LanewayError):
    """`why` completes the sentence; nothing is known of the machine's jobs but what was known before."""

    def __init__(self, node: str, why: str) -> None:
        super().__init__(f"{_visible(node)} is out of reach: {why}")
        self.node = node
        self.why = why


class SessionError(LanewayError):
    pass


class SessionUnknown(SessionError):
    def __init__(self, agent_id: str) -> None:
        super().__init__(f"There is no session {_visible(agent_id) or 'with an empty id'}")
        self.agent_id = agent_id


class SessionClosed(SessionError):
    pass


class SessionStuck(SessionError):
    pass


class IdentityTaken(SessionError):
    def __init__(self, identity: str, agent_id: str) -> None:
        super().__init__(f"The identity {identity} belongs to session {agent_id}")
        self.identity = identity
        self.agent_id = agent_id


class LimitReached(SessionError):
    def __init__(self, what: str, limit: int) -> None:
        super().__init__(f"No more than {limit} {what} at once")
        self.what = what
        self.limit = limit


class BudgetSpent(SessionError):
    """`what` is `turns` or `tokens`; a session may be given a budget of either."""

    def __init__(self, agent_id: str, what: str, limit: int, used: int) -> None:
        super().__init__(
            f"Session {agent_id} has used {used} of its {limit} {what}: close it, or raise max_{what}"
        )
        self.agent_id = agent_id
        self.what = what
        self.limit = limit
        self.used = used


class NoTurn(SessionError):
    pass


class QuestionGone(SessionError):
    pass


def _visible(name: str) -> str:
    """A foreign name on one line, with invisible characters spelt out."""
    from laneway.base.plain import code_label  # not before an error needs it: every program imports us

    return code_label(name)
