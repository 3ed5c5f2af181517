"""`DiscordApi`: single calls of Discord's REST API, and answers to interactions.

discord.py's own client waits out limits and repeats calls inside of one call; the outbox must hear of
them at once. So what is sent goes through here, and only the gateway and histories through discord.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import aiohttp
import msgspec

from laneway.base.clock import LoopClock
from laneway.core.ports import Clock

log = logging.getLogger(__name__)

CALL_S = 30.0
"""For one call with its answer; uploads included."""
ANSWER_S = 2.5
"""For the first answer to an interaction: Discord takes none after three seconds."""
ANY_CALL_S = 0.025
"""Between two calls: fifty in a second are allowed to a bot."""
MAX_ANSWER_BYTES = 4 * 1024 * 1024
AGENT = "DiscordBot (laneway, 1)"
NO_MENTIONS = {"parse": [], "replied_user": False}
"""Whatever a text says, nobody is notified by it."""
EPHEMERAL = 64

UNKNOWN_CHANNEL, UNKNOWN_MESSAGE, UNKNOWN_INTERACTION = 10003, 10008, 10062
MISSING_ACCESS, MISSING_RIGHTS, INVALID_FORM = 50001, 50013, 50035
THREAD_ARCHIVED, THREAD_LOCKED, HAS_THREAD = 50083, 160005, 160004
ACKNOWLEDGED, TOO_LARGE = 40060, 40005
MESSAGE = 4
"""The kind of an answer that is a message of its own."""

Json = dict[str, Any]


class DiscordUpload(msgspec.Struct, frozen=True):
    name: str
    data: bytes


class DiscordAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What came back: the body, or why there is none."""

    status: int
    """0: nothing came back."""
    body: Any = None
    code: int = 0
    """Discord's own code of an error."""
    why: str = ""
    """Of an error, in Discord's words or ours; never with the token."""
    retry_after_s: float | None = None
    """Of a 429: how long to wait …"""
    is_global: bool = False
    """… and whether with everything."""
    rest_s: float = 0.0
    """How long no further call of this kind would be taken, as the answer itself says."""

    @property
    def is_done(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_down(self) -> bool:
        """Whether it says nothing about the call itself: no network, no service, or no login."""
        return self.status in (0, 401) or self.status >= 500 or (self.status == 403 and not self.code)


class CallPace:
    """Spaces the calls of one bot, and holds them all while Discord wants none."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next_at = self._held_until = float("-inf")

    async def turn(self) -> None:
        """Wait until the next call may be made."""
        while True:
            now = self._clock.now()
            slot = max(now, self._next_at, self._held_until)
            self._next_at = slot + ANY_CALL_S
            if slot > now:
                await pause(self._clock, slot - now)
            if self._clock.now() >= self._held_until:
                return

    def hold(self, seconds: float) -> None:
        self._held_until = max(self._held_until, self._clock.now() + seconds)


async def pause(clock: Clock, seconds: float) -> None:
    """On the clock, which tests can turn faster."""
    is_over = asyncio.Event()
    cancel = clock.after(seconds, is_over.set)
    try:
        await is_over.wait()
    finally:
        cancel()


class DiscordApi:
    """`base_url` ends with the version. The session is the caller's."""

    def __init__(
        self, session: aiohttp.ClientSession, base_url: str, token: str, pace: CallPace | None = None
    ) -> None:
        self._session = session
        self._pace = pace or CallPace(LoopClock())
        self._base_url = base_url.rstrip("/")
        self._headers = {"Authorization": f"Bot {token}", "User-Agent": AGENT}

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        files: Sequence[DiscordUpload] = (),
        timeout_s: float = CALL_S,
        is_free: bool = False,
    ) -> DiscordAnswer:
        """One request; never repeated, and it raises nothing. `is_free`: under no limit of the bot."""
        if not is_free:
            await self._pace.turn()
        data: Any = None
        headers = dict(self._headers)
        if files:
            data = _form(body, files)
        elif body is not None:
            data = msgspec.json.encode(body)
            headers["Content-Type"] = "application/json"
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._session.request(
                    method, self._base_url + path, data=data, headers=headers, allow_redirects=False
                ) as response,
            ):
                raw = await read_bounded(response, MAX_ANSWER_BYTES)
                answer = _answer(response.status, response.headers, raw or b"")
        except (aiohttp.ClientError, OSError, TimeoutError) as problem:
            return DiscordAnswer(status=0, why=type(problem).__name__)
        if answer.is_global and answer.retry_after_s is not None:
            self._pace.hold(answer.retry_after_s)
        return answer

    async def respond(
        self,
        application_id: int | str,
        interaction_id: int | str,
        token: str,
        kind: int,
        data: Json | None = None,
    ) -> str:
        """The first answer to an interaction; returns the id of the message that it has made, if any.

        Tried once more within Discord's three seconds, if the first try came to nothing.
        """
        body: Json = {"type": kind}
        if data is not None:
            body["data"] = data
        path = f"/interactions/{interaction_id}/{token}/callback?with_response=1"
        answer = DiscordAnswer(status=0, why="no answer in time")
        try:
            async with asyncio.timeout(ANSWER_S):
                answer = await self.call("POST", path, body, is_free=True)
                if answer.is_down:
                    answer = await self.call("POST", path, body, is_free=True)
        except TimeoutError:
            pass  # what was answered last is logged
        if answer.code == ACKNOWLEDGED:  # it took effect, and only its answer was lost
            made = await self.call("GET", f"/webhooks/{application_id}/{token}/messages/@original")
            return str(made.body["id"]) if made.is_done and kind == MESSAGE else ""
        await self._logged(answer)
        callback = answer.body.get("interaction", {}) if isinstance(answer.body, dict) else {}
        return str(callback.get("response_message_id") or "")

    async def tell(self, application_id: int | str, token: str, text: str) -> DiscordAnswer:
        """A message for the person of an interaction alone, after its first answer."""
        return await self._logged(
            await self.call(
                "POST", f"/webhooks/{application_id}/{token}", private_message(text), is_free=True
            )
        )

    @staticmethod
    async def _logged(answer: DiscordAnswer) -> DiscordAnswer:
        if not answer.is_done:
            log.warning("an interaction was not answered: %s %s", answer.status, answer.why)
        return answer


