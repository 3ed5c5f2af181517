"""Whether a provider needs a login, and its host, from Codex's configuration."""

from __future__ import annotations

from typing import Any

import pytest

from laneway.codex.provider import host, wants_login

CHATGPT = {"account": {"type": "chatgpt"}}


@pytest.mark.parametrize(
    ("provider", "table", "is_wanted"),
    [
        ("openai", {}, True),
        ("", {}, True),
        ("mine", {}, False),
        ("mine", {"requires_openai_auth": False}, False),
        ("mine", {"requires_openai_auth": True}, True),
    ],
)
def test_only_a_provider_that_says_so_wants_a_login(
    provider: str, table: dict[str, Any], is_wanted: bool
) -> None:
    """One with a key of its own, or none, is nobody's business."""
    assert wants_login(provider, {"model_providers": {"mine": table}}) is is_wanted


def test_what_a_call_says_of_a_provider_counts_over_the_config() -> None:
    """Key by key."""
    config = {"model_providers": {"mine": {"requires_openai_auth": True, "base_url": "http://a"}}}
    call = {"model_providers": {"mine": {"requires_openai_auth": False}}}
    assert not wants_login("mine", config, call)
    assert host("mine", None, config, call) == "a"


@pytest.mark.parametrize(
    ("provider", "account", "config", "name"),
    [
        ("openai", None, {}, "api.openai.com"),
        ("openai", CHATGPT, {}, "chatgpt.com"),
        ("openai", None, {"openai_base_url": "https://eu.api.openai.com/v1"}, "eu.api.openai.com"),
        ("mine", None, {}, ""),
        (
            "mine",
            None,
            {"model_providers": {"mine": {"base_url": "https://u:pw@h.example:1/v1?k=s"}}},
            "h.example",
        ),
        ("mine", None, {"model_providers": {"mine": {"base_url": "http://[broken"}}}, ""),
    ],
)
def test_of_a_providers_address_only_the_host_is_told(
    provider: str, account: Any, config: dict[str, Any], name: str
) -> None:
    """A URL may carry a password."""
    assert host(provider, account, config) == name
