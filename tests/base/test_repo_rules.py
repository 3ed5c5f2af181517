"""What a repository may say without trust: a decision for every key, and each decision tried."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from laneway.base.named_tables import TABLE_KEYS
from laneway.base.repo_rules import IF_TRUSTED, NEVER, RULES, UNDECIDED, rule_of
from laneway.base.schema import KEYS
from tests.base.folders import Folders

NEVER_WITHOUT_TRUST = {
    *(
        "codex_bin",
        "claude_bin",
        "model",
        "fast_model",
        "base_prompt_file",
        "extra_instructions_file",
        "team",
        "identity",
    ),
    *("http_token", "log_file"),
}
ONLY_WHAT_HOLDS_ANYWAY = {
    *(
        "engine",
        "transport",
        "persist_threads",
        "session_age_days",
        "registry_max_sessions",
        "audit_max_bytes",
    ),
    *("audit_files", "audit_age_days", "chat.keep_days", "log_level", "log_format"),
    *("chat.default_lane", "chat.busy", "chat.codex_approvals", "chat.diff_images"),
}
FREE = {"reasoning_effort", "mail_poll_interval_ms"}
# Neither trusted nor narrower than the user's own: a value, as in a file.
NEVER_AT_ALL: dict[str, Any] = {
    **dict.fromkeys(("jobs.k_read", "jobs.k_write", "jobs.max_jobs", "jobs.keep_days"), 1),
    **dict.fromkeys(("jobs.timeout_ms", "jobs.stall_ms"), 1000),
    "jobs.max_sandbox": "read-only",
    "jobs.run_expiry_hours": 0,
    "jobs.mail": False,
    "jobs.executor": "local",
    "jobs.address": "10.0.0.1:6379",
    "chat.lanes": ["a_lane"],
    "chat.telegram.token": "a-token-that-is-known",
    "chat.telegram.api_url": "http://evil.example",
    "chat.telegram.allowed_users": ["1"],
    "chat.telegram.owners": ["1"],
    "chat.telegram.allowed_chats": ["1"],
    "chat.discord.token": "a-token-that-is-known",
    "chat.discord.api_url": "http://evil.example",
    "chat.discord.gateway_url": "ws://evil.example",
    "chat.discord.allowed_users": ["1"],
    "chat.discord.owners": ["1"],
    "chat.discord.allowed_chats": ["1"],
    "page.host": "0.0.0.0",
    "page.port": 80,
    "page.names": ["evil.example"],
    "page.remote": True,
    "page.token": "a-token-that-is-known",
}

# The user's own value (none: their files say nothing), what narrows it or leaves it, what needs trust.
COMPARED: dict[str, list[tuple[Any, list[Any], list[Any]]]] = {
    "claude_idle_minutes": [(10, [1, 10], [11])],
    "claude_awake": [(8, [1, 8], [9])],
    "sandbox": [
        # Where Codex's config decides, a permission profile may be narrower than any of these.
        (None, [], ["read-only", "workspace-write", "danger-full-access"]),
        ("workspace-write", ["read-only", "workspace-write"], ["danger-full-access"]),
        ("read-only", ["read-only"], ["workspace-write", "danger-full-access"]),
    ],
    "approval_policy": [
        (None, [], ["untrusted", "on-request", "never"]),
        ("on-request", ["untrusted", "on-request"], ["never"]),
        ("untrusted", ["untrusted"], ["on-request", "never"]),
        ("never", ["never"], ["untrusted", "on-request"]),
    ],
    "config_keys": [(None, ["any", "harmless"], []), ("harmless", ["harmless"], ["any"])],
    "retry_secs": [(None, [1, 120], [121, 0]), (20, [20], [21, 0]), (0, [0, 1, 500], [])],
    "request_timeout_secs": [(None, [1, 300], [301]), (20, [20], [21])],
    "approval_timeout_secs": [(None, [1, 300], [301]), (20, [20], [21])],
    "unattended": [(None, ["decline"], ["park"]), ("park", ["decline", "park"], [])],
    "max_concurrent_threads": [(None, [1, 10], [11]), (2, [2], [3])],
    "max_turns": [(None, [1, 1_000_000], []), (5, [5], [6])],
    "max_tokens": [(None, [1, 10**12], []), (5, [5], [6])],
    "summaries": [(None, [True, False], []), (False, [False], [True])],
    "tools": [
        (None, [["codex"], []], []),
        (["codex"], [["codex"], []], [["codex", "mail"], ["mail"]]),
    ],
    "events": [(None, ["full"], ["compact", "off"]), ("compact", ["full", "compact"], ["off"])],
    "auto_mail": [(None, [True, False], []), (False, [False], [True])],
    "max_mail_messages": [(None, [1, 10], [11]), (2, [2], [3])],
    "max_mail_message_length": [(None, [1, 4096], [4097]), (20, [20], [21])],
    "mail_allow": [(None, [["ann"], []], []), (["ann"], [["ann"], []], [["ann", "eve"], ["eve"]])],
    "mail_deny": [(None, [["eve"], []], []), (["eve"], [["eve", "bob"]], [[], ["bob"]])],
    "mail_turns_per_hour": [(None, [0, 60], [61]), (2, [2], [3])],
    "chat.question_secs": [(None, [1, 1800], [1801]), (20, [20], [21])],
    "chat.warn_secs": [(None, [1, 300], [301]), (20, [20], [21])],
    "chat.silence_secs": [(None, [1, 600], [601]), (20, [20], [21])],
    "chat.command_secs": [(None, [1, 3600], [3601]), (20, [20], [21])],
    "chat.image_secs": [(None, [1, 600], [601]), (20, [20], [21])],
    "chat.catch_up_secs": [(None, [0, 3600], [3601]), (20, [0, 20], [21])],
    "mail_steer": [(None, [False], [True]), (True, [True, False], [])],
}


def toml(key: str, value: Any) -> str:
    spelt = str(value).lower() if isinstance(value, bool) else repr(value)
    return f"[laneway]\n{key} = {spelt}\n"


def test_there_is_a_decision_with_a_reason_for_every_key_and_no_other() -> None:
    """A new setting must be thought about: here, in the rules, and on the page."""
    assert set(RULES) == {*KEYS, *TABLE_KEYS}
    assert all(rule.reason for rule in RULES.values())
    decided = [NEVER_WITHOUT_TRUST, ONLY_WHAT_HOLDS_ANYWAY, FREE, set(COMPARED), set(NEVER_AT_ALL)]
    assert sum(map(len, decided)) == len(KEYS), "each key in one group"
    assert set().union(*decided) == set(KEYS)
    assert {name for name, rule in RULES.items() if rule.is_free} == FREE
    assert {name for name, rule in RULES.items() if rule.label == IF_TRUSTED} == (
        NEVER_WITHOUT_TRUST | ONLY_WHAT_HOLDS_ANYWAY
    )
    assert {name for name, rule in RULES.items() if rule.is_never} == {
        *(name for name, rule in RULES.items() if rule.label == NEVER),
    }
    assert {name for name, rule in RULES.items() if rule.is_never} == {
        *NEVER_AT_ALL,
        *("jobs.nodes", "jobs.repositories"),
    }


def test_a_key_without_a_decision_needs_trust() -> None:
    """Whatever its value."""
    assert rule_of(("not yet decided",)) is rule_of(("jobs", "not yet decided")) is UNDECIDED
    assert not UNDECIDED.allows(1, 1)
    assert not UNDECIDED.is_free


def test_what_is_run_or_written_and_what_is_read_is_marked() -> None:
    """Trust in a path is not enough for these."""
    assert {name for name, rule in RULES.items() if rule.is_run_or_written} == {
        "codex_bin",
        "claude_bin",
        "log_file",
    }
    assert {name for name, rule in RULES.items() if rule.is_file_content} == {
        "base_prompt_file",
        "extra_instructions_file",
    }


@pytest.mark.parametrize("name", sorted(COMPARED))
def test_a_repository_narrows_what_its_user_allows_and_needs_trust_for_more(
    name: str, tmp_path: Path
) -> None:
    """Through the files, as they are read."""
    folders = Folders(tmp_path)
    for own, narrower, wider in COMPARED[name]:
        folders.global_file.write_text("" if own is None else toml(name, own))
        held = folders.load().value(name)
        for value in narrower:
            folders.repo_file.write_text(toml(name, value))
            settings = folders.load()
            wanted = tuple(value) if isinstance(value, list) else value
            assert (settings.value(name), settings.ignored) == (wanted, ())
        for value in wider:
            folders.repo_file.write_text(toml(name, value))
            settings = folders.load()
            assert settings.value(name) == held, (own, value)
            assert [each.keys for each in settings.ignored] == [KEYS[name].keys], (own, value)
        folders.repo_file.unlink()


SAMPLES = {
    "engine": "claude",
    **dict.fromkeys(
        ("codex_bin", "claude_bin", "model", "fast_model", "team", "identity", "http_token"), "x"
    ),
    **dict.fromkeys(("base_prompt_file", "extra_instructions_file", "log_file"), "/etc/hostname"),
    **dict.fromkeys(
        ("session_age_days", "registry_max_sessions", "audit_files", "audit_age_days", "chat.keep_days"), 77
    ),
    "transport": "mcp-server",
    "persist_threads": False,
    "audit_max_bytes": 2**20,
    "log_level": "trace",
    "log_format": "json",
    "chat.default_lane": "codex",
    "chat.busy": "queue",
    "chat.diff_images": False,
    "chat.codex_approvals": "never",
}


@pytest.mark.parametrize("name", sorted(NEVER_WITHOUT_TRUST | ONLY_WHAT_HOLDS_ANYWAY))
def test_everything_else_needs_trust_in_either_direction(name: str, tmp_path: Path) -> None:
    """And is told with its line; what holds anyway is no question, but for a name or a team."""
    folders = Folders(tmp_path)
    folders.repo_file.write_text(toml(name, SAMPLES[name]))
    settings = folders.load()
    assert settings.value(name) == KEYS[name].default
    assert [(each.keys, each.source.line) for each in settings.ignored] == [(KEYS[name].keys, 2)]
    if KEYS[name].default is not None:
        folders.repo_file.write_text(toml(name, KEYS[name].default))
        assert bool(folders.load().ignored) is (name in NEVER_WITHOUT_TRUST)
        assert (folders.load().source(name).kind == "default") is (name in NEVER_WITHOUT_TRUST)


@pytest.mark.parametrize("name", sorted(NEVER_AT_ALL))
def test_what_applies_to_all_repositories_is_set_by_none_trusted_or_not(name: str, tmp_path: Path) -> None:
    """Not even where it narrows, or says what applies anyway; the reason is given each time."""
    folders = Folders(tmp_path)
    folders.global_file.write_text("[laneway]\n")
    for _ in range(2):
        folders.repo_file.write_text(
            '[laneway]\nmodel = "m"\n' + toml(name, NEVER_AT_ALL[name]).removeprefix("[laneway]\n")
        )
        settings = folders.load()
        assert (settings.value(name), settings.source(name).kind) == (KEYS[name].default, "default")
        (ignored,) = [each for each in settings.ignored if each.keys == KEYS[name].keys]
        assert ignored.source.line == 3
        assert ignored.why == (
            "only your own settings can set this, because it applies to all your repositories"
        )
        folders.trust()
    assert folders.load().model == "m", "the rest of a trusted file counts"
    folders.global_file.write_text(toml(name, NEVER_AT_ALL[name]))
    own = NEVER_AT_ALL[name]
    assert folders.load().value(name) == (tuple(own) if isinstance(own, list) else own)


def test_trust_is_not_asked_for_what_no_trust_allows(tmp_path: Path) -> None:
    """Machines and repositories by name are as much the user's own."""
    folders = Folders(tmp_path)
    folders.repo_file.write_text(
        "[laneway.jobs]\nk_write = 30\n[laneway.jobs.nodes.gpu1]\ncommand = 'sh evil'\n"
        "[laneway.jobs.repositories]\nsite = '/'\n"
    )
    settings = folders.load()
    assert (settings.jobs_nodes, settings.jobs_repositories, settings.jobs_k_write) == ({}, {}, 2)
    assert [".".join(each.keys) for each in settings.ignored] == [
        *("jobs.k_write", "jobs.nodes.gpu1.command", "jobs.repositories.site"),
    ]
    assert [(file.trust_state, file.sensitive) for file in settings.repo_files] == [("asks for nothing", ())]


