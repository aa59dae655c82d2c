"""A lab process that changes pods at a steady rate: ``python benchmarks/lab_load.py RATE SECONDS PODS``.

It prints its connection data as one line of JSON. Each line ``go`` of stdin starts the load, at whose end it prints its
figures as JSON; it ends at any other line. Changes are stamped with the monotonic clock of the machine.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chaos.lab.apiserver.store import Store
from chaos.lab.objects import Object
from chaos.lab.server.content import ServeOptions
from chaos.lab.server.lab import Lab
from chaos.lab.spec import LabSpec, NodeSpec

NODES = 1_000  # the pods are on; without machines, and with hardly any time in the lab, no controller minds
PADDING = {
    f"example.com/padding-{number}": "x" * 180 for number in range(16)
}  # about 4.4 KB per pod, as in real clusters
STATUS = {
    "phase": "Running",
    "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    "containerStatuses": [
        {"name": "main", "ready": True, "restartCount": 0, "image": "a", "imageID": "a", "state": {"running": {}}}
    ],
}
TICK = 0.002
SPEED = 0.01  # simulated seconds a second


def memory() -> float:
    """Resident memory of this process in MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def pod(number: int) -> Object:
    containers = [{"name": "main", "image": "example.com/app:1"}]
    metadata = {"name": f"load-{number}", "namespace": "default", "annotations": PADDING}
    return {
        "metadata": metadata,
        "spec": {"nodeName": f"node-{number % NODES}", "containers": containers},
        "status": STATUS,
    }


def change(store: Store, number: int, pods: int) -> None:
    """Update a pod; its annotation ``seq`` counts all changes."""
    before = store.get("pods", "default", f"load-{number % pods}")
    assert before is not None
    annotations = {**before["metadata"]["annotations"], "seq": str(number)}
    store.update("pods", {**before, "metadata": {**before["metadata"], "annotations": annotations}})


async def pump(store: Store, rate: int, seconds: float, pods: int, first: int) -> dict[str, Any]:
    total = int(rate * seconds)
    stamps: list[tuple[int, float]] = []  # version, when
    memories: list[float] = []
    begin, cpu = time.monotonic(), time.process_time()
    while len(stamps) < total:
        due = min(int((time.monotonic() - begin) * rate) + 1, total)
        while len(stamps) < due:
            change(store, first + len(stamps), pods)
            stamps.append((store.version, time.monotonic()))
        if len(stamps) * 4 // total > len(memories):
            memories.append(memory())
        await asyncio.sleep(TICK)
    took = time.monotonic() - begin
    return {
        "rate": total / took,
        "cpu": (time.process_time() - cpu) / took,
        "memory": memories,
        "stamps": stamps,
    }


async def serve(rate: int, seconds: float, pods: int, directory: Path) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    lab = Lab(LabSpec(nodes=[NodeSpec(name="only")]), ServeOptions(speed=SPEED, free=True), directory)
    facts = await lab.start()
    try:
        for number in range(pods):
            lab.cluster.store.create("pods", pod(number))
        print(json.dumps(facts), flush=True)
        first = 0
        while await reader.readline() == b"go\n":
            print(json.dumps(await pump(lab.cluster.store, rate, seconds, pods, first)), flush=True)
            first += int(rate * seconds)
    finally:
        await lab.stop()


@contextmanager
def lab_load(rate: int, seconds: float, pods: int = 100) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """The process, and its connection data."""
    command = [sys.executable, __file__, str(rate), str(seconds), str(pods)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process, json.loads(read_line(process))
        process.communicate("\n")


def start_load(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Start the load; its figures."""
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    figures: dict[str, Any] = json.loads(read_line(process))
    return figures


def read_line(process: subprocess.Popen[str]) -> str:
    """The next line of output."""
    assert process.stdout is not None
    return process.stdout.readline()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="nodefall-lab-") as folder:
        asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), Path(folder)))
