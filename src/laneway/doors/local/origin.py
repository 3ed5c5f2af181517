"""Where a connection comes from: a terminal of the user's, or something that an agent started.

An agent's commands run as the same user and may reach the socket; what a model chooses must not see or
end other sessions. Such a connection may only open the bridge of a session of ours, with that session's
key; and so may one of which nothing can be told. What stands above ourselves does not count: then both
are the same agent's, and neither is outside of it.
"""

from __future__ import annotations

import os
import socket
from typing import Literal, NamedTuple

from laneway.doors.local.admission import has_ended, pid_of
from laneway.wire import process_tree
from laneway.wire.process_tree import Process

REMEDY = "Run it in a terminal of your own."


class Origin(NamedTuple):
    kind: Literal["terminal", "agent", "unknown"]
    agent: Process | None = None
    """The nearest one above it, if there is one."""
    is_foreign: bool = False
    """Whether that agent is known not to be one of this process."""
    is_confined: bool = False
    """Whether it is in a sandbox: Codex starts its commands there, and the bridge never."""

    @property
    def may_ask(self) -> bool:
        """See and end sessions."""
        return self.kind == "terminal"

    @property
    def may_bridge(self) -> bool:
        """Open the bridge of a session, if it has the key."""
        return not (self.is_confined or self.is_foreign)

    @property
    def refusal(self) -> str:
        """Why it may not ask, for the person who did."""
        if self.agent is not None:
            who = "Laneway" if self.agent.name == process_tree.GUARDIAN else "Codex"
            return (
                f"This command was started by an agent (below {who}, process {self.agent.pid}), and agents "
                f"may not see or end other sessions. {REMEDY}"
            )
        if self.is_confined:
            return f"This command runs in a sandbox, and may not see or end sessions. {REMEDY}"
        return (
            "It cannot be told whether an agent started this command, so it may not see or end sessions. "
            f"{REMEDY}"
        )


TERMINAL = Origin("terminal")
UNKNOWN = Origin("unknown")


def origin_of(sock: socket.socket) -> Origin:
    """To be asked when the connection is made: whoever connects may end right after."""
    pid = pid_of(sock)
    origin = of_process(pid) if pid is not None else UNKNOWN
    # Asked last: while it lives, its number was its own the whole time.
    return UNKNOWN if has_ended(sock) else origin


def of_process(pid: int) -> Origin:
    ours = os.getpid()
    above_us = {(each.pid, each.started) for each in process_tree.lineage(ours).processes}
    is_confined = process_tree.is_confined(pid)
    found = process_tree.lineage(pid)
    agent: Process | None = None
    is_told, is_below_us = found.is_whole, False
    for process in found.processes:
        if (process.pid, process.started) in above_us:
            is_told, is_below_us = True, process.pid == ours
            break
        if agent is None and process.is_agent:
            agent = process
    if agent is not None:
        is_foreign = is_told and not is_below_us
        return Origin("agent", agent, is_foreign=is_foreign, is_confined=bool(is_confined))
    if is_confined or not is_told:
        return Origin("unknown", is_confined=bool(is_confined))
    return TERMINAL
