"""What a person's message does: a command, a turn, words for a turn or a question. Pure: for `step` alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec.structs import replace

from laneway.base.plain import label, quoted
from laneway.doors.chat import question_rules, turn_rules
from laneway.doors.chat.conversation_draft import ConversationDraft
from laneway.doors.chat.conversation_letters import (
    CutFound,
    ImageExpired,
    InputTaken,
    KeepDefault,
    MarkInput,
    RunControl,
    SetTimer,
    TellPlace,
)
from laneway.doors.chat.conversation_state import CutTurn, KeptImage, PlannedTurn, TakenInput
from laneway.doors.chat.messages import Place
from laneway.doors.chat.options import Busy
from laneway.doors.chat.outputs import Said, Told
from laneway.doors.chat.question_words import has_secret
from laneway.doors.chat.routing import (
    ForAnotherBot,
    NotACommand,
    Route,
    ShowUsage,
    Speaker,
    ToControl,
    ToLane,
    ToQuestion,
    ToRunningTurn,
    WhichQuestion,
    command_of,
    may_answer,
    route,
)

SECRET_WORDS = "(secret)"
NOTHING_CUT = "There is nothing to continue: the turn was continued already, or never cut off."
_SHELL_CONTROLS = frozenset({"new", "resume", "attach", "link", "join", "quit"})
"""Carried out outside of this conversation's state."""
_TEXTS: Mapping[str, Literal["help", "status", "lanes"]] = {
    "help": "help",
    "status": "status",
    "lanes": "lanes",
}


def on_input(draft: ConversationDraft, letter: InputTaken) -> None:
    taken = letter.taken
    if not taken.text.strip() and taken.images and (taken.reply is None or taken.reply.question is None):
        _keep_image(draft, taken)
        return
    if not taken.text.strip():
        draft.refuse(taken, "There is nothing in that message.")
        return
    decision = route(
        taken.text,
        draft.state.facts(letter.engine_commands),
        reply=taken.reply,
        speaker=Speaker(taken.sender.user_id, taken.sender.is_owner),
        said_at=taken.at,
    )
    _show_said(draft, taken, decision)
    _follow(draft, letter, decision, letter.busy or draft.state.options.busy)


def _show_said(draft: ConversationDraft, taken: TakenInput, decision: Route) -> None:
    if taken.is_shown or isinstance(decision, ToControl | ForAnotherBot):
        return
    text = taken.text
    lane: str | None = None
    match decision:
        case ToLane() | ToRunningTurn() | ShowUsage():
            lane = decision.lane
        case ToQuestion(number=number):
            entry = question_rules.find(draft, number)
            if entry is not None:
                lane = entry.lane
                text = SECRET_WORDS if has_secret(entry.question) else text
        case WhichQuestion(numbers=numbers):
            entries = [question_rules.find(draft, number) for number in numbers]
            if any(each is not None and has_secret(each.question) for each in entries):
                text = SECRET_WORDS
        case _:
            pass
    draft.show(
        Said(
            input_id=taken.input_id,
            place=taken.place,
            message_id=taken.message_id,
            sender=taken.sender.name,
            platform=taken.sender.platform,
            text=text,
            images=len(taken.images),
            lane=lane,
        )
    )


def _follow(draft: ConversationDraft, letter: InputTaken, decision: Route, busy: Busy) -> None:
    taken = letter.taken
    match decision:
        case ToControl(name=name, arguments=arguments):
            _control(draft, letter, name, arguments)
        case ToLane():
            _to_lane(draft, taken, decision, busy)
        case ToRunningTurn(lane=lane, text=text):
            _to_lane(draft, taken, ToLane(lane, text, is_named=True), "steer")
        case ToQuestion(number=number, text=text):
            _to_question(draft, taken, number, text)
        case WhichQuestion(numbers=numbers):
            listed = ", ".join(f"#{number}" for number in numbers)
            draft.refuse(
                taken,
                f"Several questions are open: {listed}. Reply to the one that you mean, use its buttons,"
                f" or begin with its number: `#{numbers[0]} …`.",
            )
        case ShowUsage(lane=lane) if taken.images:
            draft.do(TellPlace(what="usage", place=taken.place, subject=lane))
            _keep(draft, taken)
        case ShowUsage(lane=lane):
            draft.do(TellPlace(what="usage", place=taken.place, subject=lane))
            draft.finish(taken)
        case NotACommand(word=word):
            draft.do(TellPlace(what="unknown", place=taken.place, subject=word))
            draft.refuse(taken, f"/{label(word, 40)} is not a command here and was not sent to a lane.")
        case ForAnotherBot(command=command):  # platforms with other bots leave out what is for those
            draft.refuse(taken, f"{label(command, 60)} is for another bot and was not sent to a lane.")


