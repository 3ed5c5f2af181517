"""When turns of a conversation begin, are steered, are stopped and end. Pure: called by `step` alone.

One lane works at a time; a turn that it has delegated is part of its own. Whatever is interrupted has a
time to end; after that it counts as ended, and its lane is given up.
"""

from __future__ import annotations

from msgspec.structs import replace

from laneway.base.plain import label
from laneway.core.model import Failure
from laneway.doors.chat.conversation_draft import ConversationDraft
from laneway.doors.chat.conversation_letters import (
    AbandonLane,
    BeginTurn,
    DropHandBacks,
    DropTimer,
    HandBackTurn,
    InputAccepted,
    InterruptLane,
    LaneEnded,
    LaneStarted,
    MarkInput,
    SetTimer,
    SilenceReached,
    SteerEnded,
    SteerTurn,
    StopLate,
)
from laneway.doors.chat.conversation_state import MAX_CUT, ChatTurn, CutTurn, PlannedTurn
from laneway.doors.chat.engine_words import ENGINE_LOST
from laneway.doors.chat.options import Busy
from laneway.doors.chat.outputs import Button, Told, TurnBegan, TurnEnded

CONTINUE = "Go on with what you were doing: it was interrupted."
"""What a lane is told whose turn was cut after its engine had recorded it."""
MAX_TASK_CHARS = 400
GRACE_S = 0.2
"""A lane that cancels its own turn at the end of its time is not given up in the same instant."""


def continue_button(input_id: int) -> Button:
    return Button(f"/continue {input_id}", "Continue")


# ── beginning ──────────────────────────────────────────────────────────────


def place_turn(draft: ConversationDraft, plan: PlannedTurn, busy: Busy) -> None:
    """Begin it, put it into the running turn, or let it wait."""
    state, active = draft.state, draft.state.active
    if active is None and not state.queue and not state.is_quitting:
        begin(draft, plan)
        return
    waiting = len(state.queue) + len(state.steering)
    if waiting >= state.options.max_queue:
        draft.refuse(
            plan.taken,
            f"{waiting} messages wait already, and no more can: /stop drops them.",
            lane=plan.lane,
        )
        return
    if any(each.lane == plan.lane for each in state.open_questions):
        _let_wait(draft, plan, is_held=True)
        return
    running = _steerable(draft, plan) if busy == "steer" else None
    if running is not None:
        _steer(draft, plan, running)
        return
    if busy == "interrupt":
        _let_wait(draft, replace(plan, is_urgent=True))
        interrupt_all(draft, "message")
        return
    _let_wait(draft, plan)


def begin(draft: ConversationDraft, plan: PlannedTurn) -> None:
    taken, ticket = plan.taken, f"in-{plan.taken.input_id}"
    task = plan.text if not plan.command else f"/{plan.command} {plan.text}".rstrip()
    turn = ChatTurn(
        ticket=ticket,
        lane=plan.lane,
        plan=plan,
        task=task,
        has_banner=plan.lane != draft.state.default_lane,
    )
    draft.set(turns=(*draft.state.turns, turn))
    draft.receipt(taken, "begun", lane=plan.lane)
    draft.show(
        TurnBegan(
            lane=plan.lane,
            ticket=ticket,
            task=cut_task(task),
            has_banner=turn.has_banner,
            sender=taken.sender.name,
            input_id=taken.input_id,
        )
    )
    draft.do(
        BeginTurn(
            ticket=ticket,
            lane=plan.lane,
            task=task,
            text=_with_origin(plan.text, taken.origin),
            images=plan.images,
            command=plan.command,
            input_ids=plan.input_ids,
        )
    )


def begin_next(draft: ConversationDraft) -> None:
    """Begin what waits, if nothing works."""
    state = draft.state
    if state.turns or not state.queue or state.is_quitting:
        return
    plan, *rest = state.queue
    draft.set(queue=tuple(rest))
    begin(draft, plan)


def _let_wait(draft: ConversationDraft, plan: PlannedTurn, *, is_held: bool = False) -> None:
    queue = draft.state.queue
    at = len(queue)
    if plan.is_urgent:
        at = next((index for index, each in enumerate(queue) if not each.is_urgent), at)
    draft.set(queue=(*queue[:at], plan, *queue[at:]))
    draft.receipt(plan.taken, "held" if is_held else "queued", lane=plan.lane, position=at + 1)


def _with_origin(text: str, origin: str) -> str:
    return f"[{label(origin)}]\n{text}" if origin else text


def cut_task(task: str) -> str:
    """As it came, for platforms that draw it in their own way."""
    return task if len(task) <= MAX_TASK_CHARS else f"{task[: MAX_TASK_CHARS - 1]}…"


# ── steering ───────────────────────────────────────────────────────────────


