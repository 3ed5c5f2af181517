"""The registry as a value: what is read, kept and written."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.base.errors import FileDamaged, FileNewer, StoreError
from laneway.store import registry
from laneway.store.registry import Entry, RegistryContent, decode, fitted, is_older
from tests.store.support import entry

KNOWN = {*registry.KNOWN, "thread_id", "last_active_at", "codex_id"}
NOON = datetime(2026, 2, 18, 12, tzinfo=UTC)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OTHERS = st.dictionaries(st.text().filter(lambda name: name not in KNOWN), JSON, max_size=4)
TEXT = st.none() | st.text(max_size=20)
ENTRIES = st.builds(
    Entry,
    agent_id=st.text(max_size=8),
    identity=st.just("codex"),
    team=st.just("crew"),
    backend_id=TEXT,
    cwd=TEXT,
    branch=TEXT,
    last_active=st.text(max_size=8),
    status=st.sampled_from(["active", "stale", "closed", "interrupted"]),
    tag=TEXT,
)
RUSTY: dict[str, Any] = {
    "agent_id": "codex:1", "identity": "codex", "team": "crew", "thread_id": None, "cwd": "/w",
    "repo_root": None, "repo_name": None, "branch": None, "started_at": "2026-02-18T11:00:00.1Z",
    "last_active": "2026-02-18T11:30:00.123456789Z", "status": "active", "thread_state": "idle",
}  # fmt: skip
"""As the old atm-agent-mcp writes a session."""


def content_of(*sessions: Any, **others: Any) -> RegistryContent:
    return decode(json.dumps({"version": 1, "sessions": sessions, **others}).encode(), "here")


def written(content: RegistryContent) -> Any:
    return json.loads(content.render())


@given(st.lists(ENTRIES, unique_by=lambda e: e.agent_id, max_size=5))
def test_what_is_written_is_read_back(entries: list[Entry]) -> None:
    """Whatever the texts hold."""
    content = RegistryContent()
    for one in entries:
        content = content.put(one)
    assert decode(content.render(), "here").entries == tuple(entries)


@given(OTHERS, OTHERS)
def test_what_we_do_not_know_is_kept_through_a_change(beside: dict[str, Any], inside: dict[str, Any]) -> None:
    """Fields of a session and of the file, numbers to the last digit."""
    beside = {name: value for name, value in beside.items() if name not in ("version", "sessions")}
    content = content_of({**RUSTY, **inside}, **beside)
    changed = written(content.put(msgspec.structs.replace(content.entries[0], status="closed")))
    assert {name: changed["sessions"][0][name] for name in inside} == inside
    assert {name: changed[name] for name in beside} == beside
    # The same from a caller who knows nothing of them.
    fresh = written(content.put(entry("codex:1", status="closed")))
    assert {name: fresh["sessions"][0][name] for name in inside} == inside


@pytest.mark.covers("FR-5.2")
def test_a_session_is_written_with_both_names_of_what_has_two() -> None:
    """The whole line, field for field."""
    one = entry("a", backend_id="t", last_active="now", cwd="/w", extra={"codex_id": "c", "n": [1]})
    assert written(RegistryContent().put(one)) == {
        "version": 1,
        "sessions": [
            {
                "agent_id": "a", "identity": "codex", "team": "crew", "backend_id": "t", "thread_id": "t",
                "repo_root": None, "repo_name": None, "branch": None, "cwd": "/w", "started_at": "",
                "last_active": "now", "last_active_at": "now", "status": "active", "tag": None,
                "codex_id": "c", "n": [1],
            }
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"thread_id": "t"}, {"backend_id": "t"}),
        ({"backend_id": None, "thread_id": "t"}, {"backend_id": "t"}),
        ({"backend_id": "b", "thread_id": "t"}, {"backend_id": "b"}),
        ({"last_active": None, "last_active_at": "x"}, {"last_active": "x"}),
        ({"agent_id": None, "codex_id": "c"}, {"agent_id": "c"}),
    ],
)
def test_either_name_is_read(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    """The newer one wins where both stand."""
    (one,) = content_of({**RUSTY, **fields}).entries
    assert {name: getattr(one, name) for name in expected} == expected


def test_a_session_of_the_old_program_is_read_and_kept() -> None:
    """With the field that we do not have."""
    (one,) = content_of(RUSTY).entries
    assert (one.agent_id, one.backend_id, one.status, one.read("thread_state", str)) == (
        "codex:1", None, "active", "idle",
    )  # fmt: skip
    assert one.read("thread_state", int) is None
    assert one.read("none", str) is None


@pytest.mark.parametrize("odd", [5, None, [], {}, {**RUSTY, "status": "asleep"}, {**RUSTY, "team": 3}])
def test_a_session_that_we_cannot_read_is_neither_shown_nor_lost(odd: Any) -> None:
    """One strange line does not cost the others, nor itself."""
    content = content_of(odd, RUSTY, odd).disowned().put(entry("b"))
    assert [e.agent_id for e in content.entries] == ["codex:1", "b"]
    assert [s for s in written(content)["sessions"] if s == odd] == [odd, odd]
    assert len(content.rows) == 4


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"[]", b"null", b'{"version":1}', b'{"sessions":[]}', b'{"version":"1","sessions":[]}',
        b'{"version":1,"sessions":{}}', b'{"version":1,"sessions":[]}x', b'{"version":1,"sessions":[]',
        b"\0" * 50, b'{"version":1,"sessions":[{"a":"\xff"}]}', b'{"version":1,"sessions":' + b"[" * 10_000,
    ],
    ids=range(13),
)  # fmt: skip
def test_what_is_no_registry_is_told_as_damaged(data: bytes) -> None:
    """Cut off, of another shape, not text, or nested without end."""
    with pytest.raises(FileDamaged, match=r"^here is damaged"):
        decode(data, "here")


def test_a_newer_format_is_told_as_such() -> None:
    """With both numbers."""
    with pytest.raises(FileNewer, match="format 2; this one supports 1") as told:
        decode(b'{"version":2,"sessions":"anything"}'.replace(b'"anything"', b"[]"), "here")
    assert (told.value.version, told.value.known, told.value.path) == (2, 1, "here")


@given(st.binary())
def test_no_bytes_at_all_crash_the_reader(data: bytes) -> None:
    """A `RegistryContent` or one of our errors."""
    try:
        decode(data, "here")
    except (FileDamaged, FileNewer):
        pass


def test_a_folder_that_is_no_text_does_not_keep_a_session_from_being_saved() -> None:
    """Its name is written as far as JSON can."""
    content = RegistryContent().put(entry("a", cwd="/w/\udcff"))
    assert decode(content.render(), "here").entries[0].cwd == "/w/?"


def test_a_session_that_cannot_be_json_or_is_too_long_is_refused() -> None:
    """With a sentence, and nothing is changed."""
    with pytest.raises(StoreError, match="no JSON"):
        RegistryContent().put(entry("a", extra={"x": object()}))
    with pytest.raises(StoreError, match="longer than"):
        RegistryContent().put(entry("a", extra={"x": "x" * registry.MAX_ENTRY_BYTES}))


def test_age_counts_from_the_last_activity() -> None:
    """A clock that went back makes nobody old; without a readable time nobody is."""
    hour = timedelta(hours=1)
    ages = ["2026-02-18T10:59:59Z", "2026-02-18T11:00:01Z", "2027-01-01T00:00:00Z", "soon"]
    assert [is_older(entry("a", last_active=t), hour, NOON) for t in ages] == [True, False, False, False]
    assert is_older(entry("a", started_at="2026-02-18T10:00:00Z"), hour, NOON)
    assert is_older(entry("a", last_active="soon"), timedelta(0), NOON)


def test_a_full_registry_lets_ended_sessions_go_and_no_others() -> None:
    """Those quiet for longest first; the new one always stays."""
    content = RegistryContent()
    for number, status in enumerate(("closed", "active", "stale", "interrupted", "closed")):
        content = content.put(entry(str(number), last_active=str(9 - number), status=status))
    assert [e.agent_id for e in fitted(content, 4, keep="4").entries] == ["0", "1", "3", "4"]
    assert [e.agent_id for e in fitted(content, 1, keep="4").entries] == ["1", "3", "4"]
    assert fitted(content, 5, keep="4") is content


def test_a_registry_never_grows_past_what_we_would_read() -> None:
    """Bytes count as well as sessions."""
    content = RegistryContent()
    for number in range(20):
        long = "x" * (registry.MAX_ENTRY_BYTES - 1000)
        content = fitted(
            content.put(entry(f"{number:02}", status="closed", extra={"x": long})), 500, keep=f"{number:02}"
        )
    assert len(content.render()) < registry.MAX_REGISTRY_BYTES
    assert content.entries[-1].agent_id == "19"
    assert len(content.entries) >= 14
