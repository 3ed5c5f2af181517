"""The table of results: rows with a base, our value, their ratio, the goal and whether it is met."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import msgspec


class Goal(msgspec.Struct, frozen=True):
    """A bound on the ratio, or on our own value where the goal is an absolute number."""

    bound: float
    of: str = "ratio"
    """`ratio` or `ours`."""
    at_least: bool = False

    def met_by(self, value: float) -> bool:
        return value >= self.bound if self.at_least else value <= self.bound


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison of ours with a base."""

    what: str
    unit: str
    base: float | None
    base_is: str
    """What the base is; every row names its own."""
    ours: float
    goal: Goal | None = None
    digits: int = 2
    spread: tuple[float, float] | None = None
    """The lowest and the highest ratio of a single round, where rounds can be paired."""

    @property
    def ratio(self) -> float | None:
        return self.ours / self.base if self.base else None

    @property
    def judged(self) -> float | None:
        """The value that the goal bounds."""
        return self.ours if self.goal is not None and self.goal.of == "ours" else self.ratio

    @property
    def is_met(self) -> bool | None:
        if self.goal is None or self.judged is None:
            return None
        return self.goal.met_by(self.judged)

    @property
    def miss(self) -> str:
        """By how much the goal was missed, in words."""
        assert self.goal is not None
        assert self.judged is not None
        if not self.goal.bound:
            return f"{self.judged:g} instead of none"
        over = abs(self.judged / self.goal.bound - 1)
        side = "below" if self.goal.at_least else "above"
        return f"{over:.0%} {side} the goal ({self._goal()})"

    def cells(self) -> tuple[str, ...]:
        ratio = f"{self.ratio:.2f}" if self.ratio is not None else "–"
        if self.spread is not None:
            ratio += " ({:.2f}–{:.2f})".format(*self.spread)
        ok = {None: "", True: "yes", False: "MISSED"}[self.is_met]
        base = f"{self._number(self.base)} {self.base_is}" if self.base is not None else "–"
        return (f"{self.what} [{self.unit}]", base, self._number(self.ours), ratio, self._goal(), ok)

    def record(self) -> dict[str, object]:
        """As it goes into the JSON file."""
        return {
            "what": self.what,
            "unit": self.unit,
            "base_is": self.base_is,
            "base": self.base,
            "ours": self.ours,
            "ratio": self.ratio,
            "spread": self.spread,
            "goal": self._goal() or None,
            "ok": self.is_met,
        }

    def _goal(self) -> str:
        if self.goal is None:
            return ""
        sign = "≥" if self.goal.at_least else "≤"
        return f"{sign} {self.goal.bound:g}" + (f" {self.unit}" if self.goal.of == "ours" else "×")

    def _number(self, value: float) -> str:
        return f"{value:,.{self.digits}f}"


class Section(msgspec.Struct, frozen=True):
    """The results of one subject: rows for the table, notes below it, raw samples for the file."""

    title: str
    rows: list[Row]
    notes: list[str] = []
    samples: dict[str, object] = {}


HEAD = ("what", "base", "ours", "ratio", "goal", "ok")


def render(sections: Sequence[Section]) -> str:
    cells = [row.cells() for section in sections for row in section.rows]
    widths = [max(len(line[at]) for line in [HEAD, *cells]) for at in range(len(HEAD))]
    lines = [_line(HEAD, widths), "  ".join("─" * width for width in widths)]
    for section in sections:
        lines.append(section.title)
        lines += [_line(row.cells(), widths) for row in section.rows]
    for section in sections:
        lines += ["", *section.notes] if section.notes else []
    missed = [row for section in sections for row in section.rows if row.is_met is False]
    lines += (
        ["", *(f"MISSED: {row.what}: {row.miss}" for row in missed)] if missed else ["", "All goals met."]
    )
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = zip(cells, widths, strict=True)
    words = [first[0].ljust(first[1])]
    words += [cell.rjust(width) for cell, width in rest]
    return "  ".join(words).rstrip()


def middle(samples: Sequence[dict[str, float]], read: Callable[[dict[str, float]], float]) -> float:
    """The median of one reading over several runs."""
    return statistics.median(read(sample) for sample in samples)


def spread_of(ratios: Sequence[float]) -> tuple[float, float]:
    """The lowest and the highest of the rounds' ratios."""
    return min(ratios), max(ratios)