def _steerable(draft: ConversationDraft, plan: PlannedTurn) -> ChatTurn | None:
    """The running turn that takes these words; also one that has delegated, and waits for that."""
    state = draft.state
    if plan.command or plan.lane in state.deaf or state.is_quitting:
        return None
    running = (each for each in reversed(state.turns) if each.lane == plan.lane and not each.stopped_by)
    return next(running, None)


def _steer(draft: ConversationDraft, plan: PlannedTurn, running: ChatTurn) -> None:
    draft.set(steering=(*draft.state.steering, plan))
    draft.do(
        SteerTurn(
            input_id=plan.taken.input_id,
            lane=running.lane,
            ticket=steer_ticket(plan.taken.input_id),
            turn_ticket=running.ticket,
            text=_with_origin(plan.text, plan.taken.origin),
            images=plan.images,
        )
    )


def on_steer_ended(draft: ConversationDraft, letter: SteerEnded) -> None:
    """Words that were not taken wait for a turn of their own."""
    state = draft.state
    plan = next((each for each in state.steering if each.taken.input_id == letter.input_id), None)
    if plan is None:
        return  # it was dropped meanwhile
    draft.set(steering=tuple(each for each in state.steering if each is not plan))
    if not letter.is_taken:
        draft.do(*(MarkInput(input_id=each, state="waiting") for each in plan.input_ids))
        _let_wait(draft, plan)
        return
    draft.receipt(plan.taken, "steered", lane=plan.lane)
    turn = next((each for each in reversed(draft.state.turns) if each.lane == plan.lane), None)
    if turn is None:
        draft.do(*(MarkInput(input_id=each, state="done") for each in plan.input_ids))
        return
    _replace_turn(draft, replace(turn, steered=(*turn.steered, *plan.input_ids)))


# ── what lanes tell ────────────────────────────────────────────────────────


def on_started(draft: ConversationDraft, letter: LaneStarted) -> None:
    turn = None if letter.ticket is None else draft.state.turn(letter.ticket)
    if turn is not None:
        _replace_turn(draft, replace(turn, turn_id=letter.turn_id))
        return
    if letter.ticket is not None:
        return  # it was given up meanwhile
    own = ChatTurn(
        ticket=own_ticket(letter.lane, letter.turn_id),
        lane=letter.lane,
        turn_id=letter.turn_id,
        has_banner=letter.lane != draft.state.default_lane,
        is_accepted=True,
    )
    draft.set(turns=(own, *draft.state.turns))
    draft.show(TurnBegan(lane=own.lane, ticket=own.ticket, task="", has_banner=own.has_banner))


def own_ticket(lane: str, turn_id: str) -> str:
    """The ticket of a turn that the lane has begun by itself."""
    return f"own-{lane}-{turn_id}"


def on_accepted(draft: ConversationDraft, letter: InputAccepted) -> None:
    turn = draft.state.turn(letter.ticket)
    draft.do(DropHandBacks(letter.ticket))
    if turn is None:
        _accept_steered(draft, letter.ticket)
    elif not turn.is_accepted:
        _replace_turn(draft, replace(turn, is_accepted=True))
        ids = turn.plan.input_ids if turn.plan is not None else ()
        draft.do(*(MarkInput(input_id=each, state="accepted") for each in ids))


def _accept_steered(draft: ConversationDraft, ticket: str) -> None:
    """Words that were put into a turn are recorded; of a turn that is over they are marked already."""
    steered = {input_id for turn in draft.state.turns for input_id in turn.steered}
    steered |= {plan.taken.input_id for plan in draft.state.steering}
    found = next((input_id for input_id in steered if steer_ticket(input_id) == ticket), None)
    if found is not None:
        draft.do(MarkInput(input_id=found, state="accepted"))


def steer_ticket(input_id: int) -> str:
    """The ticket of words that are put into a turn."""
    return f"steer-{input_id}"


def on_ended(draft: ConversationDraft, letter: LaneEnded) -> None:
    state = draft.state
    turn = state.turn(letter.ticket) if letter.ticket else state.turn_of(letter.lane, letter.turn_id)
    if turn is None:
        return
    _end(draft, turn, letter)


def _end(draft: ConversationDraft, turn: ChatTurn, ended: LaneEnded) -> None:
    draft.set(turns=tuple(each for each in draft.state.turns if each.ticket != turn.ticket))
    draft.do(DropTimer(f"stop:{turn.ticket}"))
    is_cut = _is_cut(ended)
    plan = turn.plan
    if plan is not None and is_cut:
        add_cut(draft, _cut_of(turn, plan))
    for question in draft.state.questions:
        if question.ticket == turn.ticket:
            _drop_question_of(draft, question.number)
    draft.do(
        HandBackTurn(
            ticket=turn.ticket,
            lane=turn.lane,
            task=turn.task,
            for_lanes=_told_lanes(draft, turn),
            ended=ended,
            call_id=turn.call_id,
        )
    )
    draft.show(
        TurnEnded(
            lane=turn.lane,
            ticket=turn.ticket,
            status=ended.status,
            has_banner=turn.has_banner,
            text=ended.text,
            failure=ended.failure,
            diff=ended.diff,
            tokens=ended.tokens,
            seconds=ended.seconds,
            caller=turn.caller_lane,
            stopped_by=turn.stopped_by if ended.status == "interrupted" else "",
            buttons=(continue_button(plan.taken.input_id),) if plan is not None and is_cut else (),
        )
    )
    # Only now: whoever is killed before this tells the turn's end after a restart.
    if plan is not None:
        is_void = ended.status == "interrupted" and not turn.is_accepted
        draft.do(*(MarkInput(input_id=each, state="void" if is_void else "done") for each in plan.input_ids))
    draft.do(*(MarkInput(input_id=each, state="done") for each in turn.steered))
    for each in reversed(draft.state.turns):
        if each.caller == turn.ticket:
            interrupt(draft, each, "delegation")


