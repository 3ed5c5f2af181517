"""Decides when messages go to a chat platform, and in which order. Pure; `outbox_runner` acts on it.

One outbox serves all chats of one account. Questions go first, then new messages, then edits; a newer
content of a message replaces an older one that still waits, so a text that streams costs one call per
interval. One call per chat is under way at a time. `retry_after` of the service holds its chat, and all
chats when a second one is told to wait; without a network everything waits, longer each time. Nothing is
given up but what the service refuses.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

MAX_IN_FLIGHT = 8
"""Calls under way at once: a service answers within a tenth of a second, so this is more than it allows."""
MAX_WAITING = 500
"""Messages that wait in one chat. What is not stored is dropped beyond it; the writer of the others waits
for room (`has_room`), and they can be read again."""
MAX_REFS = 1000
"""Sent messages of a chat that can be edited later; an edit of an older one would be sent anew."""
BACKOFF_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Seconds without a call after that many failures in a row; the last one holds for all later ones."""
LONG_AGO = float("-inf")


class ChatPace(msgspec.Struct, frozen=True, kw_only=True):
    """How fast a service lets one chat be written to, in seconds."""

    edit_s: float
    """Between a call and the next edit."""
    call_s: float
    """Between two calls on average …"""
    burst: int = 1
    """… of which this many may come at once after a rest; edits never do."""


class PutPost(msgspec.Struct, frozen=True, kw_only=True):
    """A message is to be shown with this content, from now on."""

    now: float
    chat: str
    """What the service counts rates by."""
    pace: ChatPace
    key: str
    """Names the message in its chat: a second `PutPost` of it is an edit."""
    post: Any
    is_question: bool = False
    delivery_id: int = 0
    """Of the stored content; 0 if it is not stored, and may be lost."""
    ref: str = ""
    """The service's id, if the message was sent by an earlier process."""
    is_partial: bool = False
    """Whether more of it follows soon."""


class PostSent(msgspec.Struct, frozen=True):
    """The service has it, under this id; for an edit the id that it had."""

    ref: str
    rest_s: float = 0.0
    """How long it takes nothing more for this chat, as it has said itself."""
    is_draft: bool = False
    """Whether it is shown, but no message yet: once it is complete, it is sent in its order as a new one."""


class PostHeld(msgspec.Struct, frozen=True):
    """The service wants no call about this chat for so long."""

    retry_after_s: float
    is_global: bool = False
    """Whether it wants no call at all meanwhile."""


class ServiceOffline(msgspec.Struct, frozen=True):
    """The service could not be reached, or failed. Whether it has the message is not known."""


class PostRefused(msgspec.Struct, frozen=True):
    """The service will never take it."""

    why: str
    is_chat_gone: bool = False
    """Whether it takes nothing at all for this chat: blocked, deleted, no right to write."""


PostOutcome: TypeAlias = PostSent | PostHeld | ServiceOffline | PostRefused


class PostCallDone(msgspec.Struct, frozen=True, kw_only=True):
    now: float
    chat: str
    outcome: PostOutcome


class OutboxTick(msgspec.Struct, frozen=True, kw_only=True):
    """Time has passed."""

    now: float


OutboxLetter: TypeAlias = PutPost | PostCallDone | OutboxTick


class PostJob(msgspec.Struct, frozen=True, kw_only=True):
    """A content that waits, or is under way."""

    number: int
    """In the order of arrival; a newer content of the same message keeps it."""
    key: str
    post: Any
    is_question: bool
    delivery_id: int
    ref: str = ""
    """Not empty while it is under way as an edit."""
    is_partial: bool = False


class ChatQueue(msgspec.Struct, frozen=True, kw_only=True):
    """One chat."""

    pace: ChatPace
    waiting: tuple[PostJob, ...] = ()
    in_flight: PostJob | None = None
    refs: dict[str, str] = {}
    """The service's ids of sent messages by their keys, the oldest first."""
    drafts: frozenset[str] = frozenset()
    """Keys of those that are only drafts so far."""
    called_at: float = LONG_AGO
    """When the last call began, or has ended."""
    paid_until: float = LONG_AGO
    """When the average of `ChatPace.call_s` would be kept, had the calls so far been spread out."""
    held_until: float = LONG_AGO
    rests_until: float = LONG_AGO
    """As `held_until`, but before the service had to refuse anything."""


