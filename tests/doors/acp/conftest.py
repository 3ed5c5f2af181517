"""The agents that tests of a worker share, and the loop that they live in."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.doors.acp.shared import Shared


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shared]:
    shared = Shared(lambda: tmp_path_factory.mktemp("shared"))
    yield shared
    await shared.aclose()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A process's pipes belong to one loop: whoever uses what is shared runs in it."""
    for item in items:
        if "shared" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
