"""The output of `setup` and `migrate`: paths, diffs and handshake results, without secrets or escapes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from laneway.base.plain import code_label, label, plain, plain_code
from laneway.base.redact import redact
from laneway.cli.handshake import HandshakeResult
from laneway.terminal import Style

CONTEXT_LINES = 2
"""Around a change: enough to recognise the place, few enough not to show other keys."""
MAX_LINE_CHARS = 200
"""Some files are one line of a megabyte."""
MAX_PROOF_CHARS = 1000
"""Of the server's name, its version and eight names of tools."""
MAX_DIFF_LINES = 20_000
"""`difflib` takes quadratic time."""


def short(file: Path) -> str:
    home = Path.home()
    return plain_code(f"~/{file.relative_to(home)}" if file.is_relative_to(home) else str(file))


def difference(before: str, after: str, file: Path) -> str:
    """A unified diff without secrets; empty if nothing differs."""
    old, new = before.splitlines(), after.splitlines()
    skipped = _common(old, new)
    offset = max(0, skipped - CONTEXT_LINES)
    same_end = _common(old[skipped:][::-1], new[skipped:][::-1])
    skipped_end = max(0, same_end - CONTEXT_LINES)
    old, new = old[offset : len(old) - skipped_end], new[offset : len(new) - skipped_end]
    if len(old) + len(new) > MAX_DIFF_LINES:
        return f"--- {short(file)}\n(too much of it changes to be shown)"
    lines = difflib.unified_diff(
        [redact(line) for line in old],
        [redact(line) for line in new],
        short(file),
        f"{short(file)} (new)",
        lineterm="",
        n=CONTEXT_LINES,
    )
    return "\n".join(_cut(_moved(line, offset)) for line in lines)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _moved(line: str, offset: int) -> str:
    if not line.startswith("@@"):
        return line
    return re.sub(r"([-+])(\d+)", lambda match: f"{match[1]}{int(match[2]) + offset}", line, count=2)


def _cut(line: str) -> str:
    return code_label(line.expandtabs(4), MAX_LINE_CHARS)


def coloured(diff: str, style: Style) -> str:
    def colour(line: str) -> str:
        if line.startswith("+") and not line.startswith("+++"):
            return style.green(line)
        return style.red(line) if line.startswith("-") and not line.startswith("---") else style.dim(line)

    return "\n".join(colour(line) for line in diff.split("\n"))


def command_line(words: Sequence[str]) -> str:
    import shlex

    return plain_code(redact(shlex.join(words)))


def proof_lines(proof: HandshakeResult, style: Style) -> Iterator[str]:
    """The result of a handshake, as lines."""
    if not proof.is_good:
        yield style.red(f"  ✘ {plain(proof.problem)}")
        for line in proof.stderr.splitlines():
            yield style.dim(f"    | {plain(line)}")
        if proof.remedy:
            yield f"    → {plain(proof.remedy)}"
        return
    who = " ".join(part for part in (proof.server or "a server without a name", proof.version) if part)
    answer = label(f"It answers: {who}, {_offers(proof)}", MAX_PROOF_CHARS)
    yield style.green("  ✔ ") + f"{answer} ({proof.seconds:.1f} s)."
    if proof.strange_lines:
        lines = "1 line that is" if proof.strange_lines == 1 else f"{proof.strange_lines} lines that are"
        yield style.yellow(f"  ! On its standard output {lines} no message; some clients mind.")


def _offers(proof: HandshakeResult) -> str:
    if proof.protocol.startswith("ACP"):
        return f"an agent, {proof.protocol}"
    count = "1 tool" if len(proof.tools) == 1 else f"{len(proof.tools)} tools"
    named = f": {', '.join(proof.tools[:8])}{' …' if len(proof.tools) > 8 else ''}" if proof.tools else ""
    return count + named
