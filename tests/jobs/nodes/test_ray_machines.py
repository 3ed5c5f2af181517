"""What Ray says of its nodes, read as machines that run jobs; no Ray."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import NodeUnreachable, UsageError
from laneway.jobs.nodes.messages import Hello
from laneway.jobs.nodes.ray_actor import node_environment
from laneway.jobs.nodes.ray_driver import check_port
from laneway.jobs.nodes.ray_machines import Machine, free_places, machines
from laneway.jobs.nodes.ray_nodes import RayNodes
from tests.jobs.stage import stage


def node(name: str, node_id: str, *, is_alive: bool = True, **resources: float) -> dict[str, Any]:
    named = {key.replace("__", ":"): value for key, value in resources.items()}
    return {"NodeName": name, "NodeID": node_id, "Alive": is_alive, "Resources": {"CPU": 4.0, **named}}


def test_machines_are_the_nodes_that_name_a_repository() -> None:
    """With what they name; of those that have died Ray knows the name only."""
    found = machines(
        [
            node("head", "1"),
            node("gpu1", "2", repo__site=1.0, repo__app=1.0, laneway__read=4.0),
            node("gpu2", "3", repo__site=1.0),
            {"NodeName": "gpu3", "NodeID": "4", "Alive": False, "Resources": {}},
            {"NodeName": "gpu2", "NodeID": "0", "Alive": False, "Resources": {}},
        ]
    )
    assert found == {
        "gpu1": Machine(
            name="gpu1", node_ids=("2",), repositories=("app", "site"), places={"read": 4, "write": 0}
        ),
        "gpu2": Machine(name="gpu2", node_ids=("3",), repositories=("site",)),
        "gpu3": Machine(name="gpu3"),
    }


def test_two_nodes_of_one_name_are_told_apart() -> None:
    """So that no call goes to either."""
    found = machines([node("gpu", "1", repo__site=1.0), node("gpu", "2", repo__site=1.0)])
    assert found["gpu"].node_ids == ("1", "2")


@pytest.mark.covers("J-nodes.3")
@pytest.mark.parametrize(
    ("granted", "expected"),
    [({}, 3), ({"read": 8, "write": 2}, 3), ({"read": 2, "write": 2}, 1), ({"read": 0, "write": 2}, None)],
)
def test_a_machine_has_no_more_room_than_it_has_and_is_granted(
    granted: dict[Any, int], expected: int | None
) -> None:
    """It has four places, one of them taken; a place that Ray does not grant is no room."""
    hello = Hello(
        protocol=1,
        version="1",
        home="home-1",
        repositories=("site",),
        free={"read": 3, "write": 2},
        places={"read": 4, "write": 2},
    )
    assert free_places(Machine(name="a", places=granted), hello, "read") == expected


def test_jobs_do_not_see_what_is_ray_s_own() -> None:
    """Its secret above all: whoever has it runs any program on every machine of the cluster."""
    environment = {
        "HOME": "/home/ann",
        "RAY_AUTH_TOKEN": "secret",
        "RAY_JOB_ID": "1",
        "SPT_NOENV": "1",
        "LANEWAY_HTTP_TOKEN": "secret",
        "ARRAY_SIZE": "3",
    }
    assert node_environment(environment) == {"HOME": "/home/ann", "ARRAY_SIZE": "3"}


def test_a_port_at_which_nobody_listens_is_known_at_once() -> None:
    """Ray tries for two minutes. Addresses of other forms are Ray's to judge."""
    with pytest.raises(NodeUnreachable, match="no Ray cluster answers there"):
        check_port("127.0.0.1:1")
    check_port("auto")
    check_port("ray://127.0.0.1:1")


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed here")
async def test_without_ray_a_sentence_says_what_to_install(tmp_path: Path) -> None:
    """Nothing is started for it; jobs that are there already are out of reach."""
    async with stage(tmp_path) as here:
        nodes = RayNodes(None, {}, here.jobs())
        with pytest.raises(UsageError, match=r"Ray is not installed: `.*ray"):
            await nodes.node("gpu1")
        with pytest.raises(UsageError, match="Ray is not installed"):
            await nodes.choose("site", "read")
        with pytest.raises(NodeUnreachable, match="Ray is not installed"):
            await nodes.call("gpu1", "watch", {}, None)
        assert nodes.driver_pid is None
        await nodes.close()
