"""The modes, and which access is wider than which."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from laneway.codex.access import permit
from laneway.codex.turn_settings import permit_settings as native
from laneway.core.access import (
    Permit,
    can_switch_network,
    description,
    has_network,
    narrower,
    whole,
    with_network,
    with_roots,
)
from tests.doors.acp.access import PERMITS, configured, of_mode, powers, would_be_trusted

READ_ONLY = {"type": "readOnly", "networkAccess": False}
FULL = {"type": "dangerFullAccess"}
WORKSPACE = whole({"type": "workspaceWrite"})
GRANULAR = {"granular": {"sandbox_approval": True, "rules": False, "mcp_elicitations": True}}


@given(PERMITS, PERMITS)
def test_the_narrower_of_two_allows_only_what_both_do(one: Permit, other: Permit) -> None:
    """All of it, as far as sandboxes nest; the order does not matter."""
    both = narrower(one, other)
    assert powers(both) <= powers(one) & powers(other)
    assert powers(both) == powers(narrower(other, one))
    assert narrower(both, one) == both
    assert narrower(both, other) == both


@given(PERMITS, PERMITS)
def test_the_narrower_of_two_is_the_first_only_if_it_allows_no_more(one: Permit, other: Permit) -> None:
    """And of equals it is always the first."""
    if narrower(one, other) == one:
        assert powers(one) <= powers(other)
    assert narrower(one, one) == one


@given(PERMITS)
def test_the_network_is_switched_where_it_can_be_and_nothing_else_is(one: Permit) -> None:
    """Full access cannot be had without."""
    for is_on in (True, False):
        switched = with_network(one, is_on)
        assert powers(switched) - {"network"} == powers(one) - {"network"}
        assert has_network(switched) is (is_on if can_switch_network(one) else has_network(one))
    assert with_network(one, None) == one


@pytest.mark.parametrize(
    ("approvals", "narrow"),
    [
        (("on-request", GRANULAR), GRANULAR),
        ((GRANULAR, "untrusted"), "untrusted"),
        (("something new", "never"), "never"),
        (
            (GRANULAR, {"granular": {"sandbox_approval": False, "mcp_elicitations": True}}),
            {"granular": {"sandbox_approval": False, "rules": False, "mcp_elicitations": True}},
        ),
    ],
)
def test_what_asks_more_or_declines_more_is_narrower(approvals: tuple[Any, Any], narrow: Any) -> None:
    """A word that we do not know is never taken for narrow."""
    one, other = (Permit(approval, READ_ONLY) for approval in approvals)
    assert narrower(one, other).approval == narrower(other, one).approval == narrow


def test_a_folder_that_climbs_out_of_another_does_not_lie_in_it() -> None:
    """`/a/../etc` begins like `/a`."""
    one = with_roots(Permit("never", WORKSPACE), ("/a/../etc", "/a/b"))
    other = with_roots(Permit("never", WORKSPACE), ("/a",))
    assert narrower(one, other).sandbox["writableRoots"] == ["/a/b"]


def test_a_sandbox_of_a_codex_to_come_is_taken_for_wide() -> None:
    """It is passed on as it is, and gives way to any that we know."""
    new = permit({"approvalPolicy": "never", "sandbox": {"type": "moonBase", "depth": 3}})
    assert native(new)["sandboxPolicy"] == {"type": "moonBase", "depth": 3}
    assert description(new) == "moonBase, never asks"
    assert narrower(new, Permit("never", FULL)).sandbox == FULL
    assert narrower(new, Permit("never", {"type": "marsBase"})).sandbox == READ_ONLY
    assert narrower(new, new) == new


def test_a_profile_of_the_users_own_is_kept_whole_or_given_up() -> None:
    """It cannot be cut to size, and two of them cannot be compared. Codex's own are plain sandboxes."""
    started = {
        "approvalPolicy": "on-request",
        "sandbox": WORKSPACE,
        "activePermissionProfile": {"id": "mine"},
    }
    mine = permit(started)
    assert native(mine) == {"approvalPolicy": "on-request", "permissions": "mine"}
    assert narrower(mine, Permit("never", FULL)) == mine
    assert narrower(Permit("on-request", WORKSPACE), mine) == mine
    assert narrower(mine, Permit("never", READ_ONLY)) == Permit("on-request", READ_ONLY)
    assert narrower(mine, Permit("on-request", WORKSPACE, "other")) == Permit("on-request", READ_ONLY)
    assert with_network(mine, True) == with_roots(mine, ("/a",)) == mine
    assert permit(started | {"activePermissionProfile": {"id": ":workspace"}}).profile is None


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (Permit("on-request", WORKSPACE), "workspace-write, asks on request, no network"),
        (
            Permit("untrusted", READ_ONLY | {"networkAccess": True}),
            "read-only, asks before everything untrusted, network",
        ),
        (Permit("never", FULL), "full access, never asks"),
        (
            Permit(GRANULAR, whole({"type": "externalSandbox"})),
            "sandboxed from outside, asks about some things and declines others, no network",
        ),
        (
            Permit("on-failure", READ_ONLY, "mine"),
            "permission profile mine, asks when a command fails, no network",
        ),
        (Permit("maybe", FULL), "full access, asks by rules of its own"),
    ],
)
def test_an_access_is_described(one: Permit, said: str) -> None:
    """For the description of a mode."""
    assert description(one) == said


