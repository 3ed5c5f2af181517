"""Converts the client's `mcpServers` into the config of one thread. The user's config file is not changed.

Pure. Codex merges a thread's config into the user's, key by key: two servers of one name would be
mixed. So the user's server keeps its name, and the client's is left out with a note. The contents of
an entry (environment, headers) may be secret: they go to Codex only, and no message here quotes them.
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
"""In one session: each is a process or a connection for as long as its thread is open."""
LABEL_CHARS = 60
"""Of a name in an error message."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
"""Codex refuses most of these; a dot would split the key that names the server."""


class ClientMcpServers(msgspec.Struct, frozen=True):
    config: dict[str, Any]
    """For `ThreadSpec.extras`: sent at every start and resume, and never stored."""
    notes: tuple[str, ...] = ()
    """Warnings for the user, in sentences."""


def servers(entries: Any, taken: Collection[str] = ()) -> ClientMcpServers:
    """Convert the request's `mcpServers`; `taken` are the names in the user's own config."""
    if entries is None:
        return ClientMcpServers({})
    if not isinstance(entries, list):
        raise bad_params("mcpServers must be a list.")
    if len(entries) > MAX_SERVERS:
        raise bad_params(f"A session can have at most {MAX_SERVERS} MCP servers; these are {len(entries)}.")
    config: dict[str, Any] = {}
    notes: list[str] = []
    seen: set[str] = set()
    for entry in entries:
        name, fields = _name(entry), _fields(entry)
        if name in seen:
            raise bad_params(f"Two MCP servers are called {name}. Give each a name of its own.")
        seen.add(name)
        if name in taken:
            notes.append(
                f"The MCP server {name} of your Codex configuration is used;"
                " the one of the same name that your editor offers is left out."
            )
        else:
            config[name] = fields
    return ClientMcpServers({"mcp_servers": config} if config else {}, tuple(notes))


def _name(server: Any) -> str:
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
            return _stdio_server(server)
        case "http":
            return _http_server(server)
        case "sse":
            raise bad_params(
                f"The MCP server {_label(server)} speaks SSE, which Codex does not."
                " Give its Streamable HTTP address with type http, or start it with a command."
            )
        case _:
            raise bad_params(f"The MCP server {_label(server)} is neither of type stdio nor http.")


def _stdio_server(server: dict[str, Any]) -> dict[str, Any]:
    command, args = server.get("command"), server.get("args", [])
    if not isinstance(command, str) or not command:
        raise bad_params(f"The MCP server {_label(server)} needs a command.")
    if not isinstance(args, list) or not all(isinstance(word, str) for word in args):
        raise bad_params(f"The args of the MCP server {_label(server)} must be a list of texts.")
    fields: dict[str, Any] = {"command": command, "args": args}
    environment = _pairs(server, "env")
    return {**fields, "env": environment} if environment else fields


def _http_server(server: dict[str, Any]) -> dict[str, Any]:
    url = server.get("url")
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        raise bad_params(f"The MCP server {_label(server)} needs a url that starts with http:// or https://.")
    headers = _pairs(server, "headers")
    return {"url": url, "http_headers": headers} if headers else {"url": url}


def _pairs(server: dict[str, Any], key: str) -> dict[str, str]:
    pairs = server.get(key, [])
    try:
        converted = msgspec.convert(pairs, list[_Pair])
    except msgspec.ValidationError:
        # Not the error's own text: it may quote a secret.
        message = f"The {key} of the MCP server {_label(server)} must be a list of names and values."
        raise bad_params(message) from None
    return {pair.name: pair.value for pair in converted}


@prepare
class _Pair(msgspec.Struct):
    name: str
    value: str


def _label(server: dict[str, Any]) -> str:
    return code_label(str(server["name"]), LABEL_CHARS)
