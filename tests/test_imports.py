"""No module needs itself, however long the way round: the imports within the package have no cycle."""

from __future__ import annotations

import ast
from collections.abc import Collection
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src"


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def imported(tree: ast.AST, modules: Collection[str]) -> set[str]:
    """What a module imports of these, inside functions and for types, too."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            below = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {name if name in modules else node.module for name in below}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names & set(modules)


def test_no_import_leads_back_to_its_own_module() -> None:
    """A cycle is two pieces that are one, or a third that is missing."""
    trees = {name_of(path): ast.parse(path.read_text()) for path in SOURCE.rglob("*.py")}
    graph = {name: imported(tree, trees) - {name} for name, tree in trees.items()}
    TopologicalSorter(graph).prepare()


def test_a_cycle_would_be_seen() -> None:
    """Also one that is closed by an import inside a function."""
    modules = {"a": "from b import x", "b": "def f():\n    import a"}
    graph = {name: imported(ast.parse(text), modules) for name, text in modules.items()}
    with pytest.raises(CycleError):
        TopologicalSorter(graph).prepare()
