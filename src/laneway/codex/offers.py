"""App-server's calls beyond threads and turns, behind the core's ports: undo, plan mode, MCP, skills."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Protocol

from laneway.base.errors import EngineRefused
from laneway.codex import access, thread_files
from laneway.codex.account import AccountCalls, CodexAccounts
from laneway.codex.turn_settings import plan_settings
from laneway.core.access import FolderConfig, Permit
from laneway.core.offers import McpServerStatus, Offers, PlanMode, Skill, ThreadState

SANDBOXES = ("read-only", "workspace-write", "danger-full-access")
APPROVALS = ("untrusted", "on-request", "never")
MAX_PAGES = 20
"""Of a paged list: a server whose list never ends must not keep a caller waiting."""
MAX_LISTED_TURNS = 50
"""Turns that are listed, newest first: more than are ever refused in a row."""


class Calls(Protocol):
    """The part of `CodexEngine` that these ports need."""

    async def call(self, method: str, params: Any = None) -> Any: ...


def offers(codex: AccountCalls, home: Path | None) -> Offers:
    """What Codex offers. `home` is the folder that it writes to, where it is known."""
    return Offers(
        steering=True,
        images=True,
        forks=True,
        live_output=True,
        exit_codes=True,
        schemas=True,
        codex_config=True,
        sandboxes=SANDBOXES,
        approvals=APPROVALS,
        access=CodexAccess(codex),
        accounts=CodexAccounts(codex),
        thread_files=CodexThreadFiles(codex, home),
        undo=CodexUndo(codex),
        planning=CodexPlanning(codex),
        mcp_servers=CodexMcpServers(codex),
        skills=CodexSkills(codex),
        reviews=True,
        compaction=True,
    )


class CodexAccess:
    def __init__(self, codex: Calls) -> None:
        self._codex = codex

    def state(self, opened: dict[str, Any]) -> ThreadState:
        return access.thread_state(opened)

    async def config(self, cwd: str) -> FolderConfig:
        answer = await self._codex.call("config/read", {"cwd": cwd, "includeLayers": False})
        config = answer.get("config") if isinstance(answer, dict) else None
        return access.folder_config(config if isinstance(config, dict) else {})

    async def last_permit(self, opened: dict[str, Any]) -> Permit:
        return await asyncio.to_thread(access.last_permit, opened)


class CodexPlanning:
    def __init__(self, codex: Calls) -> None:
        self._codex = codex

    async def switch(self, thread_id: str, mode: PlanMode) -> None:
        await self._codex.call("thread/settings/update", {"threadId": thread_id, **plan_settings(mode)})

    def is_on(self, settings: Any) -> bool:
        return access.is_planning(settings)


class CodexThreadFiles:
    def __init__(self, codex: Calls, home: Path | None) -> None:
        self._codex = codex
        self._home = home

    async def delete(self, thread_id: str) -> None:
        await self._codex.call("thread/delete", {"threadId": thread_id})

    async def has_writer(self, thread_id: str) -> bool:
        if self._home is None:
            return False
        return await asyncio.to_thread(thread_files.has_writer, self._home, thread_id)


class CodexUndo:
    def __init__(self, codex: Calls) -> None:
        self._codex = codex

    async def turns(self, thread_id: str) -> list[str]:
        params = {
            "threadId": thread_id,
            "limit": MAX_LISTED_TURNS,
            "sortDirection": "desc",
            "itemsView": "notLoaded",
        }
        try:
            turns = (await self._codex.call("thread/turns/list", params)).get("data") or []
        except EngineRefused:
            return []  # Codex's answer for a thread without any turn
        return [str(turn["id"]) for turn in turns]

    async def take_back(self, thread_id: str, turn_id: str) -> bool:
        try:
            await self._codex.call("thread/revert", {"threadId": thread_id, "beforeTurnId": turn_id})
        except EngineRefused as refusal:
            if not refusal.is_unknown_method:
                raise
            return False
        return True

    async def take_back_last(self, thread_id: str) -> None:
        await self._codex.call("thread/rollback", {"threadId": thread_id, "numTurns": 1})


class CodexMcpServers:
    def __init__(self, codex: Calls) -> None:
        self._codex = codex

    async def servers(self, thread_id: str) -> tuple[McpServerStatus, ...]:
        entries: list[Any] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            params = {"threadId": thread_id, "detail": "toolsAndAuthOnly", "cursor": cursor}
            page = await self._codex.call("mcpServerStatus/list", params)
            entries += page.get("data") or []
            cursor = page.get("nextCursor")
            if not cursor:
                break
        return tuple(_server(entry) for entry in entries if isinstance(entry, dict))


def _server(entry: dict[str, Any]) -> McpServerStatus:
    tools = entry.get("tools")
    return McpServerStatus(
        name=str(entry.get("name")),
        state=str(entry.get("runtimeStatus") or ""),
        tools=tuple(sorted(tools)) if isinstance(tools, dict) else (),
        error=str(entry.get("toolsError") or ""),
        needs_login=entry.get("authStatus") == "notLoggedIn",
    )


class CodexSkills:
    def __init__(self, codex: Calls) -> None:
        self._codex = codex

    async def skills(self, cwd: str) -> tuple[Skill, ...]:
        answer = await self._codex.call("skills/list", {"cwds": [cwd]})
        folders = answer.get("data") if isinstance(answer, dict) else None
        return tuple(
            Skill(str(skill.get("name")), _about(skill))
            for folder in folders or []
            if isinstance(folder, dict)
            for skill in folder.get("skills") or []
            if isinstance(skill, dict) and skill.get("enabled") is not False
        )


def _about(skill: dict[str, Any]) -> str:
    interface = skill.get("interface")
    brief = interface.get("shortDescription") if isinstance(interface, dict) else None
    return str(brief or skill.get("shortDescription") or skill.get("description") or "")
