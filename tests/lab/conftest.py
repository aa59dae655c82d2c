"""Labs as processes, and clients for them."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko
import pytest
import urllib3

from chaos.core.clock import RemoteClock
from tests.kit.kubectl_lab import WORKLOAD, Kubectl

NODES = [{"name": "cp", "role": "control-plane"}, {"name": "w1", "role": "worker"}, {"name": "w2", "role": "worker"}]


@dataclass
class Ran:
    code: int
    stdout: str
    stderr: str


class Client:
    """One lab process, with clients for all its servers."""

    def __init__(self, process: subprocess.Popen[str], facts: dict[str, Any]) -> None:
        self.process, self.facts = process, facts
        self.http = urllib3.PoolManager(ca_certs=facts["caFile"], retries=False, timeout=20.0, maxsize=16)
        self.clock = RemoteClock(facts["timeSource"]["address"], facts["timeSource"]["port"])
        self._ssh: dict[str, paramiko.SSHClient] = {}

    def api(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Status and JSON of one request."""
        sent = {"Authorization": f"Bearer {self.facts['token']}", "Content-Type": "application/json", **headers}
        data = None if body is None else json.dumps(body).encode()
        answer = self.http.request(method, self.facts["apiServer"] + path, body=data, headers=sent)
        return answer.status, answer.json()

    def watch(self, path: str, limit: int = 1000) -> Iterator[dict[str, Any]]:
        """Events of a watch until it ends."""
        headers = {"Authorization": f"Bearer {self.facts['token']}"}
        answer = self.http.request("GET", self.facts["apiServer"] + path, headers=headers, preload_content=False)
        buffer, seen = b"", 0
        for chunk in answer.stream(65536):
            buffer += chunk
            while b"\n" in buffer and seen < limit:
                line, _, buffer = buffer.partition(b"\n")
                seen += 1
                yield json.loads(line)
            if seen >= limit:
                break
        answer.close()

    def host(self, node: str) -> dict[str, Any]:
        return next(host for host in self.facts["hosts"] if host["node"] == node)

    def redfish(self, method: str, node: str, reset: str = "", **headers: str) -> tuple[int, Any]:
        power = self.host(node)["power"]
        secret = Path(power["passwordFile"]).read_text()
        basic = urllib3.make_headers(basic_auth=f"{power['user']}:{secret}")["authorization"]
        sent = {"Authorization": basic, "Content-Type": "application/json", **headers}
        url = power["url"] + ("/Actions/ComputerSystem.Reset" if reset else "")
        body = json.dumps({"ResetType": reset}).encode() if reset else None
        answer = self.http.request(method, url, headers=sent, body=body)
        return answer.status, answer.json() if answer.data else None

    def ssh(self, node: str) -> paramiko.SSHClient:
        """An open connection, the host key checked."""
        if node not in self._ssh:
            host, client = self.host(node), paramiko.SSHClient()
            client.load_host_keys(self.facts["knownHosts"])
            client.connect(
                host["address"],
                host["port"],
                host["user"],
                key_filename=host["identityFile"],
                allow_agent=False,
                look_for_keys=False,  # words: keep
                timeout=10,
            )
            self._ssh[node] = client
        return self._ssh[node]

    def run(self, node: str, command: str, stdin: str = "") -> Ran:
        into, out, err = self.ssh(node).exec_command(command, timeout=20)
        into.write(stdin)
        into.channel.shutdown_write()
        stdout, stderr = out.read().decode(), err.read().decode()
        return Ran(out.channel.recv_exit_status(), stdout, stderr)

    def forget(self, node: str) -> None:
        """Close the connection to a node."""
        if node in self._ssh:
            self._ssh.pop(node).close()

    def wait(self, seconds: float) -> None:
        """Let simulated time pass."""
        with self.clock.participant():
            assert self.clock.sleep(seconds)

    def close(self) -> None:
        for node in list(self._ssh):
            self.forget(node)
        self.http.clear()
        self.clock.close()


def start(*options: str, **spec: Any) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "chaos.lab", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps({"nodes": NODES, "seed": 7, **spec}) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    assert line, f"the lab ended with {process.wait(10)}"
    return process, json.loads(line)


def stop(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write("stop\n")
        process.stdin.close()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(5)
        raise
    assert process.stdout
    process.stdout.close()


@pytest.fixture
def make_lab() -> Iterator[Callable[..., Client]]:
    """Start labs with options and LabSpec keys; stop them after the test."""
    clients: list[Client] = []

    def make(*options: str, **spec: Any) -> Client:
        clients.append(Client(*start(*options, **spec)))
        return clients[-1]

    yield make
    for client in clients:
        client.close()
        stop(client.process)


@pytest.fixture(scope="module")
def shared() -> Iterator[Client]:
    """One lab for the tests of a module that clean up after themselves."""
    client = Client(*start("--pace", "200"))
    yield client
    client.close()
    stop(client.process)


@pytest.fixture(scope="module")
def free_lab() -> Iterator[Client]:
    """A free-running lab at ten simulated seconds per second, with the workload of kubectl_lab."""
    client = Client(*start("--speed", "10"))
    plurals = {"ConfigMap": "configmaps", "PodDisruptionBudget": "poddisruptionbudgets"}
    for item in json.loads(WORKLOAD.read_text())["items"]:
        version = item["apiVersion"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        plural = plurals.get(item["kind"], item["kind"].lower() + "s")
        assert client.api("POST", f"{root}/namespaces/default/{plural}", item)[0] == 201
    yield client
    client.close()
    stop(client.process)


@pytest.fixture(scope="module")
def kubectl(free_lab: Client, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """kubectl for ``free_lab``."""
    return Kubectl(free_lab.facts["kubeconfig"], tmp_path_factory.mktemp("home"))
