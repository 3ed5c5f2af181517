"""What the fake Discord refuses, with Discord's own status, code and shape of error.

Lengths are counted in code points, as Discord's API does.
"""

from __future__ import annotations

import re
from typing import Any

from laneway.testing.fake_discord.world import Json

MAX_CONTENT = 2000
MAX_NAME = 100
MAX_FILE_BYTES = 10 * 1024 * 1024
MAX_FILES = 10
ARCHIVE_MINUTES = (60, 1440, 4320, 10080)
COMMAND_NAME = re.compile(r"^[-_'\w]{1,32}$")


class DiscordRefusal(Exception):
    """An answer that is not a success. `errors` is the tree of an invalid form body."""

    def __init__(self, status: int, code: int, message: str, errors: Json | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.errors = status, code, message, errors

    def to_json(self) -> Json:
        data: Json = {"message": self.message, "code": self.code}
        if self.errors is not None:
            data["errors"] = self.errors
        return data


def bad_form(path: str, code: str, message: str) -> DiscordRefusal:
    """400, 50035: one wrong field, by its path with dots."""
    errors: Json = {"_errors": [{"code": code, "message": message}]}
    for part in reversed(path.split(".")):
        errors = {part: errors}
    return DiscordRefusal(400, 50035, "Invalid Form Body", errors)


UNKNOWN_CHANNEL = DiscordRefusal(404, 10003, "Unknown Channel")
UNKNOWN_MESSAGE = DiscordRefusal(404, 10008, "Unknown Message")
UNKNOWN_INTERACTION = DiscordRefusal(404, 10062, "Unknown interaction")
ACKNOWLEDGED = DiscordRefusal(400, 40060, "Interaction has already been acknowledged.")
MISSING_ACCESS = DiscordRefusal(403, 50001, "Missing Access")
MISSING_RIGHTS = DiscordRefusal(403, 50013, "Missing Permissions")
NOT_OURS = DiscordRefusal(403, 50005, "Cannot edit a message authored by another user")
EMPTY = DiscordRefusal(400, 50006, "Cannot send an empty message")
ARCHIVED = DiscordRefusal(400, 50083, "Thread is archived")
LOCKED = DiscordRefusal(400, 160005, "Thread is locked")
HAS_THREAD = DiscordRefusal(400, 160004, "A thread has already been created for this message")
TOO_LARGE = DiscordRefusal(413, 40005, "Request entity too large")


def check_text(data: Json, key: str, low: int, high: int, path: str = "") -> None:
    """A text of that length; missing only if `low` is 0."""
    value = data.get(key)
    where = f"{path}{key}"
    if value is None:
        if low:
            raise bad_form(where, "BASE_TYPE_REQUIRED", "This field is required")
        return
    if not isinstance(value, str):
        raise bad_form(where, "STRING_TYPE_CONVERT", "Could not interpret the value as string.")
    if not low <= len(value) <= high:
        message = f"Must be between {low} and {high} in length."
        raise bad_form(where, "BASE_TYPE_BAD_LENGTH", message)


def check_message(data: Json, files: int, *, is_new: bool) -> None:
    """The body of a message that is sent or edited."""
    check_text(data, "content", 0, MAX_CONTENT)
    if files > MAX_FILES:
        raise bad_form("attachments", "BASE_TYPE_MAX_LENGTH", f"Must be {MAX_FILES} or fewer in length.")
    if len(str(data.get("nonce") or "")) > 25:
        raise bad_form("nonce", "NONCE_TYPE_INVALID_LENGTH", "Must be 25 or fewer in length.")
    mentions = data.get("allowed_mentions")
    if mentions is not None:
        for kind in mentions.get("parse", []):
            if kind not in ("roles", "users", "everyone"):
                raise bad_form("allowed_mentions.parse", "BASE_TYPE_CHOICES", "Not a kind of mention.")
    if len(data.get("embeds") or []) > 10:
        raise bad_form("embeds", "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer in length.")
    check_components(data.get("components") or [])
    if is_new and not any((str(data.get("content") or "").strip(), data.get("embeds"), files)):
        raise EMPTY


def check_components(rows: list[Json]) -> None:
    """Action rows of a message: buttons, or one menu."""
    if len(rows) > 5:
        raise bad_form("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
    seen: set[str] = set()
    for index, row in enumerate(rows):
        path = f"components.{index}."
        if row.get("type") != 1:
            raise bad_form(path + "type", "UNION_TYPE_CHOICES", "Value of field 'type' must be 1.")
        parts = row.get("components") or []
        if not 1 <= len(parts) <= 5 or (len(parts) > 1 and any(part["type"] != 2 for part in parts)):
            raise bad_form(path + "components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
        for number, part in enumerate(parts):
            _check_part(part, f"{path}components.{number}.", seen)


def _check_part(part: Json, path: str, seen: set[str]) -> None:
    if part.get("type") == 2:
        check_text(part, "label", 1, 80, path)
        if part.get("style") not in (1, 2, 3, 4):
            raise bad_form(path + "style", "BASE_TYPE_CHOICES", "Must be one of 1, 2, 3, 4.")
    elif part.get("type") == 3:
        options = part.get("options") or []
        if not 1 <= len(options) <= 25:
            raise bad_form(path + "options", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 25 in length.")
        values = [option.get("value") for option in options]
        if len(set(values)) != len(values):
            raise bad_form(path + "options", "SELECT_COMPONENT_OPTION_VALUE_DUPLICATED", "Duplicated value.")
        for number, option in enumerate(options):
            check_text(option, "label", 1, 100, f"{path}options.{number}.")
            check_text(option, "value", 1, 100, f"{path}options.{number}.")
            check_text(option, "description", 0, 100, f"{path}options.{number}.")
        check_text(part, "placeholder", 0, 150, path)
        low, high = part.get("min_values", 1), part.get("max_values", 1)
        if not 0 <= low <= high <= len(options):
            raise bad_form(path + "max_values", "NUMBER_TYPE_MAX", "More than there are options.")
    else:
        raise bad_form(path + "type", "UNION_TYPE_CHOICES", "Not a component of a message.")
    check_text(part, "custom_id", 1, 100, path)
    if part["custom_id"] in seen:
        message = "Component custom id cannot be duplicated"
        raise bad_form(path + "custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED", message)
    seen.add(part["custom_id"])


def check_modal(data: Json) -> None:
    """A dialog: a title and one to five parts, each a text input or a label with an input."""
    check_text(data, "custom_id", 1, 100)
    check_text(data, "title", 1, 45)
    parts = data.get("components") or []
    if not 1 <= len(parts) <= 5:
        raise bad_form("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
    seen: set[str] = set()
    for index, part in enumerate(parts):
        path = f"components.{index}."
        if part.get("type") == 18:
            check_text(part, "label", 1, 45, path)
            check_text(part, "description", 0, 100, path)
            _check_input(part.get("component") or {}, path + "component.", seen, has_label=False)
        elif part.get("type") == 1 and len(part.get("components") or []) == 1:
            _check_input(part["components"][0], path + "components.0.", seen, has_label=True)
        else:
            raise bad_form(path + "type", "UNION_TYPE_CHOICES", "Not a component of a modal.")


def _check_input(part: Json, path: str, seen: set[str], *, has_label: bool) -> None:
    if part.get("type") == 3 and not has_label:
        _check_part({key: value for key, value in part.items() if key != "required"}, path, seen)
        return
    if part.get("type") != 4:
        raise bad_form(path + "type", "UNION_TYPE_CHOICES", "Must be a text input.")
    check_text(part, "custom_id", 1, 100, path)
    if part["custom_id"] in seen:
        raise bad_form(path + "custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED", "Duplicated custom id.")
    seen.add(part["custom_id"])
    if has_label:
        check_text(part, "label", 1, 45, path)
    if part.get("style") not in (1, 2):
        raise bad_form(path + "style", "BASE_TYPE_CHOICES", "Must be one of 1, 2.")
    check_text(part, "placeholder", 0, 100, path)
    check_text(part, "value", 0, 4000, path)
    if not 0 <= (part.get("min_length") or 0) <= (part.get("max_length") or 4000) <= 4000:
        raise bad_form(path + "max_length", "NUMBER_TYPE_MAX", "Must be less than or equal to 4000.")


def check_commands(commands: Any) -> None:
    """The list that replaces all slash commands."""
    if not isinstance(commands, list) or len(commands) > 100:
        raise DiscordRefusal(400, 30032, "Maximum number of application commands reached (100)")
    seen: set[str] = set()
    for index, command in enumerate(commands):
        path = f"{index}."
        check_text(command, "name", 1, 32, path)
        name = command["name"]
        if not COMMAND_NAME.match(name) or name != name.lower():
            raise bad_form(path + "name", "STRING_TYPE_REGEX", "String value did not match validation regex.")
        if name in seen:
            raise bad_form(
                path + "name",
                "APPLICATION_COMMANDS_DUPLICATE_NAME",
                "Application command names must be unique",
            )
        seen.add(name)
        check_text(command, "description", 1, 100, path)
        options = command.get("options") or []
        if len(options) > 25:
            raise bad_form(path + "options", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
        was_optional = False
        for number, option in enumerate(options):
            where = f"{path}options.{number}."
            check_text(option, "name", 1, 32, where)
            check_text(option, "description", 1, 100, where)
            if option.get("required") and was_optional:
                message = "Required options must be placed before non-required options"
                raise bad_form(where, "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", message)
            was_optional = was_optional or not option.get("required")


def pings_of(data: Json, content: str) -> set[str]:
    """Whom a message with this body notifies."""
    mentions = data.get("allowed_mentions")
    users = set(re.findall(r"<@!?(\d+)>", content))
    pings = set()
    everyone = bool(re.search(r"@(everyone|here)\b", content))
    if mentions is None:
        pings = users | ({"everyone"} if everyone else set())
    else:
        parse = mentions.get("parse", [])
        named = set(mentions.get("users", []))
        pings = users if "users" in parse else users & named
        if everyone and "everyone" in parse:
            pings.add("everyone")
    if data.get("message_reference") and (mentions is None or mentions.get("replied_user")):
        pings.add("reply")
    return pings
