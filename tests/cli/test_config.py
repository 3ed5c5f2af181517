"""`laneway config`, and that the commands obey what it shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from laneway.base.schema import KEYS
from laneway.codex.locate import find
from tests.base.folders import Folders
from tests.cli.support import laneway


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


def surroundings(folders: Folders) -> dict[str, str]:
    return {"HOME": str(folders.home), "XDG_STATE_HOME": "", "ATM_HOME": ""}


async def show(folders: Folders, *words: str, **environment: str) -> dict[str, Any]:
    ran = await laneway(
        "config", "show", str(folders.repo), "--json", *words, env={**surroundings(folders), **environment}
    )
    assert (ran.code, ran.err) == (0, "")
    told: dict[str, Any] = json.loads(ran.out)
    return told


@pytest.mark.covers("FR-13.4")
async def test_every_key_is_shown_with_its_value_and_source(folders: Folders) -> None:
    """For people; secrets are not."""
    folders.global_file.write_text(
        '[laneway]\nhttp_token = "hunter2"\n[laneway.roles.scout]\nmodel = "small"\n'
    )
    folders.repo_file.write_text("[laneway]\nmax_mail_messages = 3\n")
    ran = await laneway(
        "config",
        "show",
        str(folders.repo),
        "--all",
        "--team",
        "crew",
        env={**surroundings(folders), "LANEWAY_MODEL": "m"},
    )
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in ran.out.splitlines() if line}
    assert ran.code == 0
    assert set(KEYS) <= set(rows)
    assert rows["team"] == ["crew", "--team"]
    assert rows["model"] == ["m", "LANEWAY_MODEL"]
    assert rows["max_mail_messages"] == ["3", f"{folders.repo_file}, line 2"]
    assert rows["roles.scout.model"] == ["small", f"{folders.global_file}, line 4"]
    assert rows["http_token"][0] == "[redacted]"
    assert "hunter2" not in ran.out
    assert f"repository: {folders.repo} (asks for nothing that needs trust)" in ran.out


async def test_without_all_only_what_is_set_is_shown(folders: Folders) -> None:
    """And what was ignored, with the reason; where nothing is set, that is said."""
    home = surroundings(folders)
    bare = await laneway("config", "show", str(folders.repo), env=home)
    assert bare.out.startswith("Nothing is set: `laneway config --all` shows the defaults.\n\n")
    folders.own_file.parent.mkdir(parents=True)
    folders.own_file.write_text('[laneway]\nmodel = "mine"\n')
    folders.own_repo_file.write_text('[laneway]\nteam = "crew"\nmax_turns = 3\n')
    ran = await laneway("config", "show", str(folders.repo), env=home)
    assert ran.out.splitlines() == [
        f"model      mine  {folders.own_file}, line 2",
        f"max_turns  3     {folders.own_repo_file}, line 3",
        f"ignored  {folders.own_repo_file}, line 2: team = crew is ignored: {folders.repo} is not trusted;"
        " `laneway config trust` in it allows this.",
        "",
        f"global file: {folders.global_file} (does not exist)",
        f"laneway global file: {folders.own_file}",
        f"laneway repo file: {folders.own_repo_file}",
        f"repository: {folders.repo} (not trusted)",
    ]


async def test_json_says_the_same_as_data(folders: Folders) -> None:
    """Value, source and what was ignored, with the reason; secrets are kept back here too."""
    folders.global_file.write_text('[laneway]\nhttp_token = "hunter2"\n')
    folders.repo_file.write_text('[laneway]\ntools = ["codex"]\nsandbox = "danger-full-access"\n')
    told = await show(folders)
    assert set(KEYS) <= set(told["settings"])
    assert told["settings"]["tools"] == {
        "value": ["codex"],
        "source": {"kind": "repo", "name": str(folders.repo_file), "line": 2},
    }
    assert told["settings"]["sandbox"]["value"] is None
    assert told["settings"]["http_token"]["value"] == "[redacted]"
    (ignored,) = told["ignored"]
    assert (ignored["key"], ignored["value"], ignored["source"]["line"]) == (
        "sandbox",
        "danger-full-access",
        3,
    )
    assert ignored["why"] == f"{folders.repo} is not trusted; `laneway config trust` in it allows this"
    assert told["repository"] == {"root": str(folders.repo), "trusted": False}
    assert told["files"]["global"] == {"path": str(folders.global_file), "exists": True}


async def test_what_an_untrusted_repository_wants_is_told_once_and_not_done(
    folders: Folders, tmp_path: Path
) -> None:
    """`laneway ask` in it: the repository's program is not run, the rest goes on."""
    ran_it = tmp_path / "ran"
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {ran_it}\n")
    evil.chmod(0o755)
    folders.repo_file.write_text(f'[laneway]\ncodex_bin = "{evil}"\n')
    ran = await laneway("ask", "--rehearse", "-C", str(folders.repo), "%say hello", env=surroundings(folders))
    assert (ran.code, ran.out) == (0, "hello\n")
    assert ran.err.count("is ignored") == 1
    assert f"laneway: {folders.repo_file}, line 2: codex_bin = {evil} is ignored: " in ran.err
    assert not ran_it.exists()


