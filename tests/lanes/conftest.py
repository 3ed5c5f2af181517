"""Fixtures for the tests of lanes."""

from tests.lanes.samples import fresh_registry

__all__ = ["fresh_registry"]