def _told_lanes(draft: ConversationDraft, turn: ChatTurn) -> tuple[str, ...]:
    """Lanes that are told in their next prompt: not the caller, unless its call gets no result any more."""
    caller = None if turn.caller is None else draft.state.turn(turn.caller)
    is_awaited = caller is not None and not caller.stopped_by and turn.stopped_by != "delegation"
    silent = (turn.lane, turn.caller_lane if is_awaited else None)
    return tuple(each for each in draft.state.lanes if each not in silent)


def _is_cut(ended: LaneEnded) -> bool:
    return ended.status == "interrupted" or (ended.failure is not None and ended.failure.kind == ENGINE_LOST)


def _cut_of(turn: ChatTurn, plan: PlannedTurn) -> CutTurn:
    return CutTurn(
        input_id=plan.taken.input_id,
        lane=turn.lane,
        text=plan.text,
        images=plan.images,
        command=plan.command,
        is_accepted=turn.is_accepted,
        origin=plan.taken.origin,
    )


def add_cut(draft: ConversationDraft, cut: CutTurn) -> None:
    others = tuple(each for each in draft.state.cut if each.input_id != cut.input_id)
    draft.set(cut=(*others, cut)[-MAX_CUT:])


def _drop_question_of(draft: ConversationDraft, number: int) -> None:
    """Its lane withdraws its questions before the end; of one that was given up they are still here."""
    draft.set(questions=tuple(each for each in draft.state.questions if each.number != number))
    draft.do(DropTimer(f"question:{number}"))


# ── stopping ───────────────────────────────────────────────────────────────


def interrupt_all(draft: ConversationDraft, by: str) -> None:
    """The innermost turn first."""
    for turn in reversed(draft.state.turns):
        interrupt(draft, turn, by)


def interrupt(draft: ConversationDraft, turn: ChatTurn, by: str) -> None:
    if turn.stopped_by:
        return
    _replace_turn(draft, replace(turn, stopped_by=by))
    draft.do(
        InterruptLane(turn.lane, turn.ticket),
        SetTimer(
            name=f"stop:{turn.ticket}",
            seconds=draft.state.options.stop_s + GRACE_S,
            letter=StopLate(turn.ticket),
        ),
    )


def on_stop_late(draft: ConversationDraft, letter: StopLate) -> None:
    """It counts as ended, whatever the lane tells later."""
    turn = draft.state.turn(letter.ticket)
    if turn is None:
        return
    draft.do(AbandonLane(turn.lane))
    failure = Failure(
        kind="stuck",
        message=f"{turn.lane} did not stop, and was ended. The next /{turn.lane} starts it again.",
    )
    for each in draft.state.turns:
        if each.lane == turn.lane:
            ended = LaneEnded(lane=each.lane, ticket=each.ticket, status="interrupted", failure=failure)
            _end(draft, each, ended)


def drop_queue(draft: ConversationDraft) -> tuple[PlannedTurn, ...]:
    """Nothing waits any more. What was dropped, in order: it is to be told (`tell_dropped`)."""
    dropped = (*draft.state.steering, *draft.state.queue)
    draft.set(queue=(), steering=())
    return dropped


def on_silence(draft: ConversationDraft, letter: SilenceReached) -> None:
    turn = draft.state.turn(letter.ticket)
    if turn is None or turn.stopped_by:
        return
    minutes = _minutes(letter.seconds)
    if letter.is_over:
        draft.show(
            Told(text=f"{turn.lane} was silent for {minutes}: stopped.", level="warning", lane=turn.lane)
        )
        interrupt(draft, turn, "silence")
        return
    text = f"{turn.lane} has been silent for {minutes}. /stop ends it."
    draft.show(Told(text=text, level="warning", lane=turn.lane))


def _minutes(seconds: float) -> str:
    if seconds < 60:
        return f"{round(seconds)} s"
    minutes = round(seconds / 60)
    return f"{minutes} minute{'s' if minutes != 1 else ''}"


def _replace_turn(draft: ConversationDraft, turn: ChatTurn) -> None:
    draft.set(turns=tuple(turn if each.ticket == turn.ticket else each for each in draft.state.turns))