def private_message(text: str) -> Json:
    """Seen by one person."""
    return {"content": text, "flags": EPHEMERAL, "allowed_mentions": NO_MENTIONS}


async def read_bounded(response: aiohttp.ClientResponse, max_bytes: int) -> bytes | None:
    """The whole body; none if it is longer."""
    pieces, size = [], 0
    async for piece in response.content.iter_chunked(64 * 1024):
        size += len(piece)
        if size > max_bytes:
            return None
        pieces.append(piece)
    return b"".join(pieces)


def _form(body: Any, files: Sequence[DiscordUpload]) -> aiohttp.FormData:
    form = aiohttp.FormData(quote_fields=False)
    listed = [{"id": index, "filename": file.name} for index, file in enumerate(files)]
    payload = msgspec.json.encode({**(body or {}), "attachments": listed}).decode()
    form.add_field("payload_json", payload, content_type="application/json")
    for index, file in enumerate(files):
        form.add_field(
            f"files[{index}]", file.data, filename=file.name, content_type="application/octet-stream"
        )
    return form


def _answer(status: int, headers: Any, raw: bytes) -> DiscordAnswer:
    try:
        body = msgspec.json.decode(raw) if raw else None
    except msgspec.DecodeError:
        body = None  # a page of a server in between
    if 200 <= status < 300:
        rest_s = _number(headers.get("X-RateLimit-Reset-After"))
        is_used_up = headers.get("X-RateLimit-Remaining") == "0"
        return DiscordAnswer(status=status, body=body, rest_s=rest_s if is_used_up else 0.0)
    error = body if isinstance(body, dict) else {}
    code = error.get("code")
    why = error.get("message")
    answer = DiscordAnswer(
        status=status,
        code=code if isinstance(code, int) else 0,
        why=why if isinstance(why, str) else f"HTTP {status}",
    )
    if status == 429:
        waits = error.get("retry_after", headers.get("Retry-After"))
        return msgspec.structs.replace(
            answer, retry_after_s=max(0.1, _number(waits)), is_global=error.get("global") is True
        )
    return answer


def _number(value: Any) -> float:
    try:
        return max(0.0, float(value or 0))
    except (TypeError, ValueError):
        return 1.0
