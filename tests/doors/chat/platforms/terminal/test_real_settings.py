"""What the user has configured for Codex holds in `laneway chat`: approvals, the sandbox, the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doors.acp.support import stage
from tests.doors.acp.updates.test_plain_mappings import blind
from tests.doors.acp.witness import configure
from tests.doors.chat.engine_lanes import PNG
from tests.doors.chat.platforms.terminal.test_real_pipe import chat

INSIDE, OUTSIDE = "%run touch inside", "%run touch ../outside && echo written"
ASKED = "%run! touch asked"


NEVER = 'approval_policy = "never"\nsandbox_mode = "workspace-write"'


@pytest.mark.covers("003-case.5")
@pytest.mark.parametrize("by", ["nobody", "config.toml", "the setting"])
async def test_the_users_own_word_decides_whether_codex_asks(tmp_path: Path, by: str) -> None:
    """Without one it reads, and asks to do more; told never to, it works in a workspace sandbox."""
    async with stage(tmp_path) as here:
        if by == "config.toml":
            configure(here, NEVER)
        env = {
            **here.environment,
            **({"LANEWAY_CHAT_CODEX_APPROVALS": "never"} if by == "the setting" else {}),
        }
        ran = await chat(here.work, "--lane", "codex", stdin=f"{INSIDE}\n{OUTSIDE}\n{ASKED}\ny\n", **env)
        made = {path.name for path in here.work.iterdir()}
        assert ran.code == 0, ran.err
        assert "is ignored" not in ran.err
        asks = by == "nobody"
        assert ran.err.count("? Run this command?") == (1 if asks else 0)
        assert made == ({"asked"} if asks else {"inside"})
        assert not (here.work.parent / "outside").exists()


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
