"""Rules for each setting: which values a repository's settings file may set without trust, and why.

A total table: `RULES` has one entry for each key of the schema, and a test compares the two. A key
without an entry needs trust. A rule compares a value with that of the user's own files and the
defaults: a repository may narrow it, and needs trust for anything else. Some keys it may never set:
they apply to all repositories of the user. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from laneway.base.setting_values import Keys

IF_TRUSTED = "if trusted"
NEVER = "never"


class Rule(msgspec.Struct, frozen=True):
    """What a repository may set for one key without trust."""

    label: str
    """For the column of a table."""
    reason: str
    """What a hostile repository could do with the key, or why it can do nothing."""
    allows: Callable[[Any, Any], bool]
    """Whether a value needs no trust; the second argument is the value without the repository."""
    is_free: bool = False
    is_file_content: bool = False
    """The key names a file whose content is used: trust includes that content."""
    is_run_or_written: bool = False
    """The key names a file that we run or write as the user, so it must be where no session can write."""
    is_never: bool = False
    """A repository may not set the key, trusted or not."""


def free(reason: str) -> Rule:
    return Rule("yes", reason, lambda value, own: True, is_free=True)


def trusted(reason: str, *, is_file_content: bool = False, is_run_or_written: bool = False) -> Rule:
    return Rule(
        IF_TRUSTED,
        reason,
        lambda value, own: False,
        is_file_content=is_file_content,
        is_run_or_written=is_run_or_written,
    )


def never(reason: str) -> Rule:
    """A key that applies to all repositories of the user, so none of them may set it."""
    return Rule(NEVER, reason, lambda value, own: False, is_never=True)


def unchanged(reason: str) -> Rule:
    """Neither direction is harmless; only the user's own value is."""
    return Rule(IF_TRUSTED, reason, lambda value, own: value == own)


def only(word: Any, label: str, reason: str) -> Rule:
    """One value is the strictest of all."""
    return Rule(f"{label}, else {IF_TRUSTED}", reason, lambda value, own: value in (word, own))


def at_most(reason: str) -> Rule:
    """A number that limits something; None is no limit."""
    label = f"up to your own, else {IF_TRUSTED}"
    return Rule(label, reason, lambda value, own: own is None or value <= own)


def at_most_unless_none(reason: str) -> Rule:
    """The same for a number whose 0 is no limit."""
    label = f"up to your own, else {IF_TRUSTED}"
    return Rule(label, reason, lambda value, own: value == own or (value > 0 and not 0 < own < value))


def fewer(label: str, reason: str) -> Rule:
    """A list that allows things; None allows all."""
    return Rule(
        f"{label}, else {IF_TRUSTED}", reason, lambda value, own: own is None or set(value) <= set(own)
    )


def more(label: str, reason: str) -> Rule:
    """A list that excludes things."""
    return Rule(f"{label}, else {IF_TRUSTED}", reason, lambda value, own: set(value) >= set(own))


def narrower(words: Sequence[str], label: str, reason: str) -> Rule:
    """Words from the narrowest to the widest; any other value is allowed only if it is the user's own."""

    def allows(value: Any, own: Any) -> bool:
        return value == own or (value in words and own in words and words.index(value) <= words.index(own))

    return Rule(f"{label}, else {IF_TRUSTED}", reason, allows)


_MODEL = "behind a gateway, the model's name decides who gets your code and what it costs"
_KEPT = "deletes records of earlier sessions, or fills your disk"
_BUSY = "runs more jobs at once than you allow, in all your repositories"
_LONG = "lets jobs run, and cost money, for longer than you allow"
_ELSEWHERE = "sends your code and your prompts to other machines"
_BOT_TOKEN = "lets everyone who has the token read your conversations and answer in them"
_BOT_ADDRESS = "sends the token of your bot, and your conversations, to another server"
_BOT_PEOPLE = "lets other people run commands as you"
_PAGE = "lets other machines, or pages of other sites, reach what runs commands as you"
_LOG = "hides warnings from your log, or logs what you did not want logged"

