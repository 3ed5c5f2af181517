"""The program that drives a Ray cluster: `… -m laneway.app.jobs_ray ADDRESS`, on standard input and output.

Started by `laneway.jobs.nodes.ray_nodes`, under a guardian. It is called like a node, and carries the calls
that name a machine to that machine; it ends when its caller hangs up, or when the cluster's head is gone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from typing import Any

import msgspec

from laneway import __version__
from laneway.base.errors import LanewayError, RemoteError
from laneway.doors.ending import EndSignals
from laneway.doors.pipe import Pipe, claim_standard_streams
from laneway.jobs.nodes.messages import NODE_ERROR, PROTOCOL, Hello, fault_of
from laneway.jobs.nodes.ray_driver import RayDriver
from laneway.jobs.nodes.ray_nodes import MACHINES, Carried
from laneway.wire.peer import Raw

log = logging.getLogger(__name__)

decode_carried = msgspec.json.Decoder(Carried).decode


def main(argv: list[str]) -> int:
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    streams = claim_standard_streams()  # Ray writes to standard output
    os.chdir("/")
    asyncio.run(_serve(argv[1], streams))
    return 0


async def _serve(address: str, streams: tuple[int, int]) -> None:
    driver = RayDriver(address, _give_up)

    async def answer(method: str, params: Raw, request_id: bytes) -> Any:
        try:
            return await _handled(driver, method, params)
        except LanewayError as problem:
            raise RemoteError(NODE_ERROR, str(problem), msgspec.to_builtins(fault_of(problem))) from problem

    pipe = Pipe(on_request=answer, on_notification=_ignore, cancel_notice=_no_longer_needed)
    await pipe.open(*streams)
    with EndSignals(pipe.ended):
        await pipe.listen()
        await pipe.ended.wait()
    # Without the head, Ray would wait for it before it lets the process end.
    os._exit(0)


async def _handled(driver: RayDriver, method: str, params: Raw) -> Any:
    carried = decode_carried(params) if params else Carried()
    if carried.machine:
        return await driver.call(carried.machine, method, carried.params, carried.timeout_s)
    if method == MACHINES:
        return msgspec.to_builtins(await driver.machines())
    return msgspec.to_builtins(
        Hello(protocol=PROTOCOL, version=__version__, home="", repositories=(), free={})
    )


def _give_up(why: str) -> None:
    log.warning("%s", why)
    os._exit(1)


def _ignore(method: str, params: Raw, frame: bytes) -> None:
    log.debug("a notification that nobody knows: %s", method[:100])


def _no_longer_needed(request_id: bytes) -> tuple[str, Any]:
    return "cancelled", {"requestId": msgspec.Raw(request_id)}


if __name__ == "__main__":
    sys.exit(main(sys.argv))
