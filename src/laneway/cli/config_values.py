"""Settings as JSON, for `laneway config … --json`. Secrets are hidden."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from laneway.base.kinds import jsonable, to_text
from laneway.base.redact import HIDDEN
from laneway.base.schema import Settings
from laneway.base.setting_values import Ignored, Keys, Source, is_secret, spell


def settings_json(settings: Settings) -> dict[str, Any]:
    root = settings.repo.root
    return {
        "settings": {
            spell(keys): {"value": public(keys, setting.value), "source": source_json(setting.source)}
            for keys, setting in settings.values.items()
        },
        "ignored": [ignored_json(each) for each in settings.ignored],
        "files": {
            label: {"path": str(path), "exists": path.exists()} for label, path in settings.files.items()
        },
        "repository": None if root is None else {"root": str(root), "trusted": is_trusted(settings)},
    }


def is_trusted(settings: Settings) -> bool:
    """Whether every setting that needs trust has it."""
    return {file.trust_state for file in settings.repo_files} - {"asks for nothing"} == {"trusted"}


def ignored_json(ignored: Ignored) -> dict[str, Any]:
    return {
        "key": spell(ignored.keys),
        "value": public(ignored.keys, ignored.value),
        "source": source_json(ignored.source),
        "why": ignored.why,
    }


def public(keys: Keys, value: object) -> Any:
    if is_secret(keys) and value is not None:
        return HIDDEN
    # ATM's tables may hold any TOML value, dates included.
    return jsonable(value) if isinstance(value, (str, int, tuple, Path, type(None))) else to_text(value)


def source_json(source: Source) -> dict[str, Any]:
    return {"kind": source.kind, "name": source.name, "line": source.line}