class OutboxState(msgspec.Struct, frozen=True, kw_only=True):
    chats: dict[str, ChatQueue] = {}
    any_call_s: float = 0.0
    """Seconds between any two calls, whatever their chats."""
    next_call_at: float = LONG_AGO
    all_held_until: float = LONG_AGO
    failures: int = 0
    """Calls in a row that did not reach the service."""
    next_number: int = 1


class PostCall(msgspec.Struct, frozen=True, kw_only=True):
    """Do it, and tell the outcome by a `PostCallDone`."""

    chat: str
    job: PostJob


class OutboxWake(msgspec.Struct, frozen=True):
    """Send an `OutboxTick` then; replaces an earlier wish."""

    at: float


class PostDropped(msgspec.Struct, frozen=True, kw_only=True):
    """It will not be sent."""

    chat: str
    job: PostJob
    why: str
    is_chat_gone: bool = False
    """Whether its chat takes nothing else either."""


OutboxEffect: TypeAlias = PostCall | OutboxWake | PostDropped


def step(state: OutboxState, letter: OutboxLetter) -> tuple[OutboxState, list[OutboxEffect]]:
    effects: list[OutboxEffect] = []
    match letter:
        case PutPost():
            state, effects = _put(state, letter)
        case PostCallDone():
            state, effects = _done(state, letter)
        case OutboxTick():
            pass
    state, started = _start(state, letter.now)
    return state, [*effects, *started]


def has_room(state: OutboxState, chat: str) -> bool:
    """Whether its writer may go on; half full is when it waits."""
    queue = state.chats.get(chat)
    return queue is None or len(queue.waiting) < MAX_WAITING // 2


# ── letters ────────────────────────────────────────────────────────────────


def _put(state: OutboxState, put: PutPost) -> tuple[OutboxState, list[OutboxEffect]]:
    queue = state.chats.get(put.chat) or ChatQueue(pace=put.pace)
    if put.ref and put.key not in queue.refs:
        queue = _with_ref(queue, put.key, put.ref)
    job = PostJob(
        number=state.next_number,
        key=put.key,
        post=put.post,
        is_question=put.is_question,
        delivery_id=put.delivery_id,
        is_partial=put.is_partial,
    )
    older = next((each for each in queue.waiting if each.key == put.key), None)
    if older is not None and put.is_partial and not older.is_partial:
        return state, []  # a piece that comes late takes nobody's place
    if older is not None:
        job = msgspec.structs.replace(job, number=older.number)
        waiting = tuple(job if each is older else each for each in queue.waiting)
    elif len(queue.waiting) >= MAX_WAITING and not put.delivery_id:
        return state, [PostDropped(chat=put.chat, job=job, why="too many messages wait")]
    else:
        waiting = (*queue.waiting, job)
    queue = msgspec.structs.replace(queue, waiting=waiting, pace=put.pace)
    state = msgspec.structs.replace(state, next_number=state.next_number + 1)
    return _with_queue(state, put.chat, queue), []


def _done(state: OutboxState, done: PostCallDone) -> tuple[OutboxState, list[OutboxEffect]]:
    queue = state.chats[done.chat]
    job = queue.in_flight
    assert job is not None, "the outcome of a call that was never made"
    # A call may have reached the service as late as now: what follows is paced from here on.
    took_s = done.now - queue.called_at
    queue = msgspec.structs.replace(
        queue, in_flight=None, called_at=done.now, paid_until=queue.paid_until + took_s
    )
    effects: list[OutboxEffect] = []
    match done.outcome:
        case PostSent(ref, rest_s, is_draft):
            state = msgspec.structs.replace(state, failures=0)
            queue = _with_ref(queue, job.key, ref, is_draft=is_draft)
            if rest_s > 0:
                queue = msgspec.structs.replace(queue, rests_until=done.now + rest_s)
        case PostHeld(retry_after_s, is_global):
            until = done.now + retry_after_s
            others = [chat.held_until for name, chat in state.chats.items() if name != done.chat]
            queue = msgspec.structs.replace(_again(queue, job), held_until=until)
            if is_global or any(other > done.now for other in others):
                all_until = max(until, state.all_held_until, *others)
                state = msgspec.structs.replace(state, all_held_until=all_until)
            state = msgspec.structs.replace(state, failures=0)
        case ServiceOffline():
            wait_s = BACKOFF_S[min(state.failures, len(BACKOFF_S) - 1)]
            all_until = max(state.all_held_until, done.now + wait_s)
            state = msgspec.structs.replace(state, failures=state.failures + 1, all_held_until=all_until)
            queue = _again(queue, job)
        case PostRefused(why, is_chat_gone):
            state = msgspec.structs.replace(state, failures=0)
            lost = (job, *queue.waiting) if is_chat_gone else (job,)
            effects = [
                PostDropped(chat=done.chat, job=each, why=why, is_chat_gone=is_chat_gone) for each in lost
            ]
            if is_chat_gone:
                queue = msgspec.structs.replace(queue, waiting=())
    return _with_queue(state, done.chat, queue), effects