def _to_question(draft: ConversationDraft, taken: TakenInput, number: int, text: str) -> None:
    entry = question_rules.find(draft, number)
    speaker = Speaker(taken.sender.user_id, taken.sender.is_owner)
    if entry is not None and not may_answer(entry.facts, speaker):
        who = "an owner" if entry.for_owners else "an owner, or who asked for this turn,"
        draft.refuse(taken, f"Only {who} may answer that.")
        return
    was_open = entry is not None and not entry.is_answered
    question_rules.on_words(draft, taken, number, text)
    answered = question_rules.find(draft, number)
    if taken.images and was_open and answered is not None and answered.is_answered:
        _keep(draft, taken)  # no question takes an image: it goes along with the next words


# ── turns ──────────────────────────────────────────────────────────────────


def _to_lane(draft: ConversationDraft, taken: TakenInput, target: ToLane, busy: Busy) -> None:
    lane, active = target.lane, draft.state.active
    if not target.is_named and not target.command and busy != "interrupt" and active is not None:
        lane = active.lane
    kept = [each for each in draft.state.kept if _same_sender(each.taken, taken)]
    images = (*(image for each in kept for image in each.images), *taken.images)
    if images and lane in draft.state.blind:
        draft.refuse(taken, f"{lane} takes no images: nothing was sent to it.", lane=lane)
        return
    draft.set(kept=tuple(each for each in draft.state.kept if each not in kept))
    plan = PlannedTurn(
        taken=taken,
        lane=lane,
        text=target.text,
        images=images,
        command=target.command,
        with_inputs=tuple(each.taken.input_id for each in kept),
    )
    turn_rules.place_turn(draft, plan, busy)


def _keep_image(draft: ConversationDraft, taken: TakenInput) -> None:
    _show_said(draft, taken, NotACommand(""))
    _keep(draft, taken)


def _keep(draft: ConversationDraft, taken: TakenInput) -> None:
    """Its images go along with the sender's next words."""
    draft.set(kept=(*draft.state.kept, KeptImage(taken, taken.images)))
    seconds = draft.state.options.image_s
    draft.receipt(taken, "kept")
    draft.do(SetTimer(name=f"image:{taken.input_id}", seconds=seconds, letter=ImageExpired(taken.input_id)))


def on_image_expired(draft: ConversationDraft, letter: ImageExpired) -> None:
    for each in draft.state.kept:
        if each.taken.input_id == letter.input_id:
            draft.set(kept=tuple(other for other in draft.state.kept if other is not each))
            draft.refuse(each.taken, "The image was not used in time: send it again, with words.")


def _same_sender(one: TakenInput, other: TakenInput) -> bool:
    return (one.sender.platform, one.sender.user_id) == (other.sender.platform, other.sender.user_id)


# ── control commands ───────────────────────────────────────────────────────


def _control(draft: ConversationDraft, letter: InputTaken, name: str, arguments: str) -> None:
    taken = letter.taken
    if name in _TEXTS:
        draft.do(TellPlace(what=_TEXTS[name], place=taken.place))
        draft.finish(taken)
    elif name in _SHELL_CONTROLS:
        draft.do(RunControl(name=name, arguments=arguments, taken=taken))
    elif name == "stop":
        _stop(draft, taken)
    elif name == "lane":
        _choose_lane(draft, taken, arguments)
    elif name == "steer":
        _one_message(draft, letter, arguments, "steer")
    elif name == "queue":
        _one_message(draft, letter, arguments, "queue")
    else:
        _continue(draft, letter, arguments)


