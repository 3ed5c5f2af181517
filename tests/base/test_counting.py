"""Numbers with their nouns."""

from __future__ import annotations

from laneway.base.counting import counted


def test_a_number_has_its_noun_in_the_right_form() -> None:
    """Also where the verb changes with it."""
    assert [counted(number, "turn") for number in (0, 1, 1200)] == ["0 turns", "1 turn", "1,200 turns"]
    assert counted(1, "file was", "files were") == "1 file was"
    assert counted(2, "file was", "files were") == "2 files were"
