"""A browser on this machine, opened by a program of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from laneway.doors.acp.accounts.browser import open_browser

NAME = "open" if sys.platform == "darwin" else "xdg-open"
URL = "https://auth.test/go?a=1&b=2"


def desk(folder: Path, exit_code: int = 0, name: str = NAME) -> dict[str, str]:
    """An environment with a screen and an opener that writes down what it was given."""
    opener = folder / name
    opener.write_text(f'#!/bin/sh\nprintf "%s" "$1" > "{folder}/opened"\necho noise\nexit {exit_code}\n')
    opener.chmod(0o755)
    return {"PATH": str(folder), "DISPLAY": ":0"}


async def test_the_address_is_handed_over_whole_and_nothing_is_said_on_our_streams(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Standard output belongs to the protocol."""
    assert await open_browser(URL, desk(tmp_path))
    assert (tmp_path / "opened").read_text() == URL
    assert capfd.readouterr() == ("", "")


async def test_an_opener_that_fails_has_opened_nothing(tmp_path: Path) -> None:
    """Then the page is shown in another way."""
    assert not await open_browser(URL, desk(tmp_path, exit_code=3))


@pytest.mark.parametrize("environment", [{"NO_BROWSER": "1"}, {"PATH": "/nowhere"}])
async def test_where_there_is_no_browser_none_is_tried(tmp_path: Path, environment: dict[str, str]) -> None:
    """By the user's word, or because there is no such program."""
    assert not await open_browser(URL, desk(tmp_path) | environment)
    assert not (tmp_path / "opened").exists()


@pytest.mark.skipif(sys.platform == "darwin", reason="every Mac has a screen")
async def test_without_a_screen_none_is_tried_but_windows_may_have_one(tmp_path: Path) -> None:
    """A text browser would take our streams."""
    environment = desk(tmp_path) | {"DISPLAY": ""}
    assert not await open_browser(URL, environment)
    desk(tmp_path, name="wslview")
    assert await open_browser(URL, environment | {"WSL_DISTRO_NAME": "Debian"})