def test_a_role_that_only_narrows_is_taken_and_any_other_is_not_taken_at_all(tmp_path: Path) -> None:
    """Half a role would be a session that is wider than its name says."""
    folders = Folders(tmp_path)
    narrow = '[laneway.roles.reader]\nsandbox = "read-only"\nreasoning_effort = "low"\n'
    folders.repo_file.write_text(
        narrow + '[laneway.roles.writer]\nsandbox = "danger-full-access"\nreasoning_effort = "low"\n'
        '[laneway.roles.other]\nmodel = "elsewhere"\nreasoning_effort = "low"\n'
    )
    assert folders.load().roles == {}, "nobody knows what Codex's own config allows"
    folders.global_file.write_text('[laneway]\nsandbox = "workspace-write"\n')
    settings = folders.load()
    assert set(settings.roles) == {"reader"}
    assert sorted({".".join(each.keys) for each in settings.ignored}) == [
        *("roles.other.model", "roles.other.reasoning_effort"),
        *("roles.writer.reasoning_effort", "roles.writer.sandbox"),
    ]


def test_a_role_of_the_users_own_is_narrowed_and_never_widened(tmp_path: Path) -> None:
    """By its own fields, not by what holds outside of it."""
    folders = Folders(tmp_path)
    folders.global_file.write_text(
        '[laneway]\nsandbox = "danger-full-access"\n[laneway.roles.reader]\nsandbox = "read-only"\n'
    )
    folders.repo_file.write_text('[laneway.roles.reader]\nsandbox = "workspace-write"\n')
    assert folders.load().roles["reader"].sandbox == "read-only"


def test_mail_of_one_session_can_be_switched_off_and_not_on(tmp_path: Path) -> None:
    """Unless the user's own settings let it start turns."""
    folders = Folders(tmp_path)
    folders.global_file.write_text('[laneway.per_thread_auto_mail]\n"codex:1" = false\n')
    folders.repo_file.write_text(
        '[laneway.per_thread_auto_mail]\n"codex:1" = true\n"codex:2" = true\n"codex:3" = false\n'
    )
    settings = folders.load()
    assert settings.per_thread_auto_mail == {"codex:1": False, "codex:2": True, "codex:3": False}
    assert [each.keys[1] for each in settings.ignored] == ["codex:1"]
