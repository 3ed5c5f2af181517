"""Lanes: agents that take turns in one conversation, and how to write one (docs/lanes.md).

A module with a class that is decorated with `register_lane` is a plugin; the setting `lanes` of
`[laneway.chat]` names it.
"""

from laneway.lanes.dispatch import get_active_lane, parse_lane_command, start_lane_task
from laneway.lanes.protocol import LaneInput, LanePlugin
from laneway.lanes.registry import get_all_lanes, get_lane_class, register_full_lane, register_lane

__all__ = [
    "LaneInput",
    "LanePlugin",
    "get_active_lane",
    "get_all_lanes",
    "get_lane_class",
    "parse_lane_command",
    "register_full_lane",
    "register_lane",
    "start_lane_task",
]
