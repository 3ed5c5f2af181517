"""A program that holds one child, as Laneway does: prints what the child said, and waits."""

import asyncio
import sys

from laneway.wire.child import Child


def pass_on(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


async def main() -> None:
    child = await Child.spawn(sys.argv[1:], on_stdout=pass_on)
    await child.wait()


if __name__ == "__main__":
    asyncio.run(main())