async def test_the_users_own_file_chooses_the_codex_for_every_command(folders: Folders) -> None:
    """A wrong one is told, and so is a wrong setting, each with its own exit code."""
    folders.global_file.write_text('[laneway]\ncodex_bin = "/no/codex"\n')
    for words in (["ask", "--rehearse", "hello"], ["tour"]):
        ran = await laneway(*words, env=surroundings(folders))
        assert (ran.code, "There is no Codex at /no/codex" in ran.err) == (3, True)
    folders.global_file.write_text("[laneway]\nmodel = 3\n")
    wrong = await laneway("ask", "--rehearse", "hello", env=surroundings(folders))
    assert (wrong.code, wrong.err.startswith(f"laneway: {folders.global_file}, line 2: ")) == (2, True)


async def test_ask_sends_what_the_settings_say_unless_a_flag_says_otherwise(
    folders: Folders, tmp_path: Path
) -> None:
    """Seen on the wire: a program in front of the real Codex keeps what it is told."""
    heard = tmp_path / "heard"
    front = tmp_path / "front"
    front.write_text(f'#!/bin/sh\ntee "{heard}" | "{find(environment={"PATH": ""}).path}" "$@"\n')
    front.chmod(0o755)
    folders.global_file.write_text(
        f'[laneway]\ncodex_bin = "{front}"\nmodel = "set"\nreasoning_effort = "low"\n'
        'sandbox = "read-only"\napproval_policy = "on-failure"\n'
    )

    async def asked(*flags: str) -> dict[str, Any]:
        ran = await laneway("ask", "--rehearse", *flags, "%say hi", env=surroundings(folders))
        assert (ran.code, ran.out) == (0, "hi\n"), ran.err
        frames = [json.loads(line) for line in heard.read_text().splitlines()]
        (start,) = (frame["params"] for frame in frames if frame.get("method") == "thread/start")
        (turn,) = (frame["params"] for frame in frames if frame.get("method") == "turn/start")
        seen = {**start, "sandboxPolicy": (turn.get("sandboxPolicy") or {}).get("type")}
        names = ("model", "sandbox", "sandboxPolicy", "approvalPolicy", "config")
        return {name: seen.get(name) for name in names}

    assert await asked() == {
        "model": "set",
        "sandbox": "read-only",
        "sandboxPolicy": None,
        "approvalPolicy": "on-request",
        "config": {"model_reasoning_effort": "low"},
    }
    flags = ("-m", "flag", "-s", "workspace-write", "-a", "never", "-c", "model_reasoning_effort=high")
    assert await asked(*flags) == {
        "model": "flag",
        "sandbox": "read-only",  # with it, Codex would write the folder down as trusted
        "sandboxPolicy": "workspaceWrite",
        "approvalPolicy": "never",
        "config": {"model_reasoning_effort": "high"},
    }
