"""Wrong settings: one sentence with file, line, key and what was expected."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from laneway.base.config_files import MAX_FILE_BYTES
from laneway.base.errors import SettingError
from laneway.base.named_tables import names_in
from laneway.base.schema import KEYS
from laneway.base.settings import load
from tests.base.folders import Folders


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


def wrong(folders: Folders, text: str | bytes) -> SettingError:
    """Load a repository's file that has a mistake in it."""
    folders.repo_file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(SettingError) as caught:
        folders.load()
    return caught.value


def test_a_wrong_key_is_named_with_the_nearest_right_one(folders: Folders) -> None:
    """With its line, also below other tables and long strings."""
    error = wrong(folders, '[core]\nnote = """\n[laneway]\n"""\n\n[laneway]\nmodle = "x"\n')
    assert str(error) == f"{folders.repo_file}, line 7: there is no setting modle; did you mean model?"
    assert (error.where, error.line, error.key, error.expected) == (
        str(folders.repo_file),
        7,
        "modle",
        "model",
    )


def test_a_key_like_no_other_gets_the_list(folders: Folders) -> None:
    """The remedy is in the sentence."""
    assert "; known are approval_policy, " in str(wrong(folders, "[laneway]\nzzzzz = 1\n"))


SECONDS = "a whole number from 1 to 86400"
LINE = "a text of one line that is not empty"
GROUPS = "a list of codex, sessions, mail, jobs"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("request_timeout_secs = 'soon'", f"request_timeout_secs must be {SECONDS}, not 'soon'."),
        ("request_timeout_secs = 0", f"request_timeout_secs must be {SECONDS}, not 0."),
        ("request_timeout_secs = 1.5", f"request_timeout_secs must be {SECONDS}, not 1.5."),
        (
            "max_concurrent_threads = true",
            "max_concurrent_threads must be a whole number from 1 to 1000, not true.",
        ),
        (
            "max_turns = 0x" + "f" * 9000,
            "max_turns must be a whole number from 1 to 1000000, not a huge number.",
        ),
        ("auto_mail = 1", "auto_mail must be true or false, not 1."),
        ("model = 4", f"model must be {LINE}, not 4."),
        ("model = ''", f"model must be {LINE}, not ''."),
        ("model = 1979-05-27", f"model must be {LINE}, not 1979-05-27."),
        (r'model = "a\u001b[2Jb"', rf"model must be {LINE}, not 'a\x1b[2Jb'."),
        ("events = 'none'", "events must be one of full, compact, off, not 'none'."),
        ("default_team = '../x'", f"default_team must be {KEYS['team'].kind.expected}, not '../x'."),
        ("tools = 'codex'", f"tools must be {GROUPS}, not 'codex'."),
        ("tools = ['hammer']", f"tools must be {GROUPS}, not hammer."),
        ("roles = 3", "roles must be a table with one table for each role, not 3."),
        ("roles = { a = 3 }", "roles.a must be a table, not 3."),
        ("roles = { a = { model = 3 } }", f"roles.a.model must be {LINE}, not 3."),
        ("roles = { a = { modle = 3 } }", "there is no setting roles.a.modle; did you mean model?"),
        ("jobs = 3", "jobs must be a table, not 3."),
        ("jobs.k_read = 65", "jobs.k_read must be a whole number from 1 to 64, not 65."),
        ("jobs.k_raed = 1", "there is no setting jobs.k_raed; did you mean k_read?"),
        (
            "'jobs.k_read' = 1",
            f"there is no setting 'jobs.k_read'; known are {', '.join(sorted(names_in(())))}.",
        ),
        ("jobs.nodes = 3", "jobs.nodes must be a table with one table for each machine, not 3."),
        ("jobs.nodes.a.comand = 'x'", "there is no setting jobs.nodes.a.comand; did you mean command?"),
        (
            "jobs.nodes.any = { command = 'x' }",
            "jobs.nodes.any must be named by up to 64 letters, digits, dots, dashes and underscores, but not"
            " `any` or `local`, not a table of 1.",
        ),
        ("jobs.repositories.a = 3", "jobs.repositories.a must be the path of a folder, not 3."),
        ("per_thread_auto_mail = { a = 3 }", "per_thread_auto_mail.a must be true or false, not 3."),
    ],
)
def test_a_wrong_value_is_told_with_what_was_expected(folders: Folders, line: str, told: str) -> None:
    """In one sentence, in which no control character survives."""
    assert str(wrong(folders, f"[laneway]\n{line}\n")) == f"{folders.repo_file}, line 2: {told}"


