"""Which words start Laneway from somebody else's config."""

from __future__ import annotations

from pathlib import Path

from laneway.cli.clients.command import LaunchCommand, choose


def executable(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_the_users_own_config_gets_the_full_path(tmp_path: Path) -> None:
    """A program that was started from a desktop does not know the PATH of a terminal."""
    path = executable(tmp_path / "bin" / "laneway")
    found = choose(shared=False, environment={"PATH": str(tmp_path / "bin")}, argv0="-m")
    assert found == LaunchCommand((path,))


def test_a_config_that_others_share_gets_the_name(tmp_path: Path) -> None:
    """As long as it can be found by it here."""
    path = executable(tmp_path / "bin" / "laneway")
    assert choose(shared=True, environment={"PATH": str(tmp_path / "bin")}, argv0="-m").words == ("laneway",)
    alone = choose(shared=True, environment={"PATH": ""}, argv0=path)
    assert alone.words == (path,)
    assert "of this machine" in alone.notes[0]


def test_where_every_program_looks_the_name_is_enough(tmp_path: Path) -> None:
    """But only if it is the same Laneway that is found there."""
    system = executable(tmp_path / "usr" / "laneway")
    other = executable(tmp_path / "other" / "laneway")

    def words(argv0: str) -> tuple[str, ...]:
        plain_path = (str(tmp_path / "usr"),)
        return choose(shared=False, environment={"PATH": ""}, argv0=argv0, plain_path=plain_path).words

    assert (words(system), words(other)) == (("laneway",), (other,))


def test_a_laneway_in_a_cache_is_told_of(tmp_path: Path) -> None:
    """`uvx laneway setup` would register something that goes with the next cleaning."""
    path = executable(tmp_path / ".cache" / "uv" / "archive-v0" / "x" / "bin" / "laneway")
    found = choose(shared=False, environment={"PATH": ""}, argv0=path)
    assert found.words == (path,)
    assert "install it with `uv tool install " in found.notes[0]


def test_the_one_beside_this_python_is_the_last_resort(tmp_path: Path) -> None:
    """Or else this Python itself."""
    python = str(tmp_path / "python")

    def words() -> tuple[str, ...]:
        return choose(shared=False, environment={"PATH": ""}, argv0="x", python=python).words

    assert words() == (python, "-m", "laneway")
    path = executable(tmp_path / "laneway")
    assert words() == (path,)
