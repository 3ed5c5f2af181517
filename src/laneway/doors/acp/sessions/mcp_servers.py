"""The client's MCP servers as config of one thread. The user's config file is never touched.

Pure. Codex merges a thread's config into the user's, key by key: two servers of one name would become
a mixture of both. So the user's own server keeps its name, and the client's is left out with a note.
What an entry holds (environment, headers) may be secret: it goes to Codex and nowhere else, and no
sentence here repeats it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import msgspec

from laneway.base.plain import code_label
from laneway.base.prepare import prepare
from laneway.doors.acp.faults import bad_params

MAX_SERVERS = 64
"""Of one session: each is a process, or a connection, for as long as its thread is open."""
SHOWN_CHARS = 60
"""Of a name in a sentence."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
"""Codex refuses most of these; a dot would split the key that names the server."""


class ClientMcpServers(msgspec.Struct, frozen=True):
    config: dict[str, Any]
    """For `ThreadSpec.extras`: sent at every start and resume, and kept nowhere."""
    notes: tuple[str, ...] = ()
    """What the user should know, in sentences."""


def servers(wanted: Any, taken: Collection[str] = ()) -> ClientMcpServers:
    """`wanted` as it stands in the request; `taken` are the names in the user's own config."""
    if wanted is None:
        return ClientMcpServers({})
    if not isinstance(wanted, list):
        raise bad_params("mcpServers must be a list.")
    if len(wanted) > MAX_SERVERS:
        raise bad_params(f"A session can have at most {MAX_SERVERS} MCP servers; these are {len(wanted)}.")
    entries: dict[str, Any] = {}
    notes: list[str] = []
    seen: set[str] = set()
    for server in wanted:
        name, fields = _named(server), _fields(server)
        if name in seen:
            raise bad_params(f"Two MCP servers are called {name}. Give each a name of its own.")
        seen.add(name)
        if name in taken:
            notes.append(
                f"The MCP server {name} of your Codex configuration is used;"
                " the one of the same name that your editor offers is left out."
            )
        else:
            entries[name] = fields
    return ClientMcpServers({"mcp_servers": entries} if entries else {}, tuple(notes))


def _named(server: Any) -> str:
    if not isinstance(server, dict):
        raise bad_params("Each entry of mcpServers must be an object.")
    name = server.get("name")
    safe = _UNSAFE.sub("_", name) if isinstance(name, str) else ""
    if not safe.strip("_-"):
        raise bad_params("Each MCP server needs a name with at least one letter or digit.")
    return safe


def _fields(server: dict[str, Any]) -> dict[str, Any]:
    match server.get("type", "stdio"):
        case "stdio":
            return _program(server)
        case "http":
            return _address(server)
        case "sse":
            raise bad_params(
                f"The MCP server {_shown(server)} speaks SSE, which Codex does not."
                " Give its Streamable HTTP address with type http, or start it with a command."
            )
        case _:
            raise bad_params(f"The MCP server {_shown(server)} is neither of type stdio nor http.")


def _program(server: dict[str, Any]) -> dict[str, Any]:
    command, args = server.get("command"), server.get("args", [])
    if not isinstance(command, str) or not command:
        raise bad_params(f"The MCP server {_shown(server)} needs a command.")
    if not isinstance(args, list) or not all(isinstance(word, str) for word in args):
        raise bad_params(f"The args of the MCP server {_shown(server)} must be a list of texts.")
    fields: dict[str, Any] = {"command": command, "args": args}
    environment = _pairs(server, "env")
    return {**fields, "env": environment} if environment else fields


def _address(server: dict[str, Any]) -> dict[str, Any]:
    url = server.get("url")
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        raise bad_params(f"The MCP server {_shown(server)} needs a url that starts with http:// or https://.")
    headers = _pairs(server, "headers")
    return {"url": url, "http_headers": headers} if headers else {"url": url}


def _pairs(server: dict[str, Any], key: str) -> dict[str, str]:
    pairs = server.get(key, [])
    try:
        found = msgspec.convert(pairs, list[_Pair])
    except msgspec.ValidationError:
        # The error's own text would not do: it may quote what must stay secret.
        message = f"The {key} of the MCP server {_shown(server)} must be a list of names and values."
        raise bad_params(message) from None
    return {pair.name: pair.value for pair in found}


@prepare
class _Pair(msgspec.Struct):
    name: str
    value: str


def _shown(server: dict[str, Any]) -> str:
    return code_label(str(server["name"]), SHOWN_CHARS)
