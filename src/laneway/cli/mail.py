"""`laneway mail`: team mail for people and scripts, on the files that Claude Code and ATM use.

Sending and marking need a name: `--as`, else `ATM_IDENTITY`, else the config. It must not be in use
while the command runs, so that nobody acts as a running session; any inbox may be read unmarked.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from laneway.base.errors import BadMail, StoreError, TeamGone, UsageError
from laneway.base.plain import plain
from laneway.base.settings import Settings
from laneway.cli import mail_show as show
from laneway.cli.command_settings import settings_in
from laneway.cli.live_sessions import stored_entries
from laneway.cli.session_names import ambiguous
from laneway.cli.stores import open_store
from laneway.core.named.records import AuditLine
from laneway.core.tools import Caller, ToolResult
from laneway.mail.draft import MAX_TEXT_BYTES
from laneway.mail.names import check_recipient, check_sender
from laneway.mail.places import Places
from laneway.mail.post import Post
from laneway.mail.roster import SESSION, Roster, check_may_act_as
from laneway.mail.teams import mail_team
from laneway.mail.tools import UNLIMITED, MailTools
from laneway.store import stamps
from laneway.store.store import Store

EPILOG = """\
You are --as NAME, else ATM_IDENTITY, else `identity` in your config. The team is --team, else ATM_TEAM, else
your config, else the Claude Code session that this runs in, else `default`. A name that a running session
uses, or that another program registered in the team, is refused. `read --no-mark` and `pending` change
nothing and work for every name.

exit codes: 0 done (also: kept for later, because another program holds the inbox), 1 not done, with the
            reason, 2 the command line or a setting is wrong

  laneway mail send bob "the tests are green" --as ann
  git diff | laneway mail send bob - --summary "my changes" --as ann
  laneway mail read --as ann                     unread mail, which is then marked as read
  laneway mail read --as bob --no-mark --all     look into any inbox, changing nothing
  laneway mail members --team crew --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Send and read team mail, in the files of Claude Code's teams and ATM's."
    parser.epilog = EPILOG
    below = parser.add_subparsers(title="what to do", metavar="ACTION", required=True)
    for name, add, summary in (
        ("send", _add_send, "send a message to a member of a team"),
        ("read", _add_read, "read an inbox, and mark what was read"),
        ("broadcast", _add_broadcast, "send a message to all members of a team"),
        ("pending", _add_pending, "how many messages are unread"),
        ("members", _add_members, "who is in a team"),
    ):
        inner = below.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        add(inner)
        inner.add_argument("--team", metavar="NAME", help="the team (default: see `laneway mail --help`)")
        inner.add_argument("--json", action="store_true", help="as data, for programs")


