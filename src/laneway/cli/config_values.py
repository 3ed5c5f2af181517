"""Settings as data for programs: what `laneway config … --json` prints. Secrets are kept back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from laneway.base.kinds import jsonable, shown
from laneway.base.redact import HIDDEN
from laneway.base.schema import Ignored, Keys, Settings, Source, is_secret, spell


def settings_json(settings: Settings) -> dict[str, Any]:
    root = settings.repo.root
    return {
        "settings": {
            spell(keys): {"value": public(keys, found.value), "source": source_json(found.source)}
            for keys, found in settings.values.items()
        },
        "ignored": [ignored_json(each) for each in settings.ignored],
        "files": {
            label: {"path": str(path), "exists": path.exists()} for label, path in settings.files.items()
        },
        "repository": None if root is None else {"root": str(root), "trusted": is_trusted(settings)},
    }


def is_trusted(settings: Settings) -> bool:
    """Whether all that needs trust has it."""
    return {file.standing for file in settings.repo_files} - {"asks for nothing"} == {"trusted"}


def ignored_json(each: Ignored) -> dict[str, Any]:
    return {
        "key": spell(each.keys),
        "value": public(each.keys, each.value),
        "source": source_json(each.source),
        "why": each.why,
    }


def public(keys: Keys, value: object) -> Any:
    if is_secret(keys) and value is not None:
        return HIDDEN
    # What ATM's tables hold may be anything that TOML knows, dates included.
    return jsonable(value) if isinstance(value, (str, int, tuple, Path, type(None))) else shown(value)


def source_json(source: Source) -> dict[str, Any]:
    return {"kind": source.kind, "name": source.name, "line": source.line}