def test_the_modes_are_the_documented_ones_with_the_users_settings() -> None:
    """The sandbox that writes in the workspace is the user's own in all but its name."""
    table = {"network_access": True, "writable_roots": ["/x", "relative"], "exclude_slash_tmp": None}
    workspace = WORKSPACE | {"networkAccess": True, "writableRoots": ["/x"]}
    config = {"sandbox_workspace_write": table, "sandbox_mode": "danger-full-access"}
    assert {mode: of_mode(mode, config) for mode in ("ask", "code", "read-only", "full", "config")} == {
        "ask": Permit("untrusted", workspace),
        "code": Permit("on-request", workspace),
        "read-only": Permit("on-request", READ_ONLY),
        "full": Permit("never", FULL),
        "config": None,
    }


@pytest.mark.parametrize(
    ("config", "meant"),
    [
        ({}, Permit("untrusted", WORKSPACE)),
        ({"sandbox_mode": None, "approval_policy": "never"}, Permit("never", WORKSPACE)),
        ({"sandbox_mode": "read-only"}, Permit("untrusted", READ_ONLY)),
        ({"default_permissions": ":danger-full-access"}, Permit("untrusted", FULL)),
        ({"default_permissions": "mine"}, Permit("untrusted", READ_ONLY, "mine")),
    ],
)
def test_what_the_config_leaves_open_is_as_it_was(config: dict[str, Any], meant: Permit) -> None:
    """Codex decides it by things that we do not see, such as trust."""
    assert configured(config, Permit("untrusted", WORKSPACE)) == meant


@pytest.mark.parametrize(
    ("config", "is_trusted"),
    [
        ({}, False),
        ({"sandbox_mode": "read-only"}, False),
        ({"default_permissions": ":read-only"}, False),
        ({"sandbox_mode": "workspace-write"}, True),
        ({"sandbox_mode": "danger-full-access"}, True),
        ({"default_permissions": ":workspace"}, True),
        ({"default_permissions": "mine"}, True),
        ({"sandbox_mode": "workspace-write", "projects": {"/w": {"trust_level": "untrusted"}}}, False),
        ({"sandbox_mode": "workspace-write", "projects": {"/": {"trust_level": "trusted"}}}, True),
        ({"sandbox_mode": "workspace-write", "projects": {"/w": None}}, True),
    ],
    ids=repr,
)
def test_a_folder_that_codex_would_come_to_trust_is_known(config: dict[str, Any], is_trusted: bool) -> None:
    """Where config.toml lets it be written, and nobody has decided about it yet."""
    assert would_be_trusted(config, "/w") == is_trusted
