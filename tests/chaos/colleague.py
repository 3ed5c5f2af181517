"""A colleague with a name and a memory, for tests that kill it: store and Codex joined as a door would.

`python -m tests.chaos.colleague ROOT CWD`, with `CODEX_HOME` set. Says `up THREAD`, then `turn N` after
each turn whose end is in the audit log, until somebody stops it.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from laneway.base.clock import LoopClock
from laneway.base.errors import EngineError, ThreadUnknown
from laneway.codex import locate
from laneway.codex.engine import codex_engine
from laneway.core.hub import Hub
from laneway.core.named.records import AuditLine
from laneway.core.ports import TextPart, ThreadSpec, TurnSpec
from laneway.core.session import Session
from laneway.store.claim import HeldIdentity
from laneway.store.registry import Entry
from laneway.store.store import Store

ME = "colleague"
TURN = TurnSpec(parts=(TextPart("%think hm\n%stream 20 words over 0.05 seconds\n%run echo hi\n%say done"),))


def tell(words: str) -> None:
    print(words, flush=True)


async def main(root: Path, cwd: Path) -> None:
    with Store(root, "default").claim(ME) as claim:
        async with Hub(codex_engine(locate.find()), LoopClock()) as hub:
            session = await take_up(hub, claim, ThreadSpec(cwd=cwd, sandbox="workspace-write"))
            note(claim, session)
            tell(f"up {session.thread_id}")
            number = 0
            while True:
                number += 1
                try:
                    result = await session.say(TURN).result()
                    outcome: str = result.status
                except EngineError:
                    outcome = "lost"
                write_down(claim, session, number, outcome)
                note(claim, session)
                tell(f"turn {number}")


def write_down(claim: HeldIdentity, session: Session, number: int, outcome: str) -> None:
    claim.audit.append(
        AuditLine(
            event_type="turn",
            agent_id=session.agent_id,
            identity=ME,
            thread_id=session.thread_id,
            turn_id=str(number),
            outcome=outcome,
        )
    )


async def take_up(hub: Hub, claim: HeldIdentity, spec: ThreadSpec) -> Session:
    """The thread of the newest entry that Codex still knows, or a new one."""
    for entry in sorted(claim.registry.entries(), key=lambda entry: entry.last_active, reverse=True):
        if entry.backend_id:
            try:
                return await hub.resume(ME, entry.backend_id, spec)
            except ThreadUnknown:
                continue  # killed before its first turn: Codex never wrote it down
    return await hub.start(ME, spec)


def note(claim: HeldIdentity, session: Session) -> None:
    thread_id = session.thread_id
    claim.registry.update(
        Entry(agent_id=f"codex:{thread_id}", identity=ME, team="default", backend_id=thread_id)
    )


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
