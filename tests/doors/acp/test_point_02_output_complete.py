"""Point 2: every character that a command prints arrives once, and nothing is resent over and over."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from tests.doors.acp.golden import golden
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import ZED, Client, Message, Stage, text
from tests.doors.acp.telling import OVERHEAD_CHARS, chars, holds_exactly, last_call, printed, story, told

LINES = 20_000
SEQUENCE = "".join(f"{number}\n" for number in range(1, LINES + 1))
SCRAPS = (
    "é",
    "€",
    "😀",
    "\x1b[31mred\x1b[0m",
    "\r\n",
    "\n",
    "```",
    "~~~",
    "plain words ",
    "\t",
    "\x00",
    "\x07",
)
MAX_TAIL_CHARS = 5000
"""Two screens, with fences and a line about what comes before it."""
ROUNDS = 150
"""Of the slow command: enough that telling all of it each time could not hide."""
EARLY, EARLY_SAID = "echo first; sleep 0.1; echo last", "first\nlast\n"
"""Codex loses the first piece of such a command in most runs, and tells it at the end only."""
TAILS_PER_CHAR = 10
"""A tail is told again when an eighth of it is new; each may be told once more as the whole, and escaped."""


async def run(client: Client, command: str) -> tuple[Message, list[Message]]:
    """The call as it stands at the end, and all that was said of it."""
    session = await client.new()
    assert await client.prompt(session, f"%run {command}") == {"stopReason": "end_turn"}
    call = last_call(client, session)
    assert call["status"] == "completed"
    return call, told(client, call["toolCallId"])


def content_of(call: Message) -> str:
    """What is between the fences."""
    shown = text(call["content"])
    fence = shown[: len(shown) - len(shown.lstrip("`"))]
    assert len(fence) >= 3
    assert shown.startswith(f"{fence}\n")
    assert shown.endswith(fence)
    inner = shown[len(fence) + 1 : -len(fence)]
    assert fence not in inner
    return inner


def running(updates: list[Message]) -> list[Message]:
    """Those told while it ran."""
    return [update for update in updates[1:] if "status" not in update]


def scraps(here: Stage) -> tuple[str, str]:
    """A command that prints files cut in the middle of characters and escapes, and what that is together."""
    chance = Random(6)
    whole = "".join(chance.choices(SCRAPS, k=2000)) + "end\n"
    data = whole.encode()
    cuts = sorted({0, len(data), *(chance.randrange(len(data)) for _ in range(12))})
    for number, (start, end) in enumerate(pairwise(cuts)):
        (here.work / f"piece-{number:02}").write_bytes(data[start:end])
    return "for piece in piece-*; do cat $piece; sleep 0.02; done", whole


def slow(here: Stage) -> tuple[str, str]:
    """A command that prints little by little, and what that is together."""
    (here.work / "page").write_text("0123456789 abcdefghijklmnopqrstuvwxyz\n" * 30)
    page = (here.work / "page").read_text()
    return f"for i in $(seq {ROUNDS}); do cat page; sleep 0.01; done", page * ROUNDS


async def test_content_holds_every_character_once_and_only_tails_are_resent(shared: Shared) -> None:
    """For a client without our terminals: whole at the end, a bounded tail while it runs."""
    async with shared.stage() as here, here.agent() as client:
        call, updates = await run(client, f"seq 1 {LINES}")
        assert content_of(call) == SEQUENCE
        assert chars(updates) <= TAILS_PER_CHAR * len(SEQUENCE)

        for _ in range(4):
            call, _ = await run(client, EARLY)
            assert content_of(call) == EARLY_SAID

        command, whole = scraps(here)
        call, _ = await run(client, command)
        assert content_of(call) == whole

        command, whole = slow(here)
        call, updates = await run(client, command)
        assert content_of(call) == whole
        assert running(updates)
        assert max(len(text(update["content"])) for update in running(updates)) <= MAX_TAIL_CHARS
        assert chars(updates) <= TAILS_PER_CHAR * len(whole)


async def test_a_terminal_of_ours_gets_every_character_once(shared: Shared) -> None:
    """In pieces, none of them resent: what is sent is as long as what was printed."""
    async with shared.stage() as here, here.agent(capabilities=ZED) as client:
        _, updates = await run(client, f"seq 1 {LINES}")
        assert holds_exactly(printed(updates), SEQUENCE)

        for _ in range(4):
            _, updates = await run(client, EARLY)
            assert holds_exactly(printed(updates), EARLY_SAID)

        command, whole = scraps(here)
        _, updates = await run(client, command)
        assert holds_exactly(printed(updates), whole)

        command, whole = slow(here)
        _, updates = await run(client, command)
        assert holds_exactly(printed(updates), whole)
        assert len(updates) < ROUNDS
        escapes = whole.count("\n")
        assert chars(updates) <= len(whole) + escapes + OVERHEAD_CHARS * len(updates)


async def test_the_stories_of_a_long_output_stay_the_same(shared: Shared) -> None:
    """Told once for each kind of client; short enough to be read."""
    command = "cat page"
    async with shared.stage() as here:
        (here.work / "page").write_text("one\n" * 10 + "no newline, ```, \x1b[1mbold\x1b[0m, é😀")
        async with here.agent() as client:
            await run(client, command)
        golden("point-02-output-complete-bare", story(client))
        async with here.agent(capabilities=ZED) as client:
            await run(client, command)
        golden("point-02-output-complete-zed", story(client))
