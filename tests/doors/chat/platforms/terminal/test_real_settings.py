"""What the user has configured for Codex holds in `laneway chat`: approvals, the sandbox, the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doors.acp.support import stage
from tests.doors.acp.updates.test_plain_mappings import blind
from tests.doors.chat.engine_lanes import PNG
from tests.doors.chat.platforms.terminal.test_real_pipe import chat

INSIDE, OUTSIDE = "%run touch inside", "%run touch ../outside && echo written"
ASKED = "%run! touch asked"


@pytest.mark.covers("003-case.5")
async def test_the_users_own_configuration_decides_whether_codex_asks(tmp_path: Path) -> None:
    """Unless the setting says never: then it works in a workspace sandbox, and nobody is asked."""
    policy = 'approval_policy = "on-request"\nsandbox_mode = "read-only"\n'
    async with stage(tmp_path, policy) as here:
        lines = f"{INSIDE}\n{OUTSIDE}\n{ASKED}\ny\n"
        words = ("--lane", "codex")
        ran = await chat(here.work, *words, stdin=lines, **here.environment)
        made = {path.name for path in here.work.iterdir()}
        assert (ran.code, ran.err.count("? Run this command?")) == (0, 1), ran.err
        assert made == {"asked"}
        (here.work / "asked").unlink()

        never = {**here.environment, "LANEWAY_CHAT_CODEX_APPROVALS": "never"}
        ran = await chat(here.work, *words, stdin=lines, **never)
        made = {path.name for path in here.work.iterdir()}
        assert "? Run this command?" not in ran.err
        assert "inside" in made
        assert not (here.work.parent / "outside").exists()
        assert "│ written" not in ran.err


async def test_a_model_that_takes_no_images_gets_none_and_that_is_told(tmp_path: Path) -> None:
    """And nothing is sent without it in silence."""
    async with stage(tmp_path) as here:
        blind(here)
        (here.work / "dot.png").write_bytes(PNG)
        lines = "/attach dot.png\n%say what is this?\n%say And without it.\n"
        ran = await chat(here.work, "--lane", "codex", stdin=lines, **here.environment)
        assert ran.code == 1
        assert "✘ codex: The model gpt-5.5 takes no images." in ran.err
        assert ran.out == "And without it.\n"
        assert "what is this?" not in str(here.requests)
