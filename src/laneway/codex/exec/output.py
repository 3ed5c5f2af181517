"""Checks a worker's last message against its output schema, in a process of its own that has a deadline.

A pattern, or alternatives within alternatives, can take for ever, and a supervisor that waits for them would
never write the end of its job. Blocking; takes about 0.05 s.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from laneway.codex.exec import schema as program

CHECK_S = 10.0


def output_problem(schema: Any, last_message: str | None, timeout_s: float = CHECK_S) -> str | None:
    """A sentence about what is wrong, or None. Codex itself passes on whatever the model said."""
    if last_message is None:
        return "there is no last message."
    try:
        ran = subprocess.run(
            [sys.executable, "-I", "-S", str(program.__file__)],
            input=json.dumps({"schema": schema, "text": last_message}).encode(),
            capture_output=True,
            timeout=timeout_s,
            check=True,
        )
    except subprocess.TimeoutExpired:
        return f"checking the last message took more than {timeout_s:g} s."
    except (OSError, subprocess.CalledProcessError):
        return "the last message could not be checked."
    answer = json.loads(ran.stdout)
    return None if answer is None else str(answer)


def structured_output(last_message: str | None) -> Any:
    """The last message as data; None if it is no JSON."""
    try:
        return None if last_message is None else json.loads(last_message)
    except (ValueError, RecursionError):
        return None
