"""Compares the traces of two MCP servers for the same script: call by call, message by message. Pure."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any

import msgspec

from laneway.testing.mcp_traces import Trace, event_type


def differences(old: Trace, new: Trace) -> list[str]:
    """The differences between two traces, one sentence each."""
    differences_found = [f"end: {old.end} → {new.end}"] if old.end != new.end else []
    for call in dict.fromkeys(line.call for line in (*old.lines, *new.lines)):
        old_messages, new_messages = _of_call(old, call), _of_call(new, call)
        differences_found += _compare_call(f"call {call}", old_messages, new_messages)
    return differences_found


def _of_call(trace: Trace, call: str) -> list[dict[str, Any]]:
    return [line.message for line in trace.lines if line.call == call and line.who == "server"]


def _kind(message: dict[str, Any]) -> str:
    if "method" not in message:
        return "answer"
    return event_type(message) or str(message["method"])


def _compare_call(
    where: str, old_messages: list[dict[str, Any]], new_messages: list[dict[str, Any]]
) -> list[str]:
    kinds = [_kind(message) for message in old_messages], [_kind(message) for message in new_messages]
    differences_found = []
    for verb, i, j, k, m in SequenceMatcher(None, *kinds, autojunk=False).get_opcodes():
        if verb == "equal":
            for old, new in zip(old_messages[i:j], new_messages[k:m], strict=True):
                differences_found += _compare(f"{where} {_kind(old)}", old, new)
        else:
            differences_found += [f"{where} {kind} is missing" for kind in kinds[0][i:j]]
            differences_found += [f"{where} {kind} is new" for kind in kinds[1][k:m]]
    return differences_found


def _compare(where: str, old: Any, new: Any) -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        differences_found = []
        for key in dict.fromkeys((*old, *new)):
            if key not in new:
                differences_found.append(f"{where}.{key} is missing: {_json(old[key])}")
            elif key not in old:
                differences_found.append(f"{where}.{key} is new: {_json(new[key])}")
            else:
                differences_found += _compare(f"{where}.{key}", old[key], new[key])
        return differences_found
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [
            line
            for n, (a, b) in enumerate(zip(old, new, strict=True))
            for line in _compare(f"{where}[{n}]", a, b)
        ]
    return [] if old == new else [f"{where}: {_json(old)} → {_json(new)}"]


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
