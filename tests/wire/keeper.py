"""A program that holds one child, as Laneway does: prints what the child said, and waits."""

import asyncio
import sys

from laneway.wire import guardian
from laneway.wire.child import Child

KIND = "--kind="


def pass_on(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


async def main() -> None:
    words = sys.argv[1:]
    kind = words.pop(0).removeprefix(KIND) if words[0].startswith(KIND) else guardian.AGENT
    child = await Child.spawn(words, on_stdout=pass_on, kind=kind)
    await child.wait()


if __name__ == "__main__":
    asyncio.run(main())