def _again(queue: ChatQueue, job: PostJob) -> ChatQueue:
    """Put back what was not sent, unless a newer content of it waits by now."""
    job = msgspec.structs.replace(job, ref="")
    if any(each.key == job.key for each in queue.waiting):
        return queue
    return msgspec.structs.replace(queue, waiting=(job, *queue.waiting))


def _with_ref(queue: ChatQueue, key: str, ref: str, *, is_draft: bool = False) -> ChatQueue:
    refs = {name: known for name, known in queue.refs.items() if name != key} | {key: ref}
    while len(refs) > MAX_REFS:
        del refs[next(iter(refs))]
    drafts = (queue.drafts | {key} if is_draft else queue.drafts - {key}) & refs.keys()
    return msgspec.structs.replace(queue, refs=refs, drafts=frozenset(drafts))


def _is_edit(queue: ChatQueue, job: PostJob) -> bool:
    return job.key in queue.refs and (job.is_partial or job.key not in queue.drafts)


def _with_queue(state: OutboxState, chat: str, queue: ChatQueue) -> OutboxState:
    return msgspec.structs.replace(state, chats={**state.chats, chat: queue})


# ── starting calls ─────────────────────────────────────────────────────────


def _start(state: OutboxState, now: float) -> tuple[OutboxState, list[OutboxEffect]]:
    """Start every call that may start now, and say when to look again."""
    effects: list[OutboxEffect] = []
    while sum(queue.in_flight is not None for queue in state.chats.values()) < MAX_IN_FLIGHT:
        times = [
            (max(at, state.all_held_until, state.next_call_at), rank, job.number, chat, job)
            for chat, queue in state.chats.items()
            for at, rank, job in _next_of(queue)
        ]
        ready = [each for each in times if each[0] <= now]
        if not ready:
            if times:
                effects.append(OutboxWake(min(times, key=lambda each: each[0])[0]))
            break
        _, _, _, chat, job = min(ready, key=lambda each: each[1:3])
        state, call = _call(state, chat, job, now)
        effects.append(call)
    return state, effects


def _next_of(queue: ChatQueue) -> list[tuple[float, int, PostJob]]:
    """For each kind of call that waits: when it may start, its rank, and the first of that kind."""
    if queue.in_flight is not None:
        return []
    first: dict[int, PostJob] = {}
    for job in queue.waiting:
        rank = _rank(queue, job)
        if rank not in first or job.number < first[rank].number:
            first[rank] = job
    return [(_earliest(queue, job), rank, job) for rank, job in first.items()]


def _rank(queue: ChatQueue, job: PostJob) -> int:
    if job.is_question:
        return 0
    return 2 if _is_edit(queue, job) else 1


def _earliest(queue: ChatQueue, job: PostJob) -> float:
    if _is_edit(queue, job) and not job.is_question:
        paced = max(queue.paid_until, queue.called_at + queue.pace.edit_s)
    else:
        paced = queue.paid_until - (queue.pace.burst - 1) * queue.pace.call_s
    return max(paced, queue.held_until, queue.rests_until)


def _call(state: OutboxState, chat: str, job: PostJob, now: float) -> tuple[OutboxState, PostCall]:
    queue = state.chats[chat]
    under_way = msgspec.structs.replace(job, ref=queue.refs.get(job.key, ""))
    queue = msgspec.structs.replace(
        queue,
        waiting=tuple(each for each in queue.waiting if each is not job),
        in_flight=under_way,
        called_at=now,
        paid_until=max(queue.paid_until, now) + queue.pace.call_s,
    )
    state = msgspec.structs.replace(state, next_call_at=now + state.any_call_s)
    return _with_queue(state, chat, queue), PostCall(chat=chat, job=under_way)
