"""The schema of all settings: name, kind, default and environment variables of each.

`Settings` is the schema and the result in one: a line declares a key and gives callers a typed
attribute; the key `jobs.k_read` of the nested table `[laneway.jobs]` is the attribute `jobs_k_read`.
A new setting needs a line here, a rule in `repo_rules` and a row in `docs/settings.md`.
Reads nothing: `settings.load` fills it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import msgspec

from laneway.base import kinds
from laneway.base.config_files import RepoPlace
from laneway.base.engines import BACKENDS, DEFAULT_BACKEND
from laneway.base.kinds import Kind
from laneway.base.setting_values import Ignored, Keys, SettingValue, Source

if TYPE_CHECKING:
    from laneway.base.layers import RepoFile

T = TypeVar("T")
DAY_S = 24 * 60 * 60
MAX_AGE_DAYS = 36_500
JOBS: Keys = ("jobs",)
CHAT: Keys = ("chat",)
TELEGRAM: Keys = ("chat", "telegram")
DISCORD: Keys = ("chat", "discord")
PAGE: Keys = ("page",)
SANDBOXES = ("read-only", "workspace-write", "danger-full-access")
APPROVALS = ("untrusted", "on-request", "never")
TOOL_GROUPS = ("codex", "sessions", "mail", "jobs")


class Role(msgspec.Struct, frozen=True):
    """A preset that a session can be started with; fields that are none keep their value."""

    model: str | None = None
    sandbox: str | None = None
    approval_policy: str | None = None
    reasoning_effort: str | None = None


class NodeSetting(msgspec.Struct, frozen=True):
    """Another machine that runs jobs."""

    command: str | None = None
    """Starts `laneway jobs node` there, with our standard streams: `ssh gpu1 laneway jobs node`."""


class Key(Generic[T]):
    """One setting. As an attribute of loaded `Settings` it is its value."""

    def __init__(
        self,
        kind: Kind[Any],
        default: T,
        summary: str,
        *,
        table: Keys = (),
        also: tuple[str, ...] = (),
        variables: tuple[str, ...] = (),
    ) -> None:
        self.kind = kind
        self.default = default
        self.summary = summary
        self.table = table
        """The nested table that it is in: `("jobs",)`."""
        self.also = also
        """Other names for it in files, in the same table."""
        self.variables = variables

    def __set_name__(self, owner: type, attribute: str) -> None:
        self.keys: Keys = (*self.table, attribute.removeprefix("".join(f"{part}_" for part in self.table)))
        self.name = ".".join(self.keys)
        self.variables = (f"LANEWAY_{attribute.upper()}", *self.variables)

    @overload
    def __get__(self, settings: None, owner: type) -> Key[T]: ...
    @overload
    def __get__(self, settings: Settings, owner: type) -> T: ...
    def __get__(self, settings: Settings | None, owner: type) -> Key[T] | T:
        return self if settings is None else settings.values[self.keys].value


def _atm(name: str) -> tuple[str, ...]:
    return (f"ATM_AGENT_MCP_{name}",)


class Settings(msgspec.Struct, frozen=True):
    """The settings of one folder."""

    values: dict[Keys, SettingValue]
    ignored: tuple[Ignored, ...]
    repo: RepoPlace
    files: dict[str, Path]
    """Paths of the settings files: `repo` and `global` are ATM's, those with `laneway_` in front are ours."""
    repo_files: tuple[RepoFile, ...] = ()
    """The repository's settings files, and whether the user trusts them."""
    contents: dict[Path, bytes] = {}
    """Of files that a trusted repository names: used as they were checked, not read again."""

    # Codex
    engine = Key[str](
        kinds.choice(*BACKENDS),
        DEFAULT_BACKEND,
        "the engine of a session that asks for none",
    )
    codex_bin = Key[str | None](
        kinds.program(),
        None,
        "the codex executable; by default the one on PATH or in `laneway[codex]`",
        variables=_atm("CODEX_BIN"),
    )
    claude_bin = Key[str | None](
        kinds.program(),
        None,
        "the Claude Code executable; by default the one on PATH or in `laneway[claude]`",
    )
    claude_idle_minutes = Key[int](
        kinds.whole(1, 24 * 60), 10, "minutes without a turn after which a session of Claude Code sleeps"
    )
    claude_awake = Key[int](
        kinds.whole(1, 500), 8, "idle sessions of Claude Code that stay awake; each takes some 130 MB"
    )
    model = Key[str | None](
        kinds.text(), None, "the model; by default Codex's own config decides", variables=_atm("MODEL")
    )
    fast_model = Key[str | None](
        kinds.text(), None, "the model that `--fast` uses", variables=_atm("FAST_MODEL")
    )
    reasoning_effort = Key[str | None](
        kinds.text(),
        None,
        "how long the model thinks; the values depend on the model",
        variables=_atm("REASONING_EFFORT"),
    )
    sandbox = Key[str | None](
        kinds.choice(*SANDBOXES), None, "what commands may touch", variables=_atm("SANDBOX")
    )
    approval_policy = Key[str | None](
        # Codex replaced on-failure by on-request.
        kinds.choice(*APPROVALS, once={"on-failure": "on-request"}),
        None,
        "when Codex asks before it acts; `on-failure` is read as `on-request`",
        variables=_atm("APPROVAL_POLICY"),
    )
    config_keys = Key[str](
        kinds.choice("any", "harmless"),
        "any",
        "which Codex config keys an MCP call may set; `harmless`: none that start programs or widen access",
    )
    base_prompt_file = Key[Path | None](kinds.path(), None, "a file that replaces Codex's base instructions")
    extra_instructions_file = Key[Path | None](
        kinds.path(), None, "a file added to every session's instructions"
    )
    transport = Key[str](
        kinds.choice("app-server", "mcp-server", once={"mcp": "mcp-server"}),
        "app-server",
        "how Codex is driven; `mcp-server` needs Codex 0.153.4 or older",
        also=("backend",),
        variables=_atm("TRANSPORT"),
    )

    retry_secs = Key[int](
        kinds.whole(0, DAY_S),
        120,
        "seconds that Codex may keep trying to reach the model; 0 leaves it to Codex",
    )

    # Sessions
    team = Key[str](
        kinds.named(kinds.TEAM, "a name of up to 64 letters, digits, dots, dashes and underscores"),
        "default",
        "the team whose state and mail are used",
        also=("default_team",),
        variables=("ATM_TEAM",),
    )
    identity = Key[str](
        kinds.named(kinds.IDENTITY, "a name of up to 64 letters, digits, dashes and underscores"),
        "codex",
        "the name of a session that asks for none",
        also=("default_identity",),
        variables=("ATM_IDENTITY", *_atm("IDENTITY")),
    )
    request_timeout_secs = Key[int](
        kinds.whole(1, DAY_S), 300, "seconds for one call, not counting the time that questions are open"
    )
    approval_timeout_secs = Key[int](
        kinds.whole(1, DAY_S), 300, "seconds before an unanswered question is declined"
    )
    unattended = Key[str](
        kinds.choice("decline", "park"), "decline", "what happens to a question when nobody can be asked"
    )
    max_concurrent_threads = Key[int](kinds.whole(1, 1000), 10, "sessions open at once")
    max_turns = Key[int | None](kinds.whole(1, 10**6), None, "turns one session may take")
    max_tokens = Key[int | None](kinds.whole(1, 10**12), None, "tokens one session may use")
    persist_threads = Key[bool](kinds.switch(), True, "keep sessions so that they can be resumed")
    summaries = Key[bool](kinds.switch(), True, "ask a session for a summary when it is closed")

    # MCP
    tools = Key[tuple[str, ...]](
        kinds.several(
            kinds.choice(*TOOL_GROUPS),
            f"a list of {', '.join(TOOL_GROUPS)}",
            "list of tool groups",
        ),
        TOOL_GROUPS,
        "groups of tools offered to MCP clients",
    )
    events = Key[str](
        kinds.choice("full", "compact", "off"), "full", "how much of a running turn MCP clients are sent"
    )
    http_token = Key[str | None](
        kinds.text(), None, "the bearer token of the HTTP and WebSocket servers; by default one is generated"
    )

    # Mail
    auto_mail = Key[bool](kinds.switch(), True, "let mail start turns")
    mail_poll_interval_ms = Key[int](
        kinds.whole(100, DAY_S * 1000),
        5000,
        "milliseconds between two checks of an inbox",
        variables=_atm("MAIL_POLL_INTERVAL_MS"),
    )
    max_mail_messages = Key[int](kinds.whole(1, 1000), 10, "messages in one mail turn")
    max_mail_message_length = Key[int](kinds.whole(1, 10**6), 4096, "characters after which a message is cut")
    mail_allow = Key[tuple[str, ...] | None](
        kinds.several(kinds.text(), "a list of names", "list of names"),
        None,
        "senders whose mail may start turns; by default everyone",
    )
    mail_deny = Key[tuple[str, ...]](
        kinds.several(kinds.text(), "a list of names", "list of names"),
        (),
        "senders whose mail never starts turns",
    )
    mail_turns_per_hour = Key[int](kinds.whole(0, 10_000), 60, "mail turns per session and hour")
    mail_steer = Key[bool](kinds.switch(), False, "let urgent mail reach a turn that is running")

    # Background jobs: see `laneway.jobs`
    jobs_k_read = Key[int](kinds.whole(1, 64), 8, "read-only jobs that run at once", table=JOBS)
    jobs_k_write = Key[int](kinds.whole(1, 32), 2, "writing jobs that run at once", table=JOBS)
    jobs_max_jobs = Key[int](kinds.whole(1, 96), 10, "jobs of either kind that run at once", table=JOBS)
    jobs_max_sandbox = Key[str](
        kinds.choice(*SANDBOXES), "workspace-write", "the widest sandbox that a job may ask for", table=JOBS
    )
    jobs_timeout_ms = Key[int](
        kinds.whole(1000, DAY_S * 1000), 3_600_000, "milliseconds a job may take, by default", table=JOBS
    )
    jobs_stall_ms = Key[int](
        kinds.whole(1000, DAY_S * 1000),
        900_000,
        "milliseconds a job may go without any progress, by default",
        table=JOBS,
    )
    jobs_run_expiry_hours = Key[int](
        kinds.whole(0, 24 * 365),
        24,
        "hours after its last job when a run without conflicts closes by itself; 0: never",
        table=JOBS,
    )
    jobs_keep_days = Key[int](
        kinds.whole(1, MAX_AGE_DAYS), 30, "days that `laneway jobs gc` keeps ended jobs", table=JOBS
    )
    jobs_mail = Key[bool](
        kinds.switch(), False, "send team mail to the identity that started a job when it ends", table=JOBS
    )
    jobs_executor = Key[str](
        kinds.choice("local", "ray"),
        "local",
        "where jobs run: on this machine or on a Ray cluster",
        table=JOBS,
    )
    jobs_address = Key[str | None](
        kinds.text(), None, "the address of the Ray cluster; by default Ray finds it", table=JOBS
    )

    # What is kept: see `store.retention`, which gives the reasons for the defaults
    session_age_days = Key[int](
        kinds.whole(0, MAX_AGE_DAYS),
        90,
        "days that closed and stale sessions stay listed; 0 keeps them until you prune",
    )
    registry_max_sessions = Key[int](kinds.whole(10, 100_000), 500, "sessions listed for one identity")
    audit_max_bytes = Key[int](
        kinds.whole(64 * 1024, 2**40), 10 * 1024 * 1024, "size at which an audit file is rotated"
    )
    audit_files = Key[int](kinds.whole(0, 1000), 5, "rotated audit files to keep")
    audit_age_days = Key[int](
        kinds.whole(0, MAX_AGE_DAYS), 90, "days to keep audit lines; 0 keeps them for ever"
    )

    # Logs
    log_level = Key[str](
        kinds.choice("error", "warning", "info", "debug", "trace"), "error", "the lowest level that is logged"
    )
    log_format = Key[str](kinds.choice("human", "json"), "human", "log lines for people or for programs")
    log_file = Key[Path | None](kinds.path(), None, "log to this file instead of standard error")

    # Chat: see `laneway.doors.chat` and, for lane plugins, `laneway.lanes.loading`
    chat_default_lane = Key[str](
        kinds.named(kinds.LANE, "the name of a lane, such as claude or codex"),
        "claude",
        "the lane that leads a conversation, if it can be used",
        table=CHAT,
    )
    chat_busy = Key[str](
        kinds.choice("interrupt", "steer", "queue"),
        "interrupt",
        "what a message does while a lane works: stop it, go into its turn, or wait for its end",
        table=CHAT,
    )
    chat_codex_approvals = Key[str](
        kinds.choice("configured", "never"),
        "configured",
        "when Codex asks: as configured, or `never` with a workspace sandbox",
        table=CHAT,
    )
    chat_question_secs = Key[int](
        kinds.whole(1, DAY_S), 1800, "seconds before an unanswered question is declined", table=CHAT
    )
    chat_warn_secs = Key[int](
        kinds.whole(1, DAY_S),
        300,
        "seconds of silence after which a lane is reported as silent",
        table=CHAT,
    )
    chat_silence_secs = Key[int](
        kinds.whole(1, DAY_S), 600, "seconds of silence after which a lane's turn is interrupted", table=CHAT
    )
    chat_command_secs = Key[int](
        kinds.whole(1, DAY_S), 3600, "the same, while a lane runs a command", table=CHAT
    )
    chat_image_secs = Key[int](
        kinds.whole(1, DAY_S),
        600,
        "seconds that an image without words waits for your next message",
        table=CHAT,
    )
    chat_catch_up_secs = Key[int](
        kinds.whole(0, 30 * DAY_S),
        3600,
        "age in seconds up to which messages that waited are run after a restart; older ones are offered",
        table=CHAT,
    )
    chat_keep_days = Key[int](
        kinds.whole(0, 36_500),
        90,
        "days that conversations are kept after their last use; 0 keeps them for ever",
        table=CHAT,
    )
    chat_lanes = Key[tuple[str, ...]](
        kinds.several(
            kinds.named(kinds.MODULE, "the name of a Python module"),
            "a list of Python modules",
            "list of modules",
        ),
        (),
        "Python modules of lane plugins, which are imported when a conversation starts",
        table=CHAT,
    )

    chat_diff_images = Key[bool](
        kinds.switch(),
        True,
        "bots show the changes of a turn as pictures, if `laneway[images]` is installed",
        table=CHAT,
    )

    # Bots: see `laneway.doors.chat.platforms.bots`
    chat_telegram_token = Key[str | None](
        kinds.text(),
        None,
        "the token of your Telegram bot",
        table=TELEGRAM,
        variables=("LANEWAY_TELEGRAM_TOKEN",),
    )
    chat_telegram_api_url = Key[str | None](
        kinds.text(), None, "the address of a Bot API server of your own", table=TELEGRAM
    )
    chat_telegram_allowed_users = Key[tuple[str, ...]](
        kinds.user_ids(), (), "the users who may speak to it; without any it does not start", table=TELEGRAM
    )
    chat_telegram_owners = Key[tuple[str, ...]](
        kinds.user_ids(), (), "those of them who answer approvals; by default all", table=TELEGRAM
    )
    chat_telegram_allowed_chats = Key[tuple[str, ...]](
        kinds.user_ids(),
        (),
        "groups in which it may be spoken to; private chats need no entry",
        table=TELEGRAM,
    )
    chat_discord_token = Key[str | None](
        kinds.text(),
        None,
        "the token of your Discord bot",
        table=DISCORD,
        variables=("LANEWAY_DISCORD_TOKEN",),
    )
    chat_discord_api_url = Key[str | None](
        kinds.text(), None, "another address of Discord's REST API", table=DISCORD
    )
    chat_discord_gateway_url = Key[str | None](
        kinds.text(), None, "another address of Discord's gateway", table=DISCORD
    )
    chat_discord_allowed_users = Key[tuple[str, ...]](
        kinds.user_ids(), (), "the users who may speak to it; without any it does not start", table=DISCORD
    )
    chat_discord_owners = Key[tuple[str, ...]](
        kinds.user_ids(), (), "those of them who answer approvals; by default all", table=DISCORD
    )
    chat_discord_allowed_chats = Key[tuple[str, ...]](
        kinds.user_ids(),
        (),
        "channels in which it may be spoken to; private chats need no entry",
        table=DISCORD,
    )

    # The page in a browser: see `laneway.app.page`
    page_host = Key[str](kinds.text(), "127.0.0.1", "the address that the page is served on", table=PAGE)
    page_port = Key[int](kinds.whole(0, 65535), 0, "its port; 0 for a free one", table=PAGE)
    page_names = Key[tuple[str, ...]](
        kinds.several(kinds.text(), "a list of host names", "list of names"),
        (),
        "further names that browsers reach the page by",
        table=PAGE,
    )
    page_remote = Key[bool](
        kinds.switch(), False, "let other machines reach the page, if `page.host` does", table=PAGE
    )
    page_token = Key[str | None](
        kinds.text(), None, "the token of the page; by default each start makes one", table=PAGE
    )

    def value(self, name: str) -> Any:
        """A value by the name of its key."""
        return self.values[KEYS[name].keys].value

    def source(self, name: str) -> Source:
        return self.values[KEYS[name].keys].source

    @property
    def roles(self) -> dict[str, Role]:
        """Presets by name, from `[laneway.roles.NAME]`."""
        return {name: Role(**fields) for name, fields in self._entries("roles").items()}

    @property
    def per_thread_auto_mail(self) -> dict[str, bool]:
        """`auto_mail` for single sessions, by agent id."""
        return self._entries("per_thread_auto_mail")

    @property
    def jobs_nodes(self) -> dict[str, NodeSetting]:
        """Other machines by name, from `[laneway.jobs.nodes.NAME]`."""
        return {name: NodeSetting(**fields) for name, fields in self._entries("jobs", "nodes").items()}

    @property
    def jobs_repositories(self) -> dict[str, Path]:
        """The checkouts on this machine that jobs of other machines may ask for, by name."""
        return self._entries("jobs", "repositories")

    def _entries(self, *table: str) -> dict[str, Any]:
        """The values of a table of the user's own names, or the fields of each, by name."""
        entries: dict[str, Any] = {}
        for keys, setting in self.values.items():
            if keys[: len(table)] == table:
                name, *field = keys[len(table) :]
                if field:
                    entries.setdefault(name, {})[field[0]] = setting.value
                else:
                    entries[name] = setting.value
        return entries


KEYS: dict[str, Key[Any]] = {key.name: key for key in vars(Settings).values() if isinstance(key, Key)}
"""By name, as people write it: `model`, `jobs.k_read`."""
KEY_AT: dict[Keys, Key[Any]] = {
    (*key.table, name): key for key in KEYS.values() for name in (*key.also, key.keys[-1])
}
"""By its place in a file, under all its names."""
