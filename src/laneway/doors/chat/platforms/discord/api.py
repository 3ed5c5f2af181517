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

log = logging.getLogger(__name__)

CALL_S = 30.0
"""For one call with its answer; uploads included."""
ANSWER_S = 2.5
"""For the first answer to an interaction: Discord takes none after three seconds."""
MAX_ANSWER_BYTES = 4 * 1024 * 1024
AGENT = "DiscordBot (laneway, 1)"
NO_MENTIONS = {"parse": [], "replied_user": False}
"""Whatever a text says, nobody is notified by it."""
EPHEMERAL = 64

UNKNOWN_CHANNEL, UNKNOWN_MESSAGE, UNKNOWN_INTERACTION = 10003, 10008, 10062
MISSING_ACCESS, MISSING_RIGHTS, INVALID_FORM = 50001, 50013, 50035
THREAD_ARCHIVED, THREAD_LOCKED, HAS_THREAD = 50083, 160005, 160004

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


class DiscordApi:
    """`base_url` ends with the version. The session is the caller's."""

    def __init__(self, session: aiohttp.ClientSession, base_url: str, token: str) -> None:
        self._session = session
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
    ) -> DiscordAnswer:
        """One request; never repeated, and it raises nothing."""
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
                return _answer(response.status, response.headers, raw or b"")
        except (aiohttp.ClientError, OSError, TimeoutError) as problem:
            return DiscordAnswer(status=0, why=type(problem).__name__)

    async def respond(
        self, interaction_id: int | str, token: str, kind: int, data: Json | None = None
    ) -> DiscordAnswer:
        """The first answer to an interaction, with the message that it may have made."""
        body: Json = {"type": kind}
        if data is not None:
            body["data"] = data
        path = f"/interactions/{interaction_id}/{token}/callback?with_response=1"
        return await self._logged(await self.call("POST", path, body, timeout_s=ANSWER_S))

    async def tell(self, application_id: int | str, token: str, text: str) -> DiscordAnswer:
        """A message for the person of an interaction alone, after its first answer."""
        return await self._logged(
            await self.call("POST", f"/webhooks/{application_id}/{token}", private_message(text))
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
