"""Names are not paths."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.base.errors import BadName
from laneway.store.layout import Layout, sessions_root
from laneway.store.names import MAX_NAME_BYTES, check_name, is_name

GOOD = [
    "codex",
    "codex-2",
    "arch-ctm",
    "session-7f3a",
    "Ünïcode 名前",
    "a.b_c",
    "x" * MAX_NAME_BYTES,
    "config",
]
BAD = [
    "", ".", "..", "../up", "a/b", "a\\b", "/etc", "C:x", "a@b", ".hidden", "dot.", " space", "space ",
    "tab\t", "null\0", "line\n", "\x7f", "bidi\u202e", "zero\u200bwidth", "sep\u2028", "half\ud800",
    "e\u0301", "CON", "nul.txt", "Com1", "aux .log", "x" * (MAX_NAME_BYTES + 1), "é" * MAX_NAME_BYTES,
    "codex.lock", "Codex.LOCK", "registry.json", "audit.jsonl", "AUDIT.jsonl.1", "registry.json.corrupt-1",
]  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_a_name_that_people_use_is_taken_as_it_is(name: str) -> None:
    """Letters of any script, dots, spaces and dashes inside."""
    assert check_name(name, "an identity") == name


@pytest.mark.parametrize("name", BAD, ids=ascii)
def test_a_name_that_could_be_something_else_is_refused_with_the_reason(name: str) -> None:
    """In a sentence that shows the name harmlessly, and before any path is built."""
    layout = Layout(Path("/nowhere"))
    with pytest.raises(BadName, match=r"cannot be the name of an identity: .+\.$") as refused:
        check_name(name, "an identity")
    assert str(refused.value).isascii()
    assert str(refused.value).isprintable()
    for build in (layout.lock, layout.home, layout.registry, lambda bad: layout.summary("codex", bad)):
        with pytest.raises(BadName):
            build(name)
    with pytest.raises(BadName):
        Layout.of(Path("/nowhere"), name)


@pytest.mark.covers("NFR-3")
@given(st.text(max_size=40), st.text(max_size=40))
def test_no_text_at_all_leads_out_of_its_folder_or_onto_a_file_of_ours(name: str, backend_id: str) -> None:
    """What is accepted is one component, and nobody else's."""
    layout = Layout(Path("/root/crew"))
    if not is_name(name) or not is_name(backend_id):
        return
    paths = [layout.lock(name), layout.registry(name), layout.summary(name, backend_id)]
    assert [Path(os.path.normpath(path)) for path in paths] == paths
    assert layout.home(name).parent == layout.lock(name).parent == layout.folder
    assert layout.summary(name, backend_id).parent.parent == layout.home(name)
    taken = {
        layout.audit,
        layout.audit_gate,
        layout.claims_gate,
        layout.old_registry,
        layout.lock(backend_id),
    }
    assert layout.home(name) not in taken
    assert layout.lock(name) not in taken - {layout.lock(backend_id)}


def test_the_root_is_under_atm_home_where_that_is_set() -> None:
    """Blank is not set."""
    assert sessions_root(environment={"ATM_HOME": " /h "}) == Path("/h/.config/atm/agent-sessions")
    assert sessions_root(environment={"ATM_HOME": "  "}) == Path.home() / ".config/atm/agent-sessions"
    assert sessions_root("codex-sessions", {}) == Path.home() / ".config/atm/codex-sessions"