def _add_who(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--as", dest="name", metavar="NAME", help="who you are")


def _add_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("message", nargs="?", help="the text; - reads it from standard input")
    parser.add_argument("--summary", metavar="TEXT", help="one line (default: made from the text)")
    parser.add_argument(
        "--priority", choices=("urgent", "normal", "low"), help="how soon it should be looked at"
    )
    _add_who(parser)


def _add_send(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("to", metavar="TO", help="a member, member@team, or the id of a session")
    _add_words(parser)
    parser.set_defaults(run=send)


def _add_read(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="include mail that was read already")
    parser.add_argument("--no-mark", action="store_true", help="leave it unread; any name may be looked at")
    parser.add_argument("--limit", type=_count, metavar="N", help="no more than N messages")
    parser.add_argument("--since", type=_moment, metavar="TIME", help="only mail after this time (ISO 8601)")
    parser.add_argument("--from", dest="sender", metavar="NAME", help="only from this sender")
    parser.add_argument("--id", dest="message_id", metavar="ID", help="this message, read or not")
    _add_who(parser)
    parser.set_defaults(run=read)


def _add_broadcast(parser: argparse.ArgumentParser) -> None:
    _add_words(parser)
    parser.set_defaults(run=broadcast)


def _add_pending(parser: argparse.ArgumentParser) -> None:
    _add_who(parser)
    parser.set_defaults(run=pending)


def _add_members(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=members)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of messages")
    return int(text)


def _moment(text: str) -> str:
    if stamps.parse(text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 2026-01-31T12:00:00Z")
    return text


# ── the commands ───────────────────────────────────────────────────────────


def send(options: argparse.Namespace) -> int:
    commands = MailCommands.of(options)
    arguments = {"to": commands.recipient(options.to), **_words(options)}
    with commands.claimed_name("atm_send") as caller:
        return commands.report(asyncio.run(commands.mail.send(caller, arguments)), show.sent)


def broadcast(options: argparse.Namespace) -> int:
    arguments = _words(options)
    commands = MailCommands.of(options)
    with commands.claimed_name("atm_broadcast") as caller:
        return commands.report(asyncio.run(commands.mail.broadcast(caller, arguments)), show.broadcast)


def read(options: argparse.Namespace) -> int:
    filters = {
        "all": options.all,
        "mark_read": not options.no_mark,
        "limit": options.limit,
        "since": options.since,
        "from": options.sender,
        "message_id": options.message_id,
    }
    arguments = {name: value for name, value in filters.items() if value is not None}
    commands = MailCommands.of(options)
    with commands.any_name() if options.no_mark else commands.claimed_name("atm_read") as caller:
        return commands.report(asyncio.run(commands.mail.read(caller, arguments, UNLIMITED)), show.messages)


def pending(options: argparse.Namespace) -> int:
    commands = MailCommands.of(options)
    with commands.any_name() as caller:
        return commands.report(asyncio.run(commands.mail.pending_count(caller, {})), show.pending)


def members(options: argparse.Namespace) -> int:
    commands = MailCommands.of(options)
    try:
        members = Roster(commands.places, commands.team).read().members
    except TeamGone:
        members = ()  # no team yet: nobody is in it
    rows = [show.member_row(member) for member in members]
    return commands.report(ToolResult("", data={"team": commands.team, "members": rows}), show.members)


def _words(options: argparse.Namespace) -> dict[str, Any]:
    fields = {"message": _message(options.message), "summary": options.summary, "priority": options.priority}
    return {name: value for name, value in fields.items() if value is not None}


def _message(argument: str | None) -> str:
    if argument not in (None, "-"):
        return str(argument)
    if argument is None and sys.stdin.isatty():
        raise UsageError("Say the message, or - to read it from standard input.")
    data = sys.stdin.buffer.read(MAX_TEXT_BYTES + 1)
    if len(data) > MAX_TEXT_BYTES:
        raise BadMail(
            f"The message has more than {MAX_TEXT_BYTES} bytes. Put it into a file and send its path."
        )
    try:
        return data.decode().rstrip("\n")
    except UnicodeDecodeError:
        raise BadMail("The message is not UTF-8 text. Put it into a file and send its path.") from None


# ── shared by the commands ─────────────────────────────────────────────────


class MailCommands:
    """The team, the post and the mail tools of one command."""

    def __init__(
        self, options: argparse.Namespace, settings: Settings, places: Places, team: str, store: Store
    ) -> None:
        self.places = places
        self.team = team
        self.post = Post(places)
        self.mail = MailTools(places, self.post, lambda: team, self._note)
        self._options = options
        self._settings = settings
        self._store = store

    @classmethod
    def of(cls, options: argparse.Namespace) -> MailCommands:
        """From the flags and the settings. First delivers what waits in the spool."""
        settings = settings_in({"team": options.team})
        places = Places.of()
        chosen = settings.team if settings.source("team").kind != "default" else None
        # The team of a Claude Code session is only a mail address: our records are not stored under it.
        has_store = chosen is not None and not chosen.startswith(SESSION)
        store = open_store(chosen if has_store else None)
        commands = cls(options, settings, places, mail_team(places, chosen).team, store)
        if commands.post.has_waiting():
            for lost in commands.post.drain().given_up:
                _warn(f"A message to {lost.to} was given up ({lost.message_id}): {lost.why}")
        return commands

    @contextmanager
    def claimed_name(self, what: str) -> Iterator[Caller]:
        """Claim the name for as long as the block runs."""
        name = self._name()
        try:
            claim = self._store.claim(check_sender(name))
            try:
                check_may_act_as(self.places, self.team, name)
            except BaseException:
                claim.release()
                raise
        except StoreError as problem:
            about = {"recipient": "", "message_summary": "", "outcome": f"refused: {problem}"}
            self._note(what, Caller(agent_id="", identity=name), **about)
            if what == "atm_read":
                hint = "With --no-mark you can look all the same."
                raise StoreError(f"{str(problem).rstrip('.')}. {hint}") from problem
            raise
        try:
            yield Caller(agent_id="", identity=name)
        finally:
            claim.release()

    @contextmanager
    def any_name(self) -> Iterator[Caller]:
        yield Caller(agent_id="", identity=check_recipient(self._name()))

    def recipient(self, recipient: str) -> str:
        """The recipient's name; for the id of one of our sessions, or a part of it, the session's name."""
        if self._is_member(recipient):
            return recipient
        return _by_id(self._store, recipient) or recipient

    def _is_member(self, name: str) -> bool:
        try:
            return Roster(self.places, self.team).read().member(name) is not None
        except StoreError:
            return False  # sending reports what is wrong with the team

    def _name(self) -> str:
        if self._options.name:
            return _by_id(self._store, self._options.name) or str(self._options.name)
        if self._settings.source("identity").kind == "default":
            raise UsageError("Say who you are: --as NAME, or ATM_IDENTITY, or `identity` in your config.")
        return self._settings.identity

    def report(self, result: ToolResult, render: Callable[[dict[str, Any]], str]) -> int:
        if result.is_error or result.data is None:
            # Nothing was done: the result's text says why.
            _warn(" ".join((result.text, *result.notes)))
            return 1
        if self._options.json:
            sys.stdout.write(show.as_json(self._options.run.__name__, result.data) + "\n")
        else:
            sys.stdout.write(render(result.data))
            for note in result.notes:
                _warn(note)
        sys.stdout.flush()
        return 0

    def _note(self, event_type: str, caller: Caller, **about: str) -> None:
        line = AuditLine(event_type=event_type, agent_id=None, identity=caller.identity, **about)
        try:
            self._store.audit.append(line)
        except StoreError as problem:
            _warn(f"This could not be written to the audit log. {problem}")


def _by_id(store: Store, name_or_id: str) -> str | None:
    """The name of the session with this id; None if there is none, or if it is a name itself."""
    try:
        entries = stored_entries(store, name_or_id)
    except StoreError:
        return None  # a plain name works without the store
    names = {entry.identity for entry in entries}
    if not names or name_or_id in names:
        return None
    if len(names) > 1:
        raise ambiguous(name_or_id, ((entry.agent_id, entry.identity) for entry in entries))
    return names.pop()


def _warn(text: str) -> None:
    print(f"laneway: {plain(text)}", file=sys.stderr)