def _one_message(
    draft: ConversationDraft, letter: InputTaken, words: str, busy: Literal["steer", "queue"]
) -> None:
    """`/steer` and `/queue`: the words as a message of their own, whatever the setting."""
    taken = letter.taken
    if not words:
        draft.refuse(taken, f"Usage: /{busy} WORDS")
        return
    facts = draft.state.facts(letter.engine_commands)
    decision = route(words, replace(facts, questions=()), reply=taken.reply)
    if not isinstance(decision, ToLane | ToRunningTurn):
        draft.refuse(taken, f"/{busy} takes words, or a lane's command: `/{busy} /codex …`.")
        return
    if isinstance(decision, ToRunningTurn):
        decision = ToLane(decision.lane, decision.text, is_named=True)
    _show_said(draft, taken, decision)
    _to_lane(draft, taken, decision, busy)


def _stop(draft: ConversationDraft, taken: TakenInput) -> None:
    was_working = bool(draft.state.turns)
    dropped = turn_rules.drop_queue(draft)
    turn_rules.interrupt_all(draft, "stop")
    tell_dropped(draft, dropped)
    if not was_working and not dropped:
        draft.show(Told(text="Nothing is running.", only=taken.place))
    draft.finish(taken)


def tell_dropped(
    draft: ConversationDraft, dropped: tuple[PlannedTurn, ...], only: Place | None = None
) -> None:
    if not dropped:
        return
    lines = [f"- {quoted(label(plan.taken.text, 200))}" for plan in dropped]
    draft.show(Told(text="\n".join(["These messages waited, and were dropped:", *lines]), only=only))
    for plan in dropped:
        draft.receipt(plan.taken, "refused", lane=plan.lane, text="Dropped before it was begun.")
        draft.do(*(MarkInput(input_id=each, state="void") for each in plan.input_ids))


def _choose_lane(draft: ConversationDraft, taken: TakenInput, name: str) -> None:
    name = name.strip().lstrip("/").lower()
    if name not in draft.state.lanes:
        draft.do(TellPlace(what="lane", place=taken.place, subject=name))
        draft.finish(taken)
        return
    draft.set(default_lane=name)
    draft.do(KeepDefault(name))
    draft.show(Told(text=f"Plain words go to {name} from now on."))
    draft.finish(taken)


def on_cut_found(draft: ConversationDraft, letter: CutFound) -> None:
    turn_rules.add_cut(draft, letter.cut)


def _continue(draft: ConversationDraft, letter: InputTaken, argument: str) -> None:
    taken, cuts = letter.taken, draft.state.cut
    wanted = argument.strip().lstrip("#")
    cut = next((each for each in reversed(cuts) if wanted in ("", str(each.input_id))), None)
    if cut is None and wanted.isdecimal():
        draft.do(RunControl(name="continue", arguments=wanted, taken=taken))  # it may be of before a restart
        return
    if cut is None:
        draft.refuse(taken, NOTHING_CUT)
        return
    draft.set(cut=tuple(each for each in cuts if each is not cut))
    taken = replace(taken, origin=cut.origin)
    if not cut.lane:
        again = replace(taken, text=cut.text, images=cut.images, reply=None)
        if _is_continue(cut):
            draft.refuse(taken, NOTHING_CUT)
        else:
            on_input(draft, replace(letter, taken=again))
        return
    plan = PlannedTurn(
        taken=taken,
        lane=cut.lane,
        text=turn_rules.CONTINUE if cut.is_accepted else cut.text,
        images=() if cut.is_accepted else cut.images,
        command="" if cut.is_accepted else cut.command,
    )
    turn_rules.place_turn(draft, plan, letter.busy or draft.state.options.busy)


def _is_continue(cut: CutTurn) -> bool:
    """Offered input that is itself a `/continue`: it would look for itself."""
    command = command_of(cut.text)
    return command is not None and command[0] == "continue"
