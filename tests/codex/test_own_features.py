"""A warning about features that we switch on ourselves is not shown; every other one is."""

from __future__ import annotations

import pytest

from laneway.codex.own_features import is_about_own_features
from laneway.codex.translate import Translator
from laneway.core.model import Event, Notice

REST = "Under-development features are incomplete and may behave unpredictably. To suppress this warning, …"


def warning(names: str) -> str:
    return f"Under-development features enabled: {names}. {REST}"


@pytest.mark.parametrize(
    ("message", "is_ours"),
    [
        (warning("apply_patch_streaming_events"), True),
        (warning("apply_patch_streaming_events, default_mode_request_user_input"), True),
        (warning("apply_patch_streaming_events, theirs"), False),
        (warning("theirs"), False),
        ("Something else about apply_patch_streaming_events. Really.", False),
        (None, False),
    ],
)
def test_only_a_warning_that_names_our_features_and_no_other_is_swallowed(
    message: str | None, is_ours: bool
) -> None:
    """One that also names a feature of the user's own passes."""
    assert is_about_own_features(message) is is_ours
    events: list[Event] = []
    Translator(events.append).notification("warning", {"threadId": "t", "message": message}, b"")
    assert [type(event) for event in events] == ([] if is_ours else [Notice])