RULES: dict[str, Rule] = {
    # Codex
    "engine": unchanged("sends your code to another provider, and lets it be changed without a sandbox"),
    "codex_bin": trusted("starts any program as you, outside any sandbox", is_run_or_written=True),
    "claude_bin": trusted("starts any program as you, outside any sandbox", is_run_or_written=True),
    "claude_idle_minutes": at_most("keeps processes in memory for longer than you allow"),
    "claude_awake": at_most("keeps more processes in memory than you allow"),
    "model": trusted(_MODEL),
    "fast_model": trusted(_MODEL),
    "reasoning_effort": free("costs time and tokens of a model you chose; affects nothing else"),
    "sandbox": narrower(
        ("read-only", "workspace-write", "danger-full-access"),
        "narrower than your own setting",
        "lets commands write more; if only Codex's config decides, even `read-only` may be more, "
        "because it replaces a permission profile",
    ),
    "approval_policy": narrower(
        # `never` is none of them: it asks nobody, so nobody can be talked into an approval.
        ("untrusted", "on-request"),
        "stricter than your own setting",
        "lets commands run without asking, or asks where you decided to grant nothing",
    ),
    "config_keys": only("harmless", "`harmless`", "lets a call start programs, which you forbade"),
    "base_prompt_file": trusted(
        "replaces Codex's instructions, or sends any of your files to the model", is_file_content=True
    ),
    "extra_instructions_file": trusted(
        "instructs every session, or sends any of your files to the model", is_file_content=True
    ),
    "transport": unchanged("the old server lacks protections that app-server has"),
    "retry_secs": at_most_unless_none("lets a call wait for longer than you allow"),
    # Sessions
    "team": trusted("uses the state and mail of another team"),
    "identity": trusted("lets sessions and mail use somebody else's name"),
    "request_timeout_secs": at_most("lets a call run, and cost money, for longer than you allow"),
    "approval_timeout_secs": at_most("keeps a question open for longer than you allow"),
    "unattended": only(
        "decline", "`decline`", "lets the client's own model grant what would have been declined"
    ),
    "max_concurrent_threads": at_most("opens more sessions than you allow"),
    "max_turns": at_most("takes more turns than you allow"),
    "max_tokens": at_most("uses more tokens than you allow"),
    "persist_threads": unchanged("leaves no trace of a session, or keeps one you did not want kept"),
    "summaries": only(False, "`false`", "makes a model call that you turned off"),
    # MCP
    "tools": fewer("fewer than your own", "offers clients tools that you left out"),
    "events": narrower(
        ("full", "compact", "off"), "as much as your own", "hides from the client what a turn does"
    ),
    "http_token": trusted("lets in everyone who knows the token, which is everyone with the repository"),
    # Mail
    "auto_mail": only(False, "`false`", "lets mail start turns where you turned that off"),
    "mail_poll_interval_ms": free("only sets how often an inbox is checked, within limits"),
    "max_mail_messages": at_most("puts more of other people's text into a turn than you allow"),
    "max_mail_message_length": at_most("puts more of other people's text into a turn than you allow"),
    "mail_allow": fewer("fewer than your own", "lets strangers start turns"),
    "mail_deny": more("more than your own", "lets senders you shut out start turns"),
    "mail_turns_per_hour": at_most("lets mail start more turns than you allow"),
    "mail_steer": only(False, "`false`", "lets mail interfere with a turn that is running"),
    # Background jobs: one queue and one set of limits for all repositories
    "jobs.k_read": never(_BUSY),
    "jobs.k_write": never(_BUSY),
    "jobs.max_jobs": never(_BUSY),
    "jobs.max_sandbox": never("lets jobs write more than you allow"),
    "jobs.timeout_ms": never(_LONG),
    "jobs.stall_ms": never(_LONG),
    "jobs.run_expiry_hours": never("closes runs of jobs before you have looked at their edits"),
    "jobs.keep_days": never("deletes jobs, and with them the way back, before you want it"),
    "jobs.mail": never("sends mail that you did not want sent, or keeps back what you wait for"),
    "jobs.executor": never(_ELSEWHERE),
    "jobs.address": never(_ELSEWHERE),
    # What is kept
    "session_age_days": unchanged(_KEPT),
    "registry_max_sessions": unchanged(_KEPT),
    "audit_max_bytes": unchanged(_KEPT),
    "audit_files": unchanged(_KEPT),
    "audit_age_days": unchanged(_KEPT),
    # Logs
    "log_level": unchanged(_LOG),
    "log_format": unchanged("breaks programs that read your log, or makes forged log lines possible"),
    "log_file": trusted("writes to any of your files", is_run_or_written=True),
    # Chat
    "chat.default_lane": unchanged("sends your code and your words to another provider"),
    "chat.busy": unchanged(
        "stops a lane where you decided to wait, or lets it go on where you would stop it"
    ),
    "chat.codex_approvals": unchanged("lets commands run without asking, or write where they may not"),
    "chat.question_secs": at_most("keeps a question open for longer than you allow"),
    "chat.warn_secs": at_most("hides for longer than you allow that a lane is silent"),
    "chat.silence_secs": at_most("lets a silent lane go on for longer than you allow"),
    "chat.command_secs": at_most("lets a silent command run for longer than you allow"),
    "chat.image_secs": at_most("puts an older image into a message than you allow"),
    "chat.catch_up_secs": at_most("runs messages that are older than you allow"),
    "chat.keep_days": unchanged(_KEPT),
    "chat.lanes": never("runs any Python code as you, outside any sandbox"),
    "chat.diff_images": unchanged("shows changes in a form that you did not choose"),
    # Bots
    "chat.telegram.token": never(_BOT_TOKEN),
    "chat.telegram.api_url": never(_BOT_ADDRESS),
    "chat.telegram.allowed_users": never(_BOT_PEOPLE),
    "chat.telegram.owners": never(_BOT_PEOPLE),
    "chat.telegram.allowed_chats": never(_BOT_PEOPLE),
    "chat.discord.token": never(_BOT_TOKEN),
    "chat.discord.api_url": never(_BOT_ADDRESS),
    "chat.discord.gateway_url": never(_BOT_ADDRESS),
    "chat.discord.allowed_users": never(_BOT_PEOPLE),
    "chat.discord.owners": never(_BOT_PEOPLE),
    "chat.discord.allowed_chats": never(_BOT_PEOPLE),
    # The page
    "page.host": never(_PAGE),
    "page.port": never("takes a port that a page of another program had, whose tabs would speak to us"),
    "page.names": never(_PAGE),
    "page.remote": never(_PAGE),
    "page.token": never("lets in everyone who knows the token, which is everyone with the repository"),
    # Tables: each field of a role follows the rule of its key, all of them or none
    "roles": Rule(
        f"a role that only narrows, else {IF_TRUSTED}",
        "anyone who asks for the role gets a session with more access",
        lambda value, own: False,
    ),
    "per_thread_auto_mail": only(False, "`false`", "lets mail start turns where you turned that off"),
    "jobs.nodes": never("starts any program as you, outside any sandbox"),
    "jobs.repositories": never("lets jobs of other machines work in any of your folders"),
}

UNDECIDED = trusted("nobody has thought about this key")


def rule_of(keys: Keys) -> Rule:
    """The rule of a key, or of the table that it is in."""
    for length in range(1, len(keys) + 1):
        if (rule := RULES.get(".".join(keys[:length]))) is not None:
            return rule
    return UNDECIDED
