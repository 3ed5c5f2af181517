"""Finding the Codex binary: the order of the search, and an error for each fault."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from laneway.base.errors import BinaryError
from laneway.codex import binary, locate
from laneway.codex.engine import codex_engine
from laneway.codex.locate import Binary, child_environment


def program(path: Path, says: str = "codex-cli 0.163.0", *, executable: bool = True) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(path.stat().st_mode | (stat.S_IXUSR if executable else 0))
    return str(path)


def test_the_flag_goes_before_the_environment_before_the_config_before_path(tmp_path: Path) -> None:
    """And the one from PyPI comes last."""
    flag, variable, configured = (program(tmp_path / name) for name in ("flag", "variable", "configured"))
    on_path = program(tmp_path / "bin" / "codex")
    older = program(tmp_path / "older")
    environment = {"LANEWAY_CODEX_BIN": variable, "CODEX_BINARY": older, "PATH": str(tmp_path / "bin")}
    assert locate.find(flag, configured, environment) == Binary(flag, "--codex-bin")
    assert locate.find(None, configured, environment) == Binary(variable, "LANEWAY_CODEX_BIN")
    del environment["LANEWAY_CODEX_BIN"]
    assert locate.find(None, configured, environment) == Binary(older, "CODEX_BINARY")
    del environment["CODEX_BINARY"]
    assert locate.find(None, configured, environment) == Binary(configured, "codex_bin")
    assert locate.find(None, None, environment) == Binary(on_path, "PATH")
    bundled = locate.find(None, None, {"PATH": ""})
    assert (bundled.source, Path(bundled.path).name) == ("laneway[codex]", "codex")


def test_a_path_that_leads_nowhere_is_one_sentence_with_the_remedy(tmp_path: Path) -> None:
    """It names what was named and by whom."""
    with pytest.raises(BinaryError) as missing:
        locate.find(str(tmp_path / "none"))
    assert str(missing.value) == (
        f"There is no Codex at {tmp_path / 'none'} (named by --codex-bin): correct the path or leave it out."
    )


def test_a_file_that_cannot_be_executed_says_how_to_mend_it(tmp_path: Path) -> None:
    """Told apart from a missing one."""
    path = program(tmp_path / "codex", executable=False)
    with pytest.raises(BinaryError, match=rf"not executable: run `chmod \+x {path}`"):
        locate.find(path)


@pytest.mark.parametrize(
    ("says", "problem"),
    [("hello", "does not look like Codex"), ("codex-cli 0.99.9", "is older than 0.104.0: upgrade")],
)
def test_something_else_and_something_too_old_are_refused(tmp_path: Path, says: str, problem: str) -> None:
    """With the version that is needed."""
    found = Binary(program(tmp_path / "codex", says), "--codex-bin")
    with pytest.raises(BinaryError, match=problem):
        binary.check_age(binary.probe(found), found.path)


def test_a_file_that_is_no_program_is_refused(tmp_path: Path) -> None:
    """Wrong machine, broken download."""
    path = tmp_path / "codex"
    path.write_bytes(b"\x7fELF nonsense")
    path.chmod(0o755)
    with pytest.raises(BinaryError, match="cannot be run"):
        binary.probe(Binary(str(path), "PATH"))


def test_the_installed_codex_is_one_that_was_tested() -> None:
    """Otherwise the lock file and this list have drifted apart."""
    version = binary.probe(locate.find(environment={"PATH": ""}))
    assert binary.spell(version) in binary.TESTED
    assert binary.untested_note(version) == ""
    assert binary.untested_note((9, 9, 9)) == " (untested with this Laneway)"


def test_the_table_tells_what_older_versions_lack() -> None:
    """Context per turn came late; older ones get it another way or not at all."""
    oldest, middle, newest = (binary.abilities(v) for v in ((0, 104, 0), (0, 133, 0), (0, 163, 0)))
    assert (oldest.turn_context, oldest.inject, oldest.history_pages) == (False, False, False)
    assert (middle.turn_context, middle.inject, middle.history_pages) == (False, True, True)
    assert (newest.turn_context, newest.inject, newest.history_pages) == (True, True, True)


def test_codex_gets_the_users_environment_less_our_secrets() -> None:
    """Its own keys are its own business."""
    environment = {
        "PATH": "/bin",
        "OPENAI_API_KEY": "sk",
        "LANEWAY_HTTP_TOKEN": "t",
        "LANEWAY_CODEX_BIN": "x",
    }
    assert child_environment(environment) == {
        "PATH": "/bin",
        "OPENAI_API_KEY": "sk",
        "LANEWAY_CODEX_BIN": "x",
    }


@pytest.mark.parametrize(
    ("says", "problem"),
    [("codex-cli 0.40.0", "is older than 0.104.0: upgrade"), ("a text editor", "does not look like Codex")],
)
async def test_a_program_that_ends_at_once_is_named_for_what_it_is(
    tmp_path: Path, says: str, problem: str
) -> None:
    """A Codex from before app-server, or something else of that name, just ends: we find out why."""
    engine = codex_engine(Binary(program(tmp_path / "codex", says), "PATH"))
    with pytest.raises(BinaryError, match=problem):
        await engine.abilities()
    await engine.aclose()
