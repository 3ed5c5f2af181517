"""The tables of settings whose keys are names that the user chooses: roles, machines, repositories.

Part of the schema: `TABLE_KEYS` describes them, `TABLES` has the places of all nested tables. Pure.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from laneway.base import kinds
from laneway.base.kinds import Kind
from laneway.base.schema import KEY_AT, KEYS, Role
from laneway.base.setting_values import Keys

NODE = re.compile(r"(?!(any|local)$)" + kinds.TEAM.pattern)
"""A job may be for `any` machine, and `local` is this one, so none has these names."""


class NamedTable(msgspec.Struct, frozen=True):
    """A table with one entry for each name that the user chose. It has no variable."""

    place: Keys
    summary: str
    usage: str
    """How one of its settings is spelt, for people."""
    expected: str
    """Completes the sentence "must be …"."""
    fields: dict[str, Kind[Any]] = {}
    """Of each entry that is a table."""
    kind: Kind[Any] | None = None
    """Of each entry that is one value."""
    name: Kind[str] | None = None
    """Which names are allowed; by default any."""

    def kind_at(self, keys: Keys) -> Kind[Any] | None:
        """What the value of one of its settings must be; None for what is no setting, or a table."""
        path = keys[len(self.place) :]
        if not path or (self.name is not None and not self.name.accepts(path[0])):
            return None
        if self.kind is not None:
            return self.kind if len(path) == 1 else None
        return self.fields.get(path[1]) if len(path) == 2 else None


TABLE_KEYS: dict[str, NamedTable] = {
    ".".join(table.place): table
    for table in (
        NamedTable(
            ("roles",),
            "presets for sessions, one table each: model, sandbox, approval_policy, reasoning_effort",
            f"roles.NAME.FIELD, where FIELD is one of {', '.join(Role.__struct_fields__)}",
            "a table with one table for each role",
            fields={name: KEYS[name].kind for name in Role.__struct_fields__},
            name=KEYS["identity"].kind,
        ),
        NamedTable(
            ("per_thread_auto_mail",),
            "`auto_mail` for single sessions, by agent id",
            'per_thread_auto_mail."AGENT ID"',
            "a table of agent ids, each true or false",
            kind=KEYS["auto_mail"].kind,
        ),
        NamedTable(
            ("jobs", "nodes"),
            "other machines that run jobs, one table each: command, which starts `laneway jobs node` there",
            "jobs.nodes.NAME.command",
            "a table with one table for each machine",
            fields={"command": kinds.text()},
            name=kinds.named(
                NODE,
                "a name of up to 64 letters, digits, dots, dashes and underscores, but not `any` or `local`",
            ),
        ),
        NamedTable(
            ("jobs", "repositories"),
            "checkouts on this machine, by the names that they have on every machine that runs jobs",
            "jobs.repositories.NAME",
            "a table of names, each with the path of a checkout",
            kind=kinds.path("the path of a folder"),
            name=KEYS["team"].kind,
        ),
    )
}
"""By name, as people write it."""
_TABLE_AT = {table.place: table for table in TABLE_KEYS.values()}
TABLES: frozenset[Keys] = frozenset(
    place[:length] for place in (*KEY_AT, *_TABLE_AT) for length in range(1, len(place))
)
"""The places of the nested tables: `("jobs",)`."""


def table_at(keys: Keys) -> NamedTable | None:
    """The table of the user's own names that a key is, or is in."""
    for length in range(1, len(keys) + 1):
        if (table := _TABLE_AT.get(keys[:length])) is not None:
            return table
    return None


def kind_at(keys: Keys) -> Kind[Any] | None:
    """What the value of a setting must be; None for what is no setting, or a table."""
    if (key := KEY_AT.get(keys)) is not None:
        return key.kind
    table = table_at(keys)
    return None if table is None else table.kind_at(keys)


def names_in(place: Keys) -> list[str]:
    """What a table of ours may hold, for suggestions."""
    known = (*KEY_AT, *_TABLE_AT)
    return list(dict.fromkeys(keys[len(place)] for keys in known if keys[: len(place)] == place != keys))
