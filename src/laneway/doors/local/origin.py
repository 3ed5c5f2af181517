"""Origin of a local connection: a terminal of the user's, or a process that an agent started.

An agent's commands run as the same user and may reach the socket; what a model chooses must not see or
end other sessions. Such a connection, or one of unknown origin, may only open the bridge of a session of
ours, with that session's key. Agents above our own process do not count: then both processes belong to
the same agent.
"""

from __future__ import annotations

import os
import socket
from typing import Literal, NamedTuple

from laneway.doors.local.admission import has_ended, pid_of
from laneway.wire import process_tree
from laneway.wire.process_tree import ProcessInfo

REMEDY = "Run it in a terminal of your own."


class Origin(NamedTuple):
    """What is known of the process at the other end, and what it may do."""

    kind: Literal["terminal", "agent", "unknown"]
    agent: ProcessInfo | None = None
    """The nearest agent among its ancestors, if there is one."""
    is_foreign: bool = False
    """Whether that agent is known not to be a child of this process."""
    is_confined: bool = False
    """Whether it is in a sandbox: Codex starts its commands in one, and never the bridge."""

    @property
    def may_ask(self) -> bool:
        """Whether it may see and end sessions."""
        return self.kind == "terminal"

    @property
    def may_bridge(self) -> bool:
        """Whether it may open the bridge of a session, if it has the key."""
        return not (self.is_confined or self.is_foreign)

    @property
    def refusal(self) -> str:
        """Why it may not ask, as a text for its user."""
        if self.agent is not None:
            who = "Laneway" if self.agent.name in process_tree.GUARDIANS.values() else "Codex"
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
    """To be called when the connection is made: the process that connects may end right after."""
    pid = pid_of(sock)
    origin = of_process(pid) if pid is not None else UNKNOWN
    # Checked last: if the process still lives, the pid was its own the whole time.
    return UNKNOWN if has_ended(sock) else origin


def of_process(pid: int) -> Origin:
    ours = os.getpid()
    above_us = {(each.pid, each.started) for each in process_tree.lineage(ours).processes}
    is_confined = process_tree.is_confined(pid)
    lineage = process_tree.lineage(pid)
    agent: ProcessInfo | None = None
    is_known, is_below_us = lineage.is_whole, False
    for process in lineage.processes:
        if (process.pid, process.started) in above_us:
            is_known, is_below_us = True, process.pid == ours
            break
        if agent is None and process.is_agent:
            agent = process
    if agent is not None:
        is_foreign = is_known and not is_below_us
        return Origin("agent", agent, is_foreign=is_foreign, is_confined=bool(is_confined))
    if is_confined or not is_known:
        return Origin("unknown", is_confined=bool(is_confined))
    return TERMINAL
