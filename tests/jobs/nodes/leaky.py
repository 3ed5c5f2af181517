"""A pipe that breaks: passes bytes both ways, and dies after as many as it drew. `leaky.py DRAWS -- COMMAND`.

DRAWS is a file of numbers, one on a line; each run takes the first one away. Without any left it holds.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

HOLDS = 1 << 60


def drawn(draws: Path) -> int:
    numbers = draws.read_text().split()
    draws.write_text("\n".join(numbers[1:]))
    return int(numbers[0]) if numbers else HOLDS


def main(draws: str, *command: str) -> None:
    left = drawn(Path(draws))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
        assert child.stdin
        assert child.stdout
        ways = {0: child.stdin.fileno(), child.stdout.fileno(): 1}
        while True:
            for source in select.select(list(ways), [], [])[0]:
                data = os.read(source, min(left, 65536))
                if not data:
                    os._exit(0)
                left -= len(data)
                while data:
                    data = data[os.write(ways[source], data) :]
                if left == 0:
                    os._exit(9)  # in the midst of a message, most often; what it started sees its input end


if __name__ == "__main__":
    main(sys.argv[1], *sys.argv[3:])
