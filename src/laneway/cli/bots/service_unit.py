"""The text of a service that runs `laneway chat` without a terminal: a systemd unit or launchd file. Pure.

No secret is in it: tokens stay in the user's settings. Every path is quoted, whatever its letters.
"""

from __future__ import annotations

import plistlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from laneway.base.errors import UsageError
from laneway.base.plain import code_label

ServiceKind: TypeAlias = Literal["systemd", "launchd"]

UNIT = "laneway-chat.service"
LABEL = "dev.laneway.chat"
MADE_BY = "Written by `laneway setup service`; `laneway setup service --remove` takes it away."
"""By which a file of ours is known."""
KEPT_VARIABLES = (
    "PATH",
    "LANG",
    "LC_ALL",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "ATM_HOME",
    "CODEX_HOME",
    "CLAUDE_CONFIG_DIR",
)
"""Where programs, settings and state are. Anything else may be a secret, proxies with their passwords too."""


class ServiceWords(msgspec.Struct, frozen=True, kw_only=True):
    """What the service starts, and with which variables."""

    command: tuple[str, ...]
    """Its first word is an absolute path."""
    environment: Mapping[str, str]
    log: Path
    """For launchd, which has no journal."""


def service_words(
    laneway: Sequence[str],
    platforms: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    log: Path,
) -> ServiceWords:
    """Raises `UsageError` for what no service file can hold."""
    chosen = [word for platform in platforms for word in ("--platform", platform)]
    command = (*laneway, "chat", *chosen, "-C", str(folder))
    kept = {name: environment[name] for name in KEPT_VARIABLES if environment.get(name)}
    for text in (*command, *kept.values(), str(log)):
        if not text.isprintable():
            raise UsageError(
                f"A service file cannot hold {code_label(text, 80)!r}: it has control characters."
            )
    if not command[0].startswith("/"):
        raise UsageError(f"A service needs the full path of {code_label(command[0], 80)}.")
    return ServiceWords(command=command, environment=kept, log=log)


def systemd_unit(words: ServiceWords) -> str:
    command = " ".join(_quoted(word) for word in (*_shell(words.command[0]), *words.command))
    variables = "".join(
        f"Environment={_quoted(f'{name}={value}')}\n" for name, value in words.environment.items()
    )
    # ":" keeps systemd from replacing variables in the words.
    return f"""\
# {MADE_BY}
[Unit]
Description=Laneway: conversations with Claude and Codex

[Service]
ExecStart=:{command}
{variables}UMask=0077
Restart=on-failure
RestartSec=10
# A wrong setting, a refused token or a missing Codex does not mend itself.
RestartPreventExitStatus=2 3
# After the signal by which it is stopped.
SuccessExitStatus=130
# Agents end with Laneway, by guardians of its own; background jobs are meant to outlive it.
KillMode=process
TimeoutStopSec=30

[Install]
WantedBy=default.target
"""


def _shell(program: str) -> tuple[str, ...]:
    """What goes before a program whose path systemd refuses as the first word, however it is quoted."""
    return ("/bin/sh", "-c", 'exec "$0" "$@"') if set(program) & set("\\\"'") else ()


def _quoted(word: str) -> str:
    """As systemd reads it; a percent sign would be a specifier."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def launchd_file(words: ServiceWords) -> str:
    data = {
        "Label": LABEL,
        "ProgramArguments": list(words.command),
        "EnvironmentVariables": dict(words.environment),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 30,
        "AbandonProcessGroup": True,  # background jobs outlive it
        "Umask": 0o077,
        "StandardOutPath": str(words.log),
        "StandardErrorPath": str(words.log),
    }
    head, body = plistlib.dumps(data, sort_keys=False).decode().split("\n", 1)
    return f"{head}\n<!-- {MADE_BY.replace('--', '- -')} -->\n{body}"


def service_text(kind: ServiceKind, words: ServiceWords) -> str:
    return systemd_unit(words) if kind == "systemd" else launchd_file(words)
