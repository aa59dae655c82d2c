"""crictl ps, journalctl and find: what is looked at on a host."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from chaos.lab.hostshell.process import HostSystem, Process, Program
from chaos.lab.hostshell.programs.options import UnknownOptionError, split_options
from chaos.lab.hostshell.programs.systemd import parse_timespan
from chaos.lab.node.kubelet.runtime import Container

SOCKET = "/run/containerd/containerd.sock"
_CRICTL = {"-r": "endpoint", "--runtime-endpoint": "endpoint", "-o": "output", "--output": "output"} | {
    "--state": "state",
    "-s": "state",
}
_JOURNAL = {
    "-u": "unit",
    "--unit": "unit",
    "-o": "output",
    "--output": "output",
    "--output-fields": "fields",
    "--since": "since",
    "-S": "since",
    "--grep": "grep",
    "-g": "grep",
}
_JOURNAL_FLAGS = {"-q": "quiet", "--quiet": "quiet", "--no-pager": "no-pager"}


async def find(process: Process, argv: list[str]) -> int:
    """``find PATH... -maxdepth 0 -type s``: which of the sockets there are."""
    paths = [word for word in argv[1:] if word.startswith("/")]
    if argv[1 + len(paths) :] != ["-maxdepth", "0", "-type", "s"]:
        return process.fail("find: the lab simulates only find PATH... -maxdepth 0 -type s")
    missing = [path for path in paths if path != SOCKET]
    for path in missing:
        process.err(f"find: '{path}': No such file or directory\n")
    process.out(f"{SOCKET}\n" * paths.count(SOCKET))
    return 1 if missing else 0


async def crictl(process: Process, argv: list[str]) -> int:
    """``crictl -r unix://SOCKET ps --state Running -o json``, with the fields of the CRI's ListContainers."""
    try:
        options, words = split_options(argv[1:], {}, _CRICTL)
    except UnknownOptionError as error:
        return process.fail(f"crictl: {error}")
    endpoint = options.get("endpoint", [""])[-1]
    if words != ["ps"] or options.get("output") != ["json"] or options.get("state", ["Running"]) != ["Running"]:
        return process.fail("crictl: the lab simulates only crictl ps --state Running -o json")
    if endpoint != f"unix://{SOCKET}":
        return _no_endpoint(process, endpoint, "no such file or directory")
    if not process.is_root:
        return _no_endpoint(process, endpoint, "permission denied")
    if not process.host.machine.runtime.is_available:
        return _no_endpoint(process, endpoint, "connection refused")
    process.out(json.dumps({"containers": list(_running_containers(process.host))}, indent=2) + "\n")
    return 0


def _no_endpoint(process: Process, endpoint: str, why: str) -> int:
    path = endpoint.removeprefix("unix://")
    return process.fail(
        f'FATA[0000] validate service connection: validate CRI v1 runtime API for endpoint "{endpoint}": rpc error: '
        f'code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix {path}: '
        f'connect: {why}"'
    )


def _running_containers(host: HostSystem) -> Iterator[dict[str, Any]]:
    runtime = host.machine.runtime
    for uid in runtime.pods():
        namespace, name = runtime.names[uid]
        for container in runtime.containers(uid):
            if container.state == "running":
                yield _container_entry(container, namespace, name, uid)


def _container_entry(container: Container, namespace: str, pod: str, uid: str) -> dict[str, Any]:
    """createdAt is in nanoseconds, as a string."""
    return {
        "id": container.id.removeprefix("containerd://"),
        "metadata": {"name": container.name, "attempt": container.restart_count},
        "state": "CONTAINER_RUNNING",
        "createdAt": f"{container.started_at:.6f}".replace(".", "") + "000",
        "labels": {
            "io.kubernetes.container.name": container.name,
            "io.kubernetes.pod.name": pod,
            "io.kubernetes.pod.namespace": namespace,
            "io.kubernetes.pod.uid": uid,
        },
    }


async def journalctl(process: Process, argv: list[str]) -> int:
    """``journalctl -q -u UNIT -o json --since=-SPAN --grep=TEXT``; exit 1 if nothing fits, as the real one."""
    try:
        options, words = split_options(argv[1:], _JOURNAL_FLAGS, _JOURNAL)
    except UnknownOptionError as error:
        return process.fail(f"journalctl: {error}")
    since = options.get("since", [""])[-1]
    span = parse_timespan(since[1:]) if since.startswith("-") else None
    if words or span is None or "quiet" not in options or options.get("output") != ["json"] or "unit" not in options:
        return process.fail("journalctl: the lab simulates only journalctl -q -u UNIT -o json --since=-SPAN")
    if not process.is_root:
        return 1
    host, pattern = process.host, options.get("grep", [""])[-1]
    fitting = [
        record
        for record in host.machine.journal.since(host.sim.now - span, options["unit"][-1])
        if re.search(pattern, record.message)
    ]
    for record in fitting:
        stamp = f"{record.t:.6f}".replace(".", "")
        process.out(json.dumps({"__REALTIME_TIMESTAMP": stamp, "MESSAGE": record.message}) + "\n")
    return 0 if fitting or not pattern else 1


PROGRAMS: dict[str, Program] = {"crictl": crictl, "find": find, "journalctl": journalctl}
