"""`TelegramApi`: calls of Telegram's Bot API over HTTP, with their errors as values of ours.

The token is a part of every address of that API, so no address and no text of a foreign exception leaves
this module. Needs `aiohttp`, which comes with `laneway[telegram]` and is imported when a client is opened.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from laneway.base.errors import LanewayError, UsageError
from laneway.base.plain import label

if TYPE_CHECKING:
    import aiohttp

API_URL = "https://api.telegram.org"
CALL_S = 30.0
"""For a call, uploads aside."""
FILE_S = 120.0
"""For a file, up or down."""
MAX_FILE_BYTES = 20 * 1024 * 1024
"""That bots may download."""
MAX_ERROR_CHARS = 300
_TOKEN = re.compile(r"(\d{1,20}):[A-Za-z0-9_-]{20,200}")


class TelegramRefused(LanewayError):
    """Telegram answered with an error. `code` is an HTTP status; the text is Telegram's own."""

    def __init__(self, code: int, description: str, parameters: Mapping[str, Any] | None = None) -> None:
        text = label(description, MAX_ERROR_CHARS)
        super().__init__(f"Telegram refused it: {text} ({code})")
        self.code = code
        self.description = text
        given = parameters or {}
        retry_after = given.get("retry_after")
        self.retry_after_s = float(retry_after) if isinstance(retry_after, (int, float)) else None
        self.migrated_to = given.get("migrate_to_chat_id")


class TelegramOffline(LanewayError):
    """Telegram could not be reached, or answered with nothing that can be understood. Whether the call took
    effect is not known."""


class Upload(msgspec.Struct, frozen=True):
    """A file that goes along with a call."""

    name: str
    content: bytes


def bot_id_of(token: str) -> str:
    """The numeric id of the bot, which is no secret. Raises `UsageError` for what is no token."""
    match = _TOKEN.fullmatch(token)
    if match is None:
        raise UsageError(
            "The token of the Telegram bot is not valid: it is a number, a colon and 35 letters, as "
            "@BotFather gives it. Set it by LANEWAY_TELEGRAM_TOKEN or `laneway setup telegram`."
        )
    return match[1]


class TelegramApi:
    """`async with TelegramApi(token) as api: await api.call("getMe")`."""

    def __init__(self, token: str, url: str = API_URL) -> None:
        self.bot_id = bot_id_of(token)
        self._base = f"{url.rstrip('/')}/bot{token}/"
        self._files = f"{url.rstrip('/')}/file/bot{token}/"
        self._is_own_server = url != API_URL
        """A Bot API server of the user's own names files of this machine."""
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        import aiohttp

        # Telegram's address may only be reached through a proxy; the environment names it.
        self._session = aiohttp.ClientSession(trust_env=True)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        files: Mapping[str, Upload] | None = None,
        *,
        timeout_s: float = CALL_S,
    ) -> Any:
        """The call's result. Raises `TelegramRefused` and `TelegramOffline`."""
        import aiohttp

        assert self._session is not None, "the client is not open"
        given = {key: value for key, value in (params or {}).items() if value is not None}
        body: dict[str, Any] = {"json": given}
        if files:
            timeout_s = max(timeout_s, FILE_S)
            body = {"data": _form(given, files)}
        try:
            async with self._session.post(
                self._base + method,
                timeout=aiohttp.ClientTimeout(total=timeout_s),
                allow_redirects=False,
                **body,
            ) as response:
                return _result(response.status, await response.read())
        except (aiohttp.ClientError, TimeoutError, OSError):
            raise TelegramOffline("Telegram could not be reached.") from None

    async def download(self, file_id: str) -> bytes:
        """A file that somebody sent. Raises what `call` raises, and `UsageError` if it is too large."""
        import aiohttp

        assert self._session is not None, "the client is not open"
        file = await self.call("getFile", {"file_id": file_id})
        path = file.get("file_path") if isinstance(file, dict) else None
        if not isinstance(path, str):
            raise TelegramOffline("Telegram did not say where the file is.")
        if path.startswith("/") and self._is_own_server:
            return await asyncio.to_thread(_read, Path(path))
        try:
            async with self._session.get(
                self._files + path, timeout=aiohttp.ClientTimeout(total=FILE_S), allow_redirects=False
            ) as response:
                if response.status != 200:
                    raise TelegramRefused(response.status, "the file cannot be had")
                return await _bounded(response)
        except (aiohttp.ClientError, TimeoutError, OSError):
            raise TelegramOffline("Telegram could not be reached.") from None


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    pieces, size = [], 0
    async for piece in response.content.iter_chunked(64 * 1024):
        size += len(piece)
        if size > MAX_FILE_BYTES:
            raise UsageError("The file is too large.")
        pieces.append(piece)
    return b"".join(pieces)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise UsageError("The file is too large.")
    return content


def _form(params: Mapping[str, Any], files: Mapping[str, Upload]) -> aiohttp.FormData:
    import aiohttp

    form = aiohttp.FormData()
    for key, value in params.items():
        form.add_field(key, value if isinstance(value, str) else msgspec.json.encode(value).decode())
    for key, upload in files.items():
        form.add_field(key, upload.content, filename=upload.name, content_type="application/octet-stream")
    return form


class _Response(msgspec.Struct):
    ok: bool
    result: Any = None
    error_code: int = 0
    description: str = ""
    parameters: dict[str, Any] = {}


_decode = msgspec.json.Decoder(_Response).decode


def _result(status: int, content: bytes) -> Any:
    try:
        response = _decode(content)
    except (msgspec.DecodeError, msgspec.ValidationError):
        # A gateway in front of Telegram answers in HTML.
        raise TelegramOffline(f"Telegram answered with something else (HTTP {status}).") from None
    if response.ok:
        return response.result
    code = response.error_code or status
    if code >= 500:
        raise TelegramOffline(f"Telegram has a problem of its own ({code}).")
    raise TelegramRefused(code, response.description, response.parameters)
