"""Additional directories: written wherever the session's own folder may be, and nowhere else."""

from __future__ import annotations

from pathlib import Path

from tests.doors.acp.support import Client, Stage, stage


async def has_written(here: Stage, client: Client, session: str, mode: str, folder: Path) -> bool:
    """Whether a command of a session in this mode could write there; nobody grants it anything."""
    await client.ask("session/set_mode", {"sessionId": session, "modeId": mode})
    await client.prompt(session, f"%run touch {folder}/{mode} || true")
    return (folder / mode).exists()


async def test_further_folders_are_written_where_the_sessions_own_may_be(tmp_path: Path) -> None:
    """Also by an adapter that starts later and is given them again; config.toml stays as it was."""
    async with stage(tmp_path) as here:
        config = (here.home / "config.toml").read_bytes()
        more, other = here.home.parent / "more", here.home.parent / "other"
        for folder in (more, other):
            folder.mkdir()
        async with here.agent() as client:
            session = await client.new(additionalDirectories=[str(more)])
            assert await has_written(here, client, session, "code", more)
            assert not await has_written(here, client, session, "code", other)
            assert not await has_written(here, client, session, "read-only", more)
        (more / "code").unlink()
        async with here.agent() as client:
            await client.load(session, additionalDirectories=[str(more)])
            assert await has_written(here, client, session, "code", more)
            assert not await has_written(here, client, session, "code", other)
        assert (here.home / "config.toml").read_bytes() == config
