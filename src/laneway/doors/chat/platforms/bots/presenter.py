"""Turns the outputs of one place into posts: texts that grow, a list of what a turn does, plans, questions.

`BotPresenter` holds what the posts of running turns look like so far; it sends and stores nothing. What a
turn does is listed in one message that is changed in place, until words come: then a new list begins.
"""

from __future__ import annotations

from msgspec.structs import replace

from laneway.base.plain import code_label, plain
from laneway.core.model import Activity, Plan
from laneway.doors.chat.messages import Place
from laneway.doors.chat.outputs import (
    ActivityShown,
    AnyOutput,
    FileShown,
    InputReceipt,
    OutputDelta,
    PlanShown,
    QuestionOver,
    QuestionShown,
    Said,
    Shown,
    StatusNow,
    TextDelta,
    TextDone,
    Told,
    TurnBegan,
    TurnEnded,
)
from laneway.doors.chat.platforms.bots import words
from laneway.doors.chat.platforms.bots.posts import STOP, BotPost, PostKind
from laneway.rendering.lane_titles import lane_name

MAX_WORK_LINES = 12
"""Of a list of activities; earlier ones are counted."""
MAX_TURNS = 64
"""Turns whose posts are remembered; only delegation lets several run at once."""
MAX_WHOLE = 300
"""Texts that are known to be complete; pieces that come late belong to the newest of them."""
LEVELS = {"info": "", "warning": "⚠️ ", "error": "❌ "}
TOLD_RECEIPTS = ("refused", "held", "queued", "kept")
"""Receipts whose words are shown; the others are a reaction alone."""


class _TurnPosts:
    """One turn: its list of activities, and the texts that are being written."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        """In front of the names of tools: `codex::`; empty for the default lane."""
        self.segment = 0
        self.lines: dict[str, str] = {}
        """Of the current list, by the activity's id."""
        self.texts: dict[str, str] = {}
        """By part, as far as it is complete from its beginning."""

    def begin_words(self) -> bool:
        """Words come: a new list begins after them. Whether there was a list."""
        had_lines = bool(self.lines)
        if had_lines:
            self.segment += 1
            self.lines = {}
        return had_lines


