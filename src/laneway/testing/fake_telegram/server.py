"""The HTTP of the fake Telegram: `/bot<token>/<method>`, long polls, and files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from aiohttp import web

from laneway.core.ports import Clock
from laneway.testing.call_faults import CallFaults
from laneway.testing.fake_telegram.calls import BotApiCall
from laneway.testing.fake_telegram.checks import FIELDS, BotApiRefusal, bad, check_fields
from laneway.testing.fake_telegram.limits import BotApiLimits
from laneway.testing.fake_telegram.methods import BotApiMethods
from laneway.testing.fake_telegram.world import BotApiWorld, Json

PACED = frozenset(
    {
        "sendMessage",
        "sendRichMessage",
        "sendMessageDraft",
        "sendPhoto",
        "sendDocument",
        "sendMediaGroup",
        "editMessageText",
        "editMessageReplyMarkup",
    }
)
"""What counts for the rate of a chat."""
TAKEN_OVER = (
    "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
)
HAS_WEBHOOK = (
    "Conflict: can't use getUpdates method while webhook is active; "
    "use deleteWebhook to delete the webhook first"
)
MAX_UPDATES = 100


class BotApiServer:
    def __init__(self, world: BotApiWorld, token: str, clock: Clock, limits: BotApiLimits) -> None:
        self._world, self.token, self._clock, self.limits = world, token, clock, limits
        self.methods = BotApiMethods(world)
        self.calls: list[BotApiCall] = []
        self.refused: list[BotApiRefusal] = []
        """Answers 400: mistakes of the caller."""
        self.faults = CallFaults()
        self.polls = 0
        """Long polls that have begun."""
        self.on_change: Callable[[], None] = lambda: None
        self._poll: asyncio.Future[None] | None = None
        self._has_updates = asyncio.Event()

    def routes(self) -> list[web.RouteDef]:
        return [
            web.route("*", "/bot{token}/{method}", self._serve),
            web.get("/file/bot{token}/{path}", self._file),
        ]

    def close(self) -> None:
        if self._poll is not None and not self._poll.done():
            self._poll.cancel()

    @property
    def is_polled(self) -> bool:
        """Whether a long poll waits now."""
        return self._poll is not None and not self._poll.done()

    def tell_updates(self) -> None:
        self._has_updates.set()

    # ── calls ──────────────────────────────────────────────────────────────

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        params, files = await _params(request)
        call = BotApiCall(method=method, params=params, at=self._clock.now())
        self.calls.append(call)
        fault = self.faults.take(method)
        if fault is not None and not fault.takes_effect:
            return self._failed(request, call, fault.status, fault.description)
        try:
            result = await self._run(request, method, params, files)
            answer: Json = {"ok": True, "result": result}
            call.status = 200
        except BotApiRefusal as refusal:
            if refusal.code == 400:
                self.refused.append(refusal)
            call.status = refusal.code
            answer = {"ok": False, "error_code": refusal.code, "description": refusal.description}
            if refusal.parameters:
                answer["parameters"] = refusal.parameters
        self.on_change()
        held = self.faults.take_held(method)
        if held is not None:
            held.reached.set()
            await held.release.wait()
        if fault is not None:
            return self._failed(request, call, fault.status, fault.description)
        return web.json_response(answer, status=call.status)

    def _failed(self, request: web.Request, call: BotApiCall, status: int, why: str) -> web.StreamResponse:
        call.status = status
        self.on_change()
        if status == 0:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if 400 <= status < 500:
            answer = {"ok": False, "error_code": status, "description": why}
            return web.json_response(answer, status=status)
        return web.Response(status=status, text=f"<html>{why}</html>", content_type="text/html")

    async def _run(
        self, request: web.Request, method: str, params: Json, files: dict[str, tuple[str, bytes]]
    ) -> Any:
        if request.match_info["token"] != self.token:
            raise BotApiRefusal(401, "Unauthorized")
        if method not in FIELDS:
            raise BotApiRefusal(404, "Not Found: method not found")
        check_fields(method, params)
        if method == "getUpdates":
            return await self._updates(params)
        if method in PACED:
            wait = self.limits.check(int(params.get("chat_id", 0)), len(params.get("media") or "1"))
            if wait:
                text = f"Too Many Requests: retry after {wait}"
                raise BotApiRefusal(429, text, {"retry_after": wait})
        return self.methods.run(method, params, files)

    async def _updates(self, params: Json) -> list[Json]:
        if self._world.webhook:
            raise BotApiRefusal(409, HAS_WEBHOOK)
        if self._poll is not None and not self._poll.done():
            self._poll.set_exception(BotApiRefusal(409, TAKEN_OVER))
            self._poll.exception()
        mine = self._poll = asyncio.get_running_loop().create_future()
        self.polls += 1
        self.on_change()
        offset = int(params.get("offset", 0))
        self._world.updates[:] = [each for each in self._world.updates if each["update_id"] >= offset]
        try:
            if not self._world.updates and params.get("timeout", 0):
                await self._wait_updates(mine, float(params["timeout"]))
            if mine.done():
                mine.result()
        finally:
            if not mine.done():
                mine.set_result(None)
        wanted = params.get("allowed_updates")
        found = self._world.updates[: int(params.get("limit", MAX_UPDATES))]
        return [each for each in found if not wanted or not set(each).isdisjoint(wanted)]

    async def _wait_updates(self, mine: asyncio.Future[None], seconds: float) -> None:
        self._has_updates.clear()
        waiting: asyncio.Future[Any] = asyncio.ensure_future(self._has_updates.wait())
        try:
            either: set[asyncio.Future[Any]] = {waiting, mine}
            await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()

    async def _file(self, request: web.Request) -> web.Response:
        if request.match_info["token"] != self.token:
            return web.Response(status=401)
        file = self._world.files.get(request.match_info["path"])
        return web.Response(status=404) if file is None else web.Response(body=file.content)


async def _params(request: web.Request) -> tuple[Json, dict[str, tuple[str, bytes]]]:
    """The parameters, as JSON or as a form, and the files that came with them."""
    if request.content_type == "application/json":
        given = await request.json()
        return (given if isinstance(given, dict) else {}), {}
    params: Json = {}
    files: dict[str, tuple[str, bytes]] = {}
    for name, value in (await request.post()).items():
        if isinstance(value, web.FileField):
            files[name] = (value.filename, value.file.read())
        else:
            params[name] = _typed(name, str(value))
    return params, files


_TEXTS = frozenset({"text", "caption", "callback_query_id", "file_id", "photo", "document", "parse_mode"})


def _typed(name: str, value: str) -> Any:
    if name in _TEXTS:
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise bad(f"can't parse {name}") from None
