"""What holds for any settings: key by key, the highest source wins, and nothing but SettingError."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from laneway.base.errors import SettingError
from laneway.base.schema import KEYS
from laneway.base.setting_values import SourceKind
from laneway.base.settings import load
from tests.base.folders import Folders

# The highest last. The repository is trusted, so that every layer counts.
LAYERS: tuple[SourceKind, ...] = ("global", "repo", "named", "environment", "flag")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "model": st.text("abc", min_size=1, max_size=3),
    "fast_model": st.text("abc", min_size=1, max_size=3),
    "identity": st.text("abc", min_size=1, max_size=3),
    "team": st.text("abc", min_size=1, max_size=3),
    "auto_mail": st.booleans(),
    "summaries": st.booleans(),
    "max_mail_messages": st.integers(1, 1000),
    "request_timeout_secs": st.integers(1, 86400),
    "events": st.sampled_from(["full", "compact", "off"]),
    "jobs.k_read": st.integers(1, 64),
    "jobs.mail": st.booleans(),
}
OWN_ONLY = {"jobs.k_read", "jobs.mail"}
Layers = dict[SourceKind, dict[str, Any]]
some_layers = st.fixed_dictionaries({kind: st.fixed_dictionaries({}, optional=VALUES) for kind in LAYERS})


@contextmanager
def throwaway() -> Iterator[Folders]:
    """Hypothesis runs many examples inside one test, each with folders of its own."""
    with tempfile.TemporaryDirectory() as top:
        yield Folders(Path(os.path.realpath(top)))


def toml(values: dict[str, Any]) -> str:
    spelt = {True: "true", False: "false"}
    return "[laneway]\n" + "".join(
        f"{name} = {spelt[value] if isinstance(value, bool) else repr(value)}\n"
        for name, value in values.items()
    )


@given(some_layers)
def test_the_highest_source_wins_key_by_key_and_no_key_touches_another(layers: Layers) -> None:
    """Checked against the plainest model there is: dictionaries laid over each other."""
    with throwaway() as folders:
        named = folders.home / "named.toml"
        for path, kind in ((folders.global_file, "global"), (folders.repo_file, "repo"), (named, "named")):
            path.write_text(toml(layers[kind]))  # type: ignore[index]
        folders.trust(folders.deep)
        environment = {KEYS[name].variables[0]: str(value) for name, value in layers["environment"].items()}
        settings = load(
            layers["flag"], {**environment, "LANEWAY_CONFIG": str(named)}, folders.deep, folders.home
        )
    expected = {name: (key.default, "default") for name, key in KEYS.items()}
    ignored = set(layers["repo"]) & OWN_ONLY
    for kind in LAYERS:
        counted = {name for name in layers[kind] if kind != "repo" or name not in ignored}
        expected |= {name: (layers[kind][name], kind) for name in counted}
    got = {name: (settings.value(name), settings.source(name).kind) for name in KEYS}
    assert got == expected
    assert {".".join(each.keys) for each in settings.ignored} == ignored


WORDS = [
    *("[laneway]", "[laneway.roles.a]", "[[laneway]]", "[plugins.codex-mcp]", "[core]", "plugins", "roles"),
    *("[laneway.jobs]", "jobs", "jobs.k_read", "nodes", "jobs.repositories.a", "[laneway.jobs.nodes.gpu1]"),
    *("model", "identity", "default_team", "max_turns", "tools", "per_thread_auto_mail", "http_token"),
    *("=", "= 1", "= 'x'", "= {", "= [", "]", "}", "\n", "\n", "\n", ".", "true", "1979-05-27"),
    *("0xffffffffffffffffffffffffffffffffff", "'" * 3, '"' * 3, "\x00", "\x1b", "é", "\\", "#"),
]
likely = st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)
some_text = likely | st.text(st.characters(blacklist_categories=["Cs"]), max_size=200)


def load_or_refuse(folders: Folders, environment: dict[str, str]) -> SettingError | None:
    """Anything that is raised but a `SettingError` fails the test."""
    try:
        settings = folders.load(**environment)
    except SettingError as error:
        return error
    assert all(str(each).isprintable() for each in settings.ignored)
    return None


@given(some_text.map(str.encode) | st.binary(max_size=200))
def test_any_file_either_loads_or_is_a_setting_error(raw: bytes) -> None:
    """Of one printable line, whatever the file holds."""
    with throwaway() as folders:
        folders.repo_file.write_bytes(raw)
        error = load_or_refuse(folders, {})
        assert error is None or (str(error).isprintable() and error.where == str(folders.repo_file))


variables = st.sampled_from([variable for key in KEYS.values() for variable in key.variables])
values = st.text(st.characters(blacklist_characters="\x00", blacklist_categories=["Cs"]), max_size=20)


@given(st.dictionaries(variables, values))
def test_any_environment_either_loads_or_is_a_setting_error(environment: dict[str, str]) -> None:
    """Of one printable line, too."""
    with throwaway() as folders:
        error = load_or_refuse(folders, environment)
        assert error is None or (str(error).isprintable() and error.where in environment)