class BotPresenter:
    """`present` an output, and get the posts that are to be shown because of it."""

    def __init__(self, place: Place, conversation_id: str, cwd: str) -> None:
        self._place = place
        self._conversation_id = conversation_id
        self._cwd = cwd
        self._turns: dict[str, _TurnPosts] = {}
        self._questions: dict[int, BotPost] = {}
        self._whole: dict[str, None] = {}
        """Parts whose whole text was presented. A place that has just joined reads it from the store, and
        hears the pieces before it afterwards: they must not take its place."""

    def know_question(self, post: BotPost) -> None:
        """A question that an earlier process has posted: its end changes that post."""
        self._questions[post.question] = post

    def present(self, shown: Shown) -> list[BotPost]:
        output: AnyOutput = shown.output
        match output:
            case TextDelta():
                return self._delta(output)
            case TextDone():
                return self._text(output)
            case ActivityShown(lane=lane, ticket=ticket, activity=activity):
                return self._activity(lane, ticket, activity)
            case PlanShown(lane=lane, ticket=ticket, plan=plan):
                return self._plan(lane, ticket, plan)
            case TurnBegan():
                return self._began(output)
            case TurnEnded():
                return self._ended(output)
            case QuestionShown():
                return self._question(output)
            case QuestionOver():
                return self._question_over(output)
            case InputReceipt():
                return self._receipt(output)
            case Said():
                return self._said(output)
            case Told():
                return self._told(output, shown.number)
            case FileShown():
                return self._file(output, shown.number)
            case OutputDelta() | StatusNow():
                return []

    # ── turns ──────────────────────────────────────────────────────────────

    def _turn(self, ticket: str, lane: str) -> _TurnPosts:
        if ticket not in self._turns:
            # Its beginning was missed: better a prefix too many than words without their speaker.
            self._turns[ticket] = _TurnPosts(f"{lane_name(lane)}::")
            while len(self._turns) > MAX_TURNS:
                del self._turns[next(iter(self._turns))]
        return self._turns[ticket]

    def _began(self, began: TurnBegan) -> list[BotPost]:
        turn = self._turn(began.ticket, began.lane)
        if not began.has_banner:
            turn.prefix = ""
            return []
        post = self._post("banner", f"began:{began.ticket}", words.began(began))
        return [self._of_turn(post, began.lane, began.ticket)]

    def _ended(self, ended: TurnEnded) -> list[BotPost]:
        turn = self._turns.pop(ended.ticket, None)
        posts = []
        if turn is not None and turn.lines:
            posts.append(self._work(ended.lane, ended.ticket, turn, is_running=False))
        if ended.diff.strip():
            post = replace(
                self._post("diff", f"diff:{ended.ticket}", words.diff_text(ended.diff)), diff=ended.diff
            )
            posts.append(self._of_turn(post, ended.lane, ended.ticket))
        text = words.ended(ended)
        if text:
            post = replace(self._post("banner", f"ended:{ended.ticket}", text), buttons=ended.buttons)
            posts.append(self._of_turn(post, ended.lane, ended.ticket))
        return posts

    # ── words and deeds ────────────────────────────────────────────────────

    def _delta(self, delta: TextDelta) -> list[BotPost]:
        if delta.part in self._whole:
            return []
        turn = self._turn(delta.ticket, delta.lane)
        if delta.kind == "thought":
            return []
        text = turn.texts.get(delta.part, "")
        if delta.offset != len(text):
            turn.texts.pop(delta.part, None)
            return []  # a part of it was missed; the whole comes when it is done
        posts = self._close_work(delta.lane, delta.ticket, turn)
        text = turn.texts[delta.part] = text + delta.text
        if not text.strip():
            return posts
        post = replace(
            self._post("text", f"text:{delta.part}", plain(text)),
            buttons=(STOP,),
            is_partial=True,
            is_stored=False,
        )
        return [*posts, self._of_turn(post, delta.lane, delta.ticket)]

    def _text(self, done: TextDone) -> list[BotPost]:
        turn = self._turn(done.ticket, done.lane)
        self._whole[done.part] = None
        while len(self._whole) > MAX_WHOLE:
            del self._whole[next(iter(self._whole))]
        if not done.text.strip():
            return []
        if done.kind == "thought":
            turn.lines[f"thought:{done.part}"] = words.thought_line(done.text)
            return [self._work(done.lane, done.ticket, turn)]
        turn.texts.pop(done.part, None)
        posts = self._close_work(done.lane, done.ticket, turn)
        post = self._post("text", f"text:{done.part}", plain(done.text))
        return [*posts, self._of_turn(post, done.lane, done.ticket)]

    def _activity(self, lane: str, ticket: str, activity: Activity) -> list[BotPost]:
        turn = self._turn(ticket, lane)
        turn.lines[activity.item_id] = words.activity_line(activity, self._cwd, turn.prefix)
        return [self._work(lane, ticket, turn)]

    def _close_work(self, lane: str, ticket: str, turn: _TurnPosts) -> list[BotPost]:
        """The last state of the list above the words that come: without its Stop button."""
        if not turn.lines:
            return []
        post = self._work(lane, ticket, turn, is_running=False)
        turn.begin_words()
        return [post]

    def _work(self, lane: str, ticket: str, turn: _TurnPosts, *, is_running: bool = True) -> BotPost:
        lines = list(turn.lines.values())
        left_out = len(lines) - MAX_WORK_LINES
        if left_out > 0:
            lines = [f"… {left_out} earlier", *lines[left_out:]]
        post = replace(
            self._post("work", f"work:{ticket}:{turn.segment}", "\n".join(lines)),
            buttons=(STOP,) if is_running else (),
            is_stored=False,
        )
        return self._of_turn(post, lane, ticket)

    def _plan(self, lane: str, ticket: str, plan: Plan) -> list[BotPost]:
        self._turn(ticket, lane)
        post = replace(self._post("plan", f"plan:{ticket}", words.plan_text(plan, lane)), is_stored=False)
        return [self._of_turn(post, lane, ticket)]

    # ── questions ──────────────────────────────────────────────────────────

    def _question(self, shown: QuestionShown) -> list[BotPost]:
        post = replace(
            self._post("question", f"question:{shown.number}", words.question_text(shown, self._cwd)),
            buttons=shown.buttons,
            dialogs=words.dialogs(shown),
            question=shown.number,
            for_owners=shown.for_owners,
            asked_by=shown.asked_by,
        )
        self._questions[shown.number] = post
        return [self._of_turn(post, shown.lane, shown.ticket)]

    def _question_over(self, over: QuestionOver) -> list[BotPost]:
        asked = self._questions.pop(over.number, None)
        if asked is None:
            return []  # it was never shown here
        return [replace(asked, text=words.over_text(over, asked.text), buttons=(), dialogs=())]

    # ── people and Laneway ─────────────────────────────────────────────────

    def _receipt(self, receipt: InputReceipt) -> list[BotPost]:
        if receipt.place != self._place:
            return []
        base = self._post("receipt", f"receipt:{receipt.message_id}", "")
        posts = [replace(base, target=receipt.message_id, receipt=receipt.kind)]
        if receipt.text and receipt.kind in TOLD_RECEIPTS:
            told = self._post("told", f"told:{receipt.message_id}:{receipt.kind}", plain(receipt.text))
            posts.append(replace(told, target=receipt.message_id))
        return posts

    def _said(self, said: Said) -> list[BotPost]:
        if said.place == self._place:
            return []
        images = f" [{said.images} image{'' if said.images == 1 else 's'}]" if said.images else ""
        who = f"👤 **{words.escaped(code_label(said.sender, 60))}** ({said.platform})"
        text = f"{who}: {words.escaped(plain(said.text))}{images}"
        return [self._post("told", f"said:{said.input_id}", text)]

    def _told(self, told: Told, number: int) -> list[BotPost]:
        if told.only is not None and told.only != self._place:
            return []
        text = LEVELS[told.level] + plain(told.text)
        return [replace(self._post("told", f"told:{number}", text), buttons=told.buttons)]

    def _file(self, file: FileShown, number: int) -> list[BotPost]:
        caption = words.escaped(plain(file.caption))
        post = self._post("file", f"file:{number}", caption)
        return [replace(post, path=file.path, name=code_label(file.name, 120), lane=file.lane)]

    def _post(self, kind: PostKind, key: str, text: str) -> BotPost:
        return BotPost(
            key=f"{self._conversation_id}/{key}",
            kind=kind,
            conversation_id=self._conversation_id,
            text=text,
        )

    @staticmethod
    def _of_turn(post: BotPost, lane: str, ticket: str) -> BotPost:
        return replace(post, lane=lane, ticket=ticket)
