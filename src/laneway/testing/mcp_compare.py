"""What two MCP servers said otherwise to the same script: call by call, message by message. Pure."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any

import msgspec

from laneway.testing.mcp_traces import Trace, event_type


def differences(old: Trace, new: Trace) -> list[str]:
    """What is said otherwise, one sentence each: call by call, message by message."""
    found = [f"end: {old.end} → {new.end}"] if old.end != new.end else []
    for call in dict.fromkeys(line.call for line in (*old.lines, *new.lines)):
        was, now = _of_call(old, call), _of_call(new, call)
        found += _compare_call(f"call {call}", was, now)
    return found


def _of_call(trace: Trace, call: str) -> list[dict[str, Any]]:
    return [line.message for line in trace.lines if line.call == call and line.who == "server"]


def _kind(message: dict[str, Any]) -> str:
    if "method" not in message:
        return "answer"
    return event_type(message) or str(message["method"])


def _compare_call(where: str, was: list[dict[str, Any]], now: list[dict[str, Any]]) -> list[str]:
    kinds = [_kind(message) for message in was], [_kind(message) for message in now]
    found = []
    for verb, i, j, k, m in SequenceMatcher(None, *kinds, autojunk=False).get_opcodes():
        if verb == "equal":
            for old, new in zip(was[i:j], now[k:m], strict=True):
                found += _compare(f"{where} {_kind(old)}", old, new)
        else:
            found += [f"{where} {kind} is missing" for kind in kinds[0][i:j]]
            found += [f"{where} {kind} is new" for kind in kinds[1][k:m]]
    return found


def _compare(where: str, old: Any, new: Any) -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        found = []
        for key in dict.fromkeys((*old, *new)):
            if key not in new:
                found.append(f"{where}.{key} is missing: {_shown(old[key])}")
            elif key not in old:
                found.append(f"{where}.{key} is new: {_shown(new[key])}")
            else:
                found += _compare(f"{where}.{key}", old[key], new[key])
        return found
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [
            line
            for n, (a, b) in enumerate(zip(old, new, strict=True))
            for line in _compare(f"{where}[{n}]", a, b)
        ]
    return [] if old == new else [f"{where}: {_shown(old)} → {_shown(new)}"]


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode()
