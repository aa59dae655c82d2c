"""A lab process that changes pods at a steady rate: ``python benchmarks/lab_load.py RATE SECONDS``.

It prints its connection data as one line of JSON, starts the load at the first line of stdin, prints its figures as
JSON at the end of the load, and ends at the next line. Changes are stamped with the monotonic clock of the machine.
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

from chaos.lab.apiserver.store.store import Store
from chaos.lab.objects.accessors import Object
from chaos.lab.server.lab import Lab
from chaos.lab.server.options import ServeOptions
from chaos.lab.spec import LabSpec, NodeSpec

PODS = 100
PADDING = {
    f"example.com/padding-{number}": "x" * 180 for number in range(16)
}  # about 4.4 KB per pod, as in real clusters
TICK = 0.002


def memory() -> float:
    """Resident memory of this process in MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def pod(number: int) -> Object:
    containers = [{"name": "main", "image": "example.com/app:1"}]
    metadata = {"name": f"load-{number}", "namespace": "default", "annotations": PADDING}
    return {"metadata": metadata, "spec": {"nodeName": "elsewhere", "containers": containers}, "status": {}}


def change(store: Store, number: int) -> None:
    """Update a pod; its annotation ``seq`` counts all changes."""
    before = store.get("pods", "default", f"load-{number % PODS}")
    assert before is not None
    annotations = {**before["metadata"]["annotations"], "seq": str(number)}
    store.update("pods", {**before, "metadata": {**before["metadata"], "annotations": annotations}})


async def pump(store: Store, rate: int, seconds: float) -> dict[str, Any]:
    total = int(rate * seconds)
    stamps: list[tuple[int, float]] = []  # version, when
    memories: list[float] = []
    begin, cpu = time.monotonic(), time.process_time()
    while len(stamps) < total:
        due = min(int((time.monotonic() - begin) * rate) + 1, total)
        while len(stamps) < due:
            change(store, len(stamps))
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


async def serve(rate: int, seconds: float, directory: Path) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    lab = Lab(LabSpec(nodes=[NodeSpec(name="only")]), ServeOptions(speed=1, free=True), directory)
    facts = await lab.start()
    try:
        for number in range(PODS):
            lab.cluster.store.create("pods", pod(number))
        print(json.dumps(facts), flush=True)
        await reader.readline()
        print(json.dumps(await pump(lab.cluster.store, rate, seconds)), flush=True)
        await reader.readline()
    finally:
        await lab.stop()


@contextmanager
def lab_load(rate: int, seconds: float) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """The process, and its connection data."""
    command = [sys.executable, __file__, str(rate), str(seconds)]
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
        asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2]), Path(folder)))
