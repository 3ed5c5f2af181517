"""docs/modules.md: the index of modules is the one that the docstrings make."""

from __future__ import annotations

from scripts.generate_modules import PAGE, SOURCE, first_sentence, page


def test_the_page_is_what_the_docstrings_say_today() -> None:
    """`make modules` writes it anew."""
    assert PAGE.read_text() == page()


def test_every_module_says_what_it_owns() -> None:
    """In a docstring that begins with a sentence."""
    silent = [
        path
        for path in SOURCE.rglob("*.py")
        if "protocol" not in path.parts and path.name != "__main__.py" and not first_sentence(path)
    ]
    assert silent == []
