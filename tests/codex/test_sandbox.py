"""A writable sandbox without trusting the folder: requests and unchanged config."""

from __future__ import annotations

import asyncio
import subprocess
from typing import Any

import pytest

from laneway.base.clock import LoopClock
from laneway.codex.sandbox import first_settings, policy, trusting_mode, without_mode
from laneway.core.hub import Hub
from laneway.core.ports import TextPart, ThreadSpec, TurnSpec
from laneway.testing.rehearse import rehearsal


@pytest.mark.parametrize(
    ("sandbox", "config", "mode"),
    [
        (None, {}, None),
        ("read-only", {}, None),
        ("workspace-write", {}, "workspace-write"),
        (None, {"sandbox_mode": "danger-full-access"}, "danger-full-access"),
        ("read-only", {"sandbox_mode": "danger-full-access"}, None),
    ],
)
def test_only_a_sandbox_that_writes_takes_the_detour(
    sandbox: str | None, config: dict[str, Any], mode: str | None
) -> None:
    """The parameter goes before the config, as with Codex itself."""
    assert trusting_mode(sandbox, config) == mode
    assert "sandbox_mode" not in without_mode(config)


def test_the_users_own_settings_of_the_sandbox_are_kept() -> None:
    """Under those that came along with the call."""
    users = {"network_access": True, "writable_roots": ["/a"], "exclude_slash_tmp": None, "new": 1}
    came = {"sandbox_workspace_write": {"network_access": False, "exclude_slash_tmp": True}}

    assert policy("workspace-write", users, came) == {
        "type": "workspaceWrite",
        "networkAccess": False,
        "writableRoots": ["/a"],
        "excludeSlashTmp": True,
    }
    assert policy("workspace-write", None, {}) == {"type": "workspaceWrite"}
    assert policy("danger-full-access", users, came) == {"type": "dangerFullAccess"}


async def test_a_repository_is_not_trusted_behind_its_owners_back() -> None:
    """Codex would write it down in the user's config.toml; both turns may write all the same."""
    async with rehearsal() as here:
        await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(here.work)], check=True)
        before = (here.home / "config.toml").read_bytes()
        async with Hub(here.engine, LoopClock()) as hub:
            session = await hub.start("me", ThreadSpec(cwd=here.work, sandbox="workspace-write"))
            for name in ("first", "second"):
                turn = session.say(TurnSpec(parts=(TextPart(f"%run touch {name}"),)))
                assert (await turn.result()).status == "completed"

            assert sorted(path.name for path in here.work.iterdir()) == [".git", "first", "second"]
            assert session.info.native["sandbox"]["type"] == "workspaceWrite"
        assert (here.home / "config.toml").read_bytes() == before


@pytest.mark.parametrize("mode", ["workspace-write", "danger-full-access"])
@pytest.mark.parametrize("asked_for", [None, "workspace-write"])
async def test_nor_is_it_where_the_users_own_config_lets_sessions_write(
    mode: str, asked_for: str | None
) -> None:
    """Codex takes that for trust in every repository; sessions may write, and config.toml stays as it was."""
    async with rehearsal() as here:
        await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(here.work)], check=True)
        file = here.home / "config.toml"
        file.write_text(f'sandbox_mode = "{mode}"\n' + file.read_text())
        before = file.read_bytes()
        async with Hub(here.engine, LoopClock()) as hub:
            session = await hub.start("me", ThreadSpec(cwd=here.work, sandbox=asked_for))
            turn = session.say(TurnSpec(parts=(TextPart("%run touch made"),)))
            assert (await turn.result()).status == "completed"
            assert (here.work / "made").exists()
            wanted = "workspaceWrite" if "workspace-write" in (mode, asked_for) else "dangerFullAccess"
            assert session.info.native["sandbox"]["type"] == wanted
        assert file.read_bytes() == before


async def test_a_profile_of_the_users_own_holds_from_the_first_turn_on_and_brings_no_trust() -> None:
    """Codex would trust the repository for it as well; and what it comes to is not told before."""
    async with rehearsal() as here:
        await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(here.work)], check=True)
        file = here.home / "config.toml"
        profile = '[permissions.mine.filesystem]\n":root" = "read"\n":workspace_roots" = { "." = "write" }\n'
        file.write_text(f'default_permissions = "mine"\n{file.read_text()}\n{profile}')
        before = file.read_bytes()
        async with Hub(here.engine, LoopClock()) as hub:
            session = await hub.start("me", ThreadSpec(cwd=here.work))
            assert session.info.native["sandbox"] is None
            assert session.info.native["activePermissionProfile"] == {"id": "mine"}
            for name in ("first", "second"):
                turn = session.say(TurnSpec(parts=(TextPart(f"%run touch {name}"),)))
                assert (await turn.result()).status == "completed"
            assert sorted(path.name for path in here.work.iterdir()) == [".git", "first", "second"]
        assert file.read_bytes() == before


def test_what_somebody_has_decided_about_a_folder_is_left_to_codex() -> None:
    """Trusted or not: a plain start changes nothing any more."""
    config = {"sandbox_mode": "workspace-write", "projects": {"/a": {"trust_level": "untrusted"}}}
    writes = {"sandboxPolicy": {"type": "workspaceWrite"}}
    assert first_settings(None, config, "/a", {}) is None
    assert first_settings(None, config, "/b", {}) == writes
    assert first_settings(None, {"default_permissions": ":workspace"}, "/b", {}) == writes
    assert first_settings(None, {"default_permissions": "mine"}, "/b", {}) == {"permissions": "mine"}
    assert first_settings(None, {"sandbox_mode": "read-only"}, "/b", {}) is None
    assert first_settings(None, {}, "/b", {}) is None
