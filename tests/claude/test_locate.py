"""Finding the Claude Code binary, its version and its environment."""

from __future__ import annotations

import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from laneway.base.errors import BinaryError
from laneway.base.programs import Binary
from laneway.claude import locate, version
from laneway.claude.locate import claude_environment


def program(path: Path, says: str = "2.1.325 (Claude Code)") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_the_flag_goes_before_the_environment_before_the_setting_before_path(tmp_path: Path) -> None:
    """And the one from PyPI comes last."""
    flag, variable, configured = (program(tmp_path / name) for name in ("flag", "variable", "configured"))
    on_path = program(tmp_path / "bin" / "claude")
    environment = {"LANEWAY_CLAUDE_BIN": variable, "PATH": str(tmp_path / "bin")}
    assert locate.find(flag, configured, environment) == Binary(flag, "--claude-bin")
    assert locate.find(None, configured, environment) == Binary(variable, "LANEWAY_CLAUDE_BIN")
    del environment["LANEWAY_CLAUDE_BIN"]
    assert locate.find(None, configured, environment) == Binary(configured, "claude_bin")
    assert locate.find(None, None, environment) == Binary(on_path, "PATH")
    bundled = locate.find(None, None, {"PATH": ""})
    assert (bundled.source, Path(bundled.path).name) == ("laneway[claude]", "claude")


def test_the_sdk_that_brings_the_binary_is_not_imported() -> None:
    """Its import takes most of a second and 67 MB."""
    script = (
        "import sys; from laneway.claude import locate; locate.find(environment={'PATH': ''});"
        " sys.exit('claude_agent_sdk' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_path_that_leads_nowhere_is_one_sentence_with_the_remedy(tmp_path: Path) -> None:
    """It names what was named and by whom."""
    with pytest.raises(BinaryError) as missing:
        locate.find(None, None, {"LANEWAY_CLAUDE_BIN": str(tmp_path / "none")})
    assert str(missing.value) == (
        f"There is no Claude Code at {tmp_path / 'none'} (named by LANEWAY_CLAUDE_BIN):"
        " correct the path or leave it out."
    )


@pytest.mark.parametrize(
    ("says", "problem"),
    [
        ("hello", "does not look like Claude Code"),
        ("1.2.3 (another program)", "does not look like Claude Code"),
        ("1.0.99 (Claude Code)", f"is older than {version.spell(version.OLDEST)}: upgrade"),
    ],
)
def test_something_else_and_something_too_old_are_refused(tmp_path: Path, says: str, problem: str) -> None:
    """With the version that is needed."""
    found = Binary(program(tmp_path / "claude", says), "--claude-bin")
    with pytest.raises(BinaryError, match=problem):
        version.check_age(version.probe(found), found.path)


def test_a_file_that_is_no_program_is_refused(tmp_path: Path) -> None:
    """Wrong machine, broken download."""
    path = tmp_path / "claude"
    path.write_bytes(b"\x7fELF nonsense")
    path.chmod(0o755)
    with pytest.raises(BinaryError, match="cannot be run"):
        version.probe(Binary(str(path), "PATH"))


def test_the_installed_claude_code_is_one_that_was_tested() -> None:
    """Otherwise the lock file and this list have drifted apart."""
    installed = version.probe(locate.find(environment={"PATH": ""}))
    assert version.spell(installed) in version.TESTED
    assert version.untested_note(installed) == ""
    assert version.untested_note((9, 9, 9)) == " (untested with this Laneway)"


def test_the_page_for_people_lists_the_versions_that_are_tested() -> None:
    """The newest first, and the oldest that works."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "claude.md").read_text()
    assert tuple(re.findall(r"^\| (\d+\.\d+\.\d+) \|", page, re.MULTILINE)) == version.TESTED
    assert f"Laneway needs Claude Code {version.spell(version.OLDEST)} or newer." in page
    assert f"is older than {version.spell(version.OLDEST)}" in page


def test_claude_code_gets_the_users_environment_less_our_secrets_and_its_own_marks() -> None:
    """Its own keys are its own business; what another Claude Code told us about itself is not."""
    environment = {
        "PATH": "/bin",
        "ANTHROPIC_API_KEY": "sk",
        "LANEWAY_HTTP_TOKEN": "t",
        "LANEWAY_CLAUDE_BIN": "x",
        "CLAUDECODE": "1",
        "CLAUDE_CODE_ENTRYPOINT": "cli",
        "CLAUDE_CODE_MESSAGING_TOKEN": "secret",
    }
    assert claude_environment(environment) == {
        "PATH": "/bin",
        "ANTHROPIC_API_KEY": "sk",
        "LANEWAY_CLAUDE_BIN": "x",
        "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"HOME": "/home/me"}, "/home/me/.claude"),
        ({"HOME": "/home/me", "CLAUDE_CONFIG_DIR": "/elsewhere"}, "/elsewhere"),
    ],
)
def test_claude_codes_own_folder_is_where_its_environment_says(
    environment: dict[str, str], folder: str
) -> None:
    """In the user's home unless they moved it."""
    assert locate.config_home(environment) == folder
