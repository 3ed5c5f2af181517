"""Files of the page: uploads under names of ours, files of lanes, and how much the page itself weighs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from laneway.doors.chat.platforms.web.chat_part import ChatPart
from laneway.doors.chat.platforms.web.files_out import MAX_FILE_BYTES, read_file_out
from laneway.doors.chat.platforms.web.uploads import KEEP_S, Uploads
from laneway.doors.console.static_files import SHELL_FOLDER

PANELS = SHELL_FOLDER.parent / "panels" / "static"
MAX_PAGE_BYTES = 150_000
"""Of scripts and styles, all parts together, as they are sent."""


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


# ── uploads ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "content", "suffix", "is_image"),
    [
        ("../../etc/passwd", b"x", ".bin", False),
        ("a.PNG", b"not an image", ".bin", False),
        ("a.txt", b"\x89PNG\r\n\x1a\n....", ".png", True),
        ("a.tar.gz", b"x", ".gz", False),
        ("a.\u202egnp", b"x", ".bin", False),
        ("x" * 5000 + ".md", b"x", ".md", False),
        ("a.webp", b"RIFF....WEBPVP8 ", ".webp", True),
    ],
)
async def test_an_upload_gets_a_name_of_ours(
    tmp_path: Path, name: str, content: bytes, suffix: str, is_image: bool
) -> None:
    """What it is, is seen from its content; its own name is only shown, and made harmless."""
    uploads = Uploads(tmp_path / "uploads")
    stored = await uploads.keep(pieces(content[:4], content[4:]), name)
    assert (Path(stored.id).suffix, stored.is_image, stored.size) == (suffix, is_image, len(content))
    assert len(Path(stored.id).stem) == 24
    assert "\u202e" not in stored.name
    found = uploads.find(stored.id)
    assert found == tmp_path / "uploads" / stored.id
    assert [path.name for path in (tmp_path / "uploads").iterdir()] == [stored.id]


async def test_an_upload_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    async def breaks() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionError

    uploads = Uploads(tmp_path / "uploads")
    with pytest.raises(ConnectionError):
        await uploads.keep(breaks(), "a.txt")
    assert list((tmp_path / "uploads").iterdir()) == []


async def test_uploads_are_removed_after_seven_days(tmp_path: Path) -> None:
    now = 1_800_000_000.0
    uploads = Uploads(tmp_path / "uploads", wall=lambda: now)
    old = await uploads.keep(pieces(b"x"), "old.txt")
    young = await uploads.keep(pieces(b"x"), "young.txt")
    for stored, age in ((old, KEEP_S + 1), (young, KEEP_S - 1)):
        os.utime(tmp_path / "uploads" / stored.id, (now - age, now - age))
    assert KEEP_S == 7 * 24 * 3600
    assert uploads.remove_old() == 1
    assert (uploads.find(old.id), uploads.find(young.id)) == (None, tmp_path / "uploads" / young.id)


@pytest.mark.parametrize("upload_id", ["", "..", "../secret", "a" * 24, "0" * 24 + ".png/..", "0" * 24])
def test_only_ids_of_uploads_are_found(tmp_path: Path, upload_id: str) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "uploads").mkdir()
    (tmp_path / "uploads" / ("0" * 24)).symlink_to(tmp_path / "secret")
    assert Uploads(tmp_path / "uploads").find(upload_id) is None


# ── files of lanes ─────────────────────────────────────────────────────────


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / ".gitignore").write_text(".env\nbuild/\n")
    (folder / ".env").write_text("SECRET=1")
    (folder / "chart.txt").write_text("chart")
    (folder / "build").mkdir()
    (folder / "build" / "out.txt").write_text("out")
    (folder / "link").symlink_to("/etc/hostname")
    (folder / "linked.txt").symlink_to("chart.txt")
    (tmp_path / "outside.txt").write_text("outside")
    return folder


@pytest.mark.parametrize("named", ["chart.txt", "linked.txt", "./build/../chart.txt"])
def test_a_file_below_the_folder_is_sent_at_once(project: Path, named: str) -> None:
    assert read_file_out(named, project).content == b"chart"
    assert read_file_out(str(project / "chart.txt"), project).content == b"chart"


@pytest.mark.parametrize(
    ("named", "why"),
    [
        (".env", "is ignored by git"),
        ("build/out.txt", "is ignored by git"),
        ("../outside.txt", "is outside of the conversation's folder"),
        ("link", "is outside of the conversation's folder"),
        (".git/config", "belongs to git itself"),
    ],
)
def test_other_files_need_an_approval(project: Path, named: str, why: str) -> None:
    refused = read_file_out(named, project)
    assert (refused.status, refused.needs_approval, refused.content) == (403, True, b"")
    assert why in refused.problem
    allowed = read_file_out(named, project, is_approved=True)
    assert (allowed.status, bool(allowed.content)) == (200, True)


def test_what_is_no_file_or_too_large_is_not_sent_even_with_an_approval(project: Path) -> None:
    """A pipe is not waited for."""
    os.mkfifo(project / "pipe")
    with (project / "large.bin").open("wb") as large:
        large.truncate(MAX_FILE_BYTES + 1)
    (project / "loop").symlink_to("loop")
    for named, status in (
        ("pipe", 404),
        ("build", 403),
        (".", 404),
        ("missing", 404),
        ("loop", 404),
        ("a\0b", 404),
        ("large.bin", 413),
    ):
        assert read_file_out(named, project).status == status, named
        approved = read_file_out(named, project, is_approved=True)
        assert approved.content == b"", named
        assert approved.problem, named


# ── the page itself ────────────────────────────────────────────────────────


def test_all_scripts_and_styles_together_are_small() -> None:
    """Under 150 kB, every part included, without a build step."""
    folders = {SHELL_FOLDER, ChatPart.static, *PANELS.iterdir()}
    files = [path for folder in folders for path in folder.iterdir() if path.suffix in (".js", ".css")]
    names = {path.name for path in files}
    assert {"page.js", "chat.js", "jobs.js", "page.css"} <= names
    total = sum(path.stat().st_size for path in files)
    assert total < MAX_PAGE_BYTES, f"{total:,} bytes"
