"""The official ACP schema made strict: what it names is allowed, everything else is not.

Published, the schema is open so that old readers survive new writers: fields it does not
name pass, and unions end in a branch for "custom or future" kinds. A writer of our own has
no such excuse. Here an object has the named fields and no more, unions have the known kinds
only, and open lists of words take a new word only with the leading `_` that the protocol
keeps for extensions. References are resolved. Pure: a schema in, a schema out.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

UNIONS = ("oneOf", "anyOf")
TAGS = ("sessionUpdate", "type", "mode", "action", "outcome")
"""Fields by whose word the variants of a union are told apart."""
COPIED = ("type", "minimum", "maximum", "minLength", "maxLength", "enum", "const", "format", "pattern")


class Closing:
    """Definitions on their way from open to closed. They have no recursion, so neither has the result."""

    def __init__(self, definitions: dict[str, Schema]) -> None:
        self._open = definitions
        self._closed: dict[str, Schema] = {}

    def definition(self, name: str) -> Schema:
        if name not in self._closed:
            self._closed[name] = self.schema(self._open[name])
        return self._closed[name]

    def schema(self, schema: Any) -> Schema:
        if not isinstance(schema, dict):
            return {}
        if "$ref" in schema:
            return self.definition(_name(schema))
        if "properties" in schema:
            return _union([self._sealed(way) for way in self._ways(schema) if "not" not in way])
        if "allOf" in schema:
            (only,) = schema["allOf"]
            return self.schema(only)
        for key in UNIONS:
            if key in schema:
                return _union([self.schema(part) for part in schema[key] if "not" not in part])
        return self._plain(schema)

    def _plain(self, schema: Schema) -> Schema:
        """A scalar, a list or a map."""
        made = {key: schema[key] for key in COPIED if key in schema}
        if "items" in schema:
            made["items"] = self.schema(schema["items"])
        if isinstance(schema.get("additionalProperties"), dict):
            made["additionalProperties"] = self.schema(schema["additionalProperties"])
        return made

    def _ways(self, schema: Schema) -> list[Schema]:
        """Every way to satisfy an object, as one flat list of open fields each."""
        if "$ref" in schema:
            return self._ways(self._open[_name(schema)])
        ways: list[Schema] = [
            {key: schema[key] for key in ("properties", "required", "not") if key in schema}
        ]
        for part in schema.get("allOf", ()):
            ways = [_joined(way, more) for way in ways for more in self._ways(part)]
        for key in UNIONS:
            if key in schema:
                branches = [way for part in schema[key] for way in self._ways(part)]
                ways = [_joined(way, more) for way in ways for more in branches]
        return ways

    def _sealed(self, way: Schema) -> Schema:
        return {
            "type": "object",
            "required": way.get("required", []),
            "properties": {name: self.schema(field) for name, field in way.get("properties", {}).items()},
            "additionalProperties": False,
        }


def _joined(one: Schema, other: Schema) -> Schema:
    return {
        **one,
        **other,
        "properties": {**one.get("properties", {}), **other.get("properties", {})},
        "required": [*one.get("required", ()), *other.get("required", ())],
    }


def _union(variants: list[Schema]) -> Schema:
    """By tag where each variant has a word: one is tried, and its complaint is the right one."""
    if len(variants) == 1:
        return variants[0]
    if any("const" in variant for variant in variants):
        return _words(variants)
    for tag in TAGS:
        words = [variant.get("properties", {}).get(tag, {}).get("const") for variant in variants]
        if None not in words:
            return {"type": "object", "tagged": {"by": tag, "variants": _by_word(words, variants)}}
    return {"anyOf": variants}


def _words(variants: list[Schema]) -> Schema:
    """A list of words; the branch for words that nobody has thought of yet is for extensions."""
    known: Schema = {"enum": [variant["const"] for variant in variants if "const" in variant]}
    others = [variant for variant in variants if "const" not in variant]
    named = [variant | {"pattern": "^_"} if variant["type"] == "string" else variant for variant in others]
    return {"anyOf": [known, *named]} if named else known


def _by_word(words: list[str], variants: list[Schema]) -> dict[str, Schema]:
    found: dict[str, list[Schema]] = {}
    for word, variant in zip(words, variants, strict=True):
        found.setdefault(word, []).append(variant)
    return {word: same[0] if len(same) == 1 else {"anyOf": same} for word, same in found.items()}


def _name(schema: Schema) -> str:
    return str(schema["$ref"]).rpartition("/")[2]
