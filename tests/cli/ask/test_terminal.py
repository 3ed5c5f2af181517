"""`laneway ask` alive on a terminal: what it does while it does it, and an answer that is easy to read."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from tests.cli.ask.support import asking
from tests.cli.support import laneway
from tests.codex.support import real


def seconds(text: str) -> int:
    """What the status line says."""
    found = re.search(r"Thinking · (\d+) s · Ctrl-C stops", text)
    return int(found[1]) if found else 0


async def test_the_status_line_says_what_is_done_and_leaves_no_trace(tmp_path: Path) -> None:
    """While Codex thinks, while a command runs; gone when it has ended."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    async with asking(f"%usage 5000\n%run true\n%run cat {gate}\n%say done", cwd=tmp_path) as screen:
        await screen.wait_for(f"Running cat {gate}")
        await screen.wait_for("5.0k tokens")
        assert f"Running cat {gate}" in screen.text.splitlines()[-1]
        gate.write_text("through\n")
        assert (await screen.wait_end()).code == 0
        assert "Running" not in screen.text


async def test_a_silent_model_is_not_a_dead_program(tmp_path: Path) -> None:
    """The seconds count."""
    async with asking("%hang", cwd=tmp_path) as screen:
        await screen.wait_for("Thinking · ")
        first = screen.text
        await screen.wait_until(lambda: seconds(screen.text) > seconds(first), "later second on")
        screen.press("ctrl-c")
        assert (await screen.wait_end()).code == 130
        assert "Thinking" not in screen.text


async def test_a_dumb_terminal_gets_words_alone(tmp_path: Path) -> None:
    """Nothing that moves the cursor, nothing that colours."""
    async with asking("%run echo hi\n%say **bold**", cwd=tmp_path, env={"TERM": "dumb"}) as screen:
        await screen.wait_end()
        assert b"\x1b" not in screen.raw
        assert "▸ echo hi\n  │ hi\n**bold**\n" in screen.text


async def test_without_colour_there_is_none(tmp_path: Path) -> None:
    """`NO_COLOR`; bold is none."""
    async with asking("%run false\n%say a `b`", cwd=tmp_path, env={"NO_COLOR": "1"}) as screen:
        await screen.wait_end()
        assert re.findall(rb"\x1b\[(?:[0-9;]*;)?[349][0-9]m", screen.raw) == []
        assert "a b" in screen.text


async def test_output_is_shown_while_the_command_runs(tmp_path: Path) -> None:
    """Not only when it has ended."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    command = f"echo one; sleep 0.1; echo two; sleep 0.1; echo three; cat {gate}; echo four"
    async with asking(f"%run {command}", cwd=tmp_path) as screen:
        await screen.wait_until(lambda: "  │ three" in screen.rows, "output on")
        gate.write_text("go on\n")
        assert (await screen.wait_end()).code == 0
        rows = [row for row in screen.rows if row.startswith("  │ ")]
        assert rows[-5:] == ["  │ one", "  │ two", "  │ three", "  │ go on", "  │ four"]


async def test_hidden_lines_are_counted_and_full_shows_them(tmp_path: Path) -> None:
    """The hint names the flag."""
    async with asking("%run seq 1 400", cwd=tmp_path) as screen:
        await screen.wait_end()
        assert "  … 390 lines hidden (run with --full to see them)" in screen.rows
    async with asking("--full", "%run seq 1 400", cwd=tmp_path, rows=420) as screen:
        await screen.wait_end()
        assert [row for row in screen.rows if row.startswith("  │ ")] == [f"  │ {n}" for n in range(1, 401)]


async def test_thoughts_are_one_line_unless_they_are_wanted(tmp_path: Path) -> None:
    """`--thoughts` shows all."""
    words = " ".join(["word"] * 60)
    async with asking(f"%think **Plan** {words}", cwd=tmp_path) as screen:
        await screen.wait_end()
        (row,) = [row for row in screen.rows if row.startswith("  ┄ ")]
        assert row.startswith("  ┄ Plan word word")
        assert row.endswith("…")
    async with asking("--thoughts", f"%think **Plan** {words}", cwd=tmp_path) as screen:
        await screen.wait_end()
        rows = [row[4:] for row in screen.rows if row.startswith("  ┄ ")]
        assert " ".join("".join(rows).split()) == f"**Plan** {words}".strip()


MARKDOWN = "# The fix\\n\\nThe *parser* drops `None`.\\n\\n- first\\n- second\\n\\n```python\\nx = 1\\n```"


async def test_markdown_is_rendered_on_a_terminal(tmp_path: Path) -> None:
    """Signs gone, words there, each once."""
    async with asking(f"%say {MARKDOWN}", cwd=tmp_path) as screen:
        await screen.wait_end()
        text = screen.text
        assert text.startswith("The fix\nThe parser drops None.\n • first\n • second\n x = 1\n")
        assert all(text.count(word) == 1 for word in ("The fix", "parser", "first", "second", "x = 1"))


async def test_a_long_answer_scrolls_and_nothing_is_printed_twice(tmp_path: Path) -> None:
    """Block by block, as it streams."""
    paragraphs = [f"Paragraph {number}." for number in range(100)]
    async with asking("%say " + "\\n\\n".join(paragraphs), cwd=tmp_path, rows=230) as screen:
        await screen.wait_end()
        assert [row for row in screen.rows if row.startswith("Paragraph")] == paragraphs


async def test_without_the_library_the_answer_is_plain(tmp_path: Path) -> None:
    """It comes with `laneway[terminal]`."""
    (tmp_path / "rich").mkdir()
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, package=None: None if name == 'rich' else find(name, package)\n"
    )
    env = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    async with asking(f"%say {MARKDOWN}", cwd=tmp_path, env=env) as screen:
        await screen.wait_end()
        assert screen.text.startswith("# The fix\nThe *parser* drops `None`.\n- first\n- second\n```python\n")


async def test_a_pipe_gets_the_raw_answer_alone() -> None:
    """Byte for byte, whatever is drawn beside it."""
    words = ("%think hm", "%run seq 1 30", f"%say {MARKDOWN}", "%plan a; b", "%say end \\x1b[0m")
    ran = await laneway("ask", "--rehearse", "\n".join(words))
    assert ran.out == MARKDOWN.replace("\\n", "\n") + "\nend \\x1b[0m\n"


async def test_rich_is_not_imported_for_a_pipe() -> None:
    """Whoever pipes the answer on does not pay for it."""
    ran = await laneway("ask", "--rehearse", "%say hi", env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert ran.out == "hi\n"
    assert "laneway.terminal.markdown" in ran.err
    assert " rich" not in ran.err


async def test_the_end_tells_tokens_and_how_to_go_on(tmp_path: Path) -> None:
    """On the terminal, behind the answer."""
    async with real() as here:
        env = {"CODEX_HOME": str(here.rehearsal.home), "XDG_STATE_HOME": str(tmp_path)}
        async with asking("%say hi", cwd=here.rehearsal.work, env=env, rehearse=False) as screen:
            assert (await screen.wait_end()).code == 0
            assert screen.rows[:2] == ["hi", ""]
            assert screen.rows[2].endswith(" s · 101 tokens")
            assert screen.rows[3].startswith('go on: laneway ask --last "…"   or with --thread 0')
        async with asking("--last", "%say again", cwd=here.rehearsal.work, env=env, rehearse=False) as screen:
            assert (await screen.wait_end()).code == 0
        assert "%say hi" in here.model_input()
