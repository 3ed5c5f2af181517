"""A Ray cluster on this machine whose nodes have homes of their own, and can be killed.

A node's environment is that of its `ray start`. Every process of it carries a mark there, and so do the
jobs that it has started: what is left at the end is found by that, and ended by its number.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from laneway.wire import guardian

MARK = "LANEWAY_TEST_RAY"
PROMPT = {
    # A dead node is noticed within a few seconds, a dead head by all others; by default it takes a minute.
    "RAY_gcs_rpc_server_reconnect_timeout_s": "6",
    "RAY_health_check_initial_delay_ms": "500",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
}
START_S = 120.0
MEMORY = 80_000_000
"""Of a node's store of objects, of which we use none; the least that Ray accepts."""


class RayNodeProcess:
    """One `ray start --block`, and what it has started."""

    def __init__(self, cluster: RayTestCluster, name: str, ip: str, home: Path) -> None:
        self.cluster = cluster
        self.name = name
        self.ip = ip
        self.home = home
        self.mark = f"{cluster.mark}-{name}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, resources: Mapping[str, float], extra: Mapping[str, str]) -> None:
        cluster = self.cluster
        role = [f"--address={cluster.address}"]
        if self.name == cluster.head:
            role = ["--head", f"--port={cluster.port}", "--include-dashboard=false"]
        log = cluster.folder / f"{self.name}.log"
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [
                    os.path.join(os.path.dirname(sys.executable), "ray"),
                    "start",
                    *role,
                    f"--node-name={self.name}",
                    f"--node-ip-address={self.ip}",
                    f"--resources={msgspec.json.encode(resources).decode()}",
                    f"--object-store-memory={MEMORY}",
                    f"--temp-dir={cluster.folder / 'ray'}",
                    "--num-cpus=1",
                    "--min-worker-port=0",
                    "--max-worker-port=0",
                    "--disable-usage-stats",
                    "--block",
                ],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=self.home,
                env={**cluster.environment, **extra, "HOME": str(self.home), MARK: self.mark},
                start_new_session=True,
            )

    def kill(self) -> None:
        """kill -9 of the raylet, of the head's server, and of what would start or stop them."""
        pids = [pid for pid in marked(self.mark) if is_of_ray(pid)]
        guardian.signal_all(pids, signal.SIGKILL)
        if self.process is not None:
            self.process.wait()


class RayTestCluster:
    """`head` and the others share one Ray and a secret; each has its own home."""

    def __init__(self, environment: Mapping[str, str], head: str = "a") -> None:
        self.mark = secrets.token_hex(8)
        self.folder = Path(tempfile.mkdtemp(prefix="lw-ray-"))  # short: Ray puts sockets into it
        self.head = head
        self.port = free_port()
        self.address = f"127.0.0.2:{self.port}"
        self.secret = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}
        """Ray listens on all interfaces, whatever address it is given."""
        self.environment = {
            **{key: value for key, value in environment.items() if not key.startswith("RAY_")},
            **PROMPT,
            **self.secret,
        }
        self.nodes: dict[str, RayNodeProcess] = {}

    def node(self, name: str) -> RayNodeProcess:
        if name not in self.nodes:
            home = self.folder / name
            home.mkdir()
            self.nodes[name] = RayNodeProcess(self, name, f"127.0.0.{2 + len(self.nodes)}", home)
        return self.nodes[name]

    def close(self) -> None:
        while pids := list(marked(self.mark)):
            guardian.signal_all(pids, signal.SIGKILL)
            for node in self.nodes.values():
                if node.process is not None:
                    node.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.2", 0))
        port: int = listening.getsockname()[1]
        return port


def marked(mark: str) -> Iterator[int]:
    """Processes that have this mark in their environment, or one that begins with it."""
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                environment = Path("/proc", name, "environ").read_bytes()
            except OSError:
                continue
            if f"{MARK}={mark}".encode() in environment:
                yield int(name)


def is_of_ray(pid: int) -> bool:
    """Whether it is a process of Ray itself: no actor, and nothing that one has started."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(b"/site-packages/ray/" in word or word.endswith(b"/bin/ray") for word in words[:4])
