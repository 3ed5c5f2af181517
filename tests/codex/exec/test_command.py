"""The words of a worker: what is in them, and what may never be."""

from __future__ import annotations

import os
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.codex.exec.command import ServerOff, WorkerCommand, argv, is_thread_id, toml_string

THREAD = "01a1f00b-16f7-7102-a310-1145cf7ac18a"
names = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.mark.covers("004-boss.1", "J-workers.1")
def test_a_plain_worker() -> None:
    """For reading, a new thread, the prompt on standard input."""
    assert argv(WorkerCommand(binary="codex", cwd="/x")) == [
        "codex",
        "exec",
        "--json",
        "--skip-git-repo-check",
        *("-C", "/x", "-s", "read-only"),
        *("-c", 'approval_policy="never"'),
        *("-c", "features.multi_agent=false"),
        *("-c", "features.multi_agent_v2=false"),
        *("-c", "features.goals=false"),
        "-",
    ]


def test_a_worker_with_everything() -> None:
    """All options stand before `resume`, which takes few of them."""
    command = WorkerCommand(
        binary="/bin/codex",
        cwd="/x",
        sandbox="workspace-write",
        model="-m",
        effort='hi"gh',
        schema_file="/s.json",
        thread_id=THREAD.upper(),
        untrusted=("/a", '/b"c', "/a"),
        servers_off=(ServerOff("our.own"), ServerOff("http", has_url=True)),
        extra=("--add-dir", "/y"),
    )
    words = argv(command)
    assert words[4:8] == ["-C", "/x", "-s", "workspace-write"]
    assert words[16:] == [
        *("-c", 'model_reasoning_effort="hi\\"gh"'),
        *("-c", 'projects={"/a"={trust_level="untrusted"},"/b\\"c"={trust_level="untrusted"}}'),
        "-c",
        'mcp_servers={"our.own"={command="false",enabled=false},'
        '"http"={url="http://127.0.0.1:9/",enabled=false}}',
        "--model=-m",
        "--output-schema=/s.json",
        *("--add-dir", "/y"),
        *("resume", THREAD, "-"),
    ]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"cwd": "x"}, "cwd is not absolute"),
        ({"schema_file": "s.json"}, "schema_file is not absolute"),
        ({"thread_id": "nobody"}, "thread_id is not the id of a thread"),
        ({"thread_id": ""}, "thread_id is not the id of a thread"),
        ({"thread_id": "--last"}, "thread_id is not the id of a thread"),
        ({"extra": ("-c", "projects={}")}, "extra would replace"),
        ({"extra": ("-cmcp_servers={}",)}, "extra would replace"),
        ({"extra": ("--config=x",)}, "extra would replace"),
    ],
)
def test_what_codex_would_take_for_something_else_is_refused(fields: dict[str, object], words: str) -> None:
    """A name that is no thread's starts a new one; a second table replaces the first."""
    given_fields = {"binary": "codex", "cwd": "/x", **fields}
    with pytest.raises(ValueError, match=words):
        argv(WorkerCommand(**given_fields))  # type: ignore[arg-type]


def test_a_thread_is_known_by_its_id() -> None:
    """In either case, and nothing around it."""
    assert is_thread_id(THREAD)
    assert is_thread_id(THREAD.upper())
    assert not is_thread_id(THREAD + "\n")
    assert not is_thread_id(THREAD[:-1] + "٣")


@given(name=names, path=names)
def test_any_name_survives_in_the_tables(name: str, path: str) -> None:
    """Quotes, dots, newlines, braces, control characters: what is parsed again is what was meant."""
    command = WorkerCommand(binary="codex", cwd="/x", untrusted=(path,), servers_off=(ServerOff(name),))
    settings = [word for word in argv(command) if word.startswith(("projects=", "mcp_servers="))]
    assert tomllib.loads("\n".join(settings)) == {
        "projects": {path: {"trust_level": "untrusted"}},
        "mcp_servers": {name: {"command": "false", "enabled": False}},
    }
    assert not any("\n" in setting for setting in settings)


def test_a_path_that_is_not_utf_8_is_spelt_as_codex_spells_it() -> None:
    """One replacement character for each broken sequence."""
    assert toml_string(os.fsdecode(b"/x/\xff\xc3(")) == '"/x/\ufffd\ufffd("'