def test_a_secret_of_the_wrong_type_is_not_told(folders: Folders) -> None:
    """Nor one that is too long."""
    assert "hunter" not in str(wrong(folders, "[laneway]\nhttp_token = ['hunter']\n"))
    assert "hunter" not in str(wrong(folders, f"[laneway]\nhttp_token = 'hunter{'x' * 5000}'\n"))


def test_our_table_must_be_a_table(folders: Folders) -> None:
    """A list of tables is none."""
    assert str(wrong(folders, "[[laneway]]\nmodel = 'x'\n")).endswith(
        "line 1: laneway must be a table, not a table of 1."
    )
    assert wrong(folders, "[plugins]\natm-agent-mcp = 3\n").line == 2


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[laneway]\nmodel = \n", 2),
        ("[laneway]\nmodel = 'x'\nmodel = 'y'\n", 3),
        ("a = 1\nb = [1,\n2\n", 4),
        ("[laneway\n", 1),
        (b"a = 1\nb = '\xff'\n", 2),
        ("x = " + "9" * 5000, None),
        ("x = " + "[" * 5000, None),
        ("x = 1\n" + ".".join("a" * 5000) + " = 1\n", 2),
        ("x = 1\n[" + " . ".join(["'a'"] * 5000) + "]\n", 2),
        ("#" * (MAX_FILE_BYTES + 1), None),
    ],
)
def test_a_file_that_is_no_toml_is_told_with_its_line(
    folders: Folders, text: str | bytes, line: int | None
) -> None:
    """`tomllib` tells the line in words only; this holds them. Bombs are refused, not built."""
    error = wrong(folders, text)
    assert (error.where, error.line) == (str(folders.repo_file), line)


def test_something_else_by_that_name_is_told_and_never_waited_for(folders: Folders) -> None:
    """A named pipe would hang whoever reads it."""
    os.mkfifo(folders.repo_file)
    with pytest.raises(SettingError, match="this is not a file: remove it"):
        folders.load()
    folders.repo_file.unlink()
    folders.repo_file.mkdir()
    with pytest.raises(SettingError, match="this is not a file: remove it"):
        folders.load()
    folders.repo_file.rmdir()
    folders.repo_file.symlink_to(folders.repo_file.name)
    with pytest.raises(SettingError, match="this is not a file: remove it"):
        folders.load()


def test_a_wrong_variable_is_named(folders: Folders) -> None:
    """There is no line to name."""
    with pytest.raises(SettingError) as caught:
        folders.load(ATM_AGENT_MCP_SANDBOX="wide")
    assert str(caught.value) == (
        "ATM_AGENT_MCP_SANDBOX: sandbox must be one of read-only, workspace-write, danger-full-access,"
        " not 'wide'."
    )
    with pytest.raises(SettingError, match=r"LANEWAY_MAX_TURNS: .* not '1_0'"):
        folders.load(LANEWAY_MAX_TURNS="1_0")


def test_a_wrong_flag_is_named(folders: Folders) -> None:
    """The team becomes a folder."""
    with pytest.raises(SettingError, match=r"^--team: team must be a name"):
        load({"team": "../x"}, {}, folders.repo, folders.home)


def test_variables_shared_with_atm_are_no_error(folders: Folders) -> None:
    """They are set for another program; what we cannot use is told."""
    settings = folders.load(ATM_TEAM="my team", ATM_IDENTITY="a/b")
    assert (settings.team, settings.identity) == ("default", "codex")
    assert [each.source.name for each in settings.ignored] == ["ATM_TEAM", "ATM_IDENTITY"]
