"""Labs whose Nodes are like those of distributions, each machine at a separate loopback address, sshd at one port.

As nodefall takes no loopback address of a Node for a machine, each Node has an address for documentation, too.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.cli.lab.workload import wait_for_nodes
from chaos.cluster.client import connect
from chaos.core.clock import SystemClock
from tests.kit.processes import ROOT, WALL, environment, free_port

Node = dict[str, Any]
CRI_SOCKET = {"kubeadm.alpha.kubernetes.io/cri-socket": "unix:///run/containerd/containerd.sock"}
VERSION = "v1.36.2"


@dataclass(frozen=True)
class RunningLab:
    """A lab that runs in real time: to nodefall it is any cluster."""

    kubeconfig: Path
    port: int  # of every sshd
    hosts: dict[str, dict[str, Any]]  # as the lab describes them

    @property
    def login(self) -> list[str]:
        """Options of init that replace what a lab has other than real machines."""
        identity = next(iter(self.hosts.values()))["identityFile"]
        return ["--user", "chaos", "--port", str(self.port), "--identity-file", str(identity)]


def nodes(prefix: str, number: int, **fields: Any) -> list[Node]:
    return [{"name": f"{prefix}-{index}", **fields} for index in range(1, number + 1)]


def image(name: str, version: str = VERSION) -> dict[str, str]:
    return {"osImage": name, "kubeletVersion": version}


def control_planes(number: int, **fields: Any) -> list[Node]:
    return nodes("cp", number, role="control-plane", **fields)


def instances(made: Sequence[Node], pattern: str) -> list[Node]:
    """The nodes with provider IDs; ``{}`` in the pattern is a number of 17 hexadecimal digits."""
    return [{**node, "providerID": pattern.format(f"{index:017x}")} for index, node in enumerate(made, 1)]


def kubeadm(workers: int = 3) -> list[Node]:
    info = {"nodeInfo": image("Ubuntu 24.04.1 LTS"), "annotations": CRI_SOCKET}
    zones = [{**node, "zone": f"rack-{index % 3}"} for index, node in enumerate(nodes("worker", workers, **info))]
    return [*control_planes(1, **info), *zones]


def k3s() -> list[Node]:
    return [*control_planes(1, nodeInfo=image("Debian GNU/Linux 12 (bookworm)", "v1.36.2+k3s1")),
            *nodes("agent", 2, nodeInfo=image("Debian GNU/Linux 12 (bookworm)", "v1.36.2+k3s1"))]  # fmt: skip


def eks() -> list[Node]:
    labels = {"eks.amazonaws.com/nodegroup": "general"}
    info = image("Amazon Linux 2023.6.20250123", "v1.36.2-eks-1a2b3c4")
    made = instances(nodes("ip-10-0-0", 3, labels=labels, nodeInfo=info, zone="eu-west-1a"), "aws:///eu-west-1a/i-{}")
    fargate = {"labels": {"eks.amazonaws.com/compute-type": "fargate"}, "nodeInfo": info}
    return [*made, {"name": "fargate-ip-10-0-9-9", **fargate}]


def gke() -> list[Node]:
    labels = {"cloud.google.com/gke-nodepool": "default-pool"}
    info = image("Container-Optimized OS from Google", "v1.36.2-gke.1234000")
    return instances(nodes("gke-pool", 3, labels=labels, nodeInfo=info), "gce://shop/europe-west1-b/gke-{}")


def aks() -> list[Node]:
    labels = {"kubernetes.azure.com/cluster": "MC_shop", "kubernetes.azure.com/agentpool": "nodepool1"}
    scale_set = "Microsoft.Compute/virtualMachineScaleSets/aks-nodepool1/virtualMachines"
    return instances(
        nodes("aks-nodepool1", 3, labels=labels, nodeInfo=image("Ubuntu 22.04.5 LTS")),
        f"azure:///subscriptions/5b1e/resourceGroups/mc_shop/providers/{scale_set}/{{}}",
    )


def kind() -> list[Node]:
    info = {"nodeInfo": image("Debian GNU/Linux 12 (bookworm)"), "annotations": CRI_SOCKET}
    made = [*control_planes(1, **info), *nodes("worker", 2, **info)]
    return [{**node, "providerID": f"kind://docker/kind/{node['name']}"} for node in made]


def openshift() -> list[Node]:
    labels = {"node.openshift.io/os_id": "rhel"}
    info = image("Red Hat Enterprise Linux CoreOS 9.6.20260101-0 (Plow)")
    masters = control_planes(3, labels=labels | {"node-role.kubernetes.io/master": ""}, nodeInfo=info)
    return [*masters, *nodes("worker", 2, labels=labels | {"node-role.kubernetes.io/worker": ""}, nodeInfo=info)]


def dual_stack() -> list[Node]:
    return [
        {**node, "moreAddresses": [{"type": "InternalIP", "address": f"2001:db8::{index}"}]}
        for index, node in enumerate(kubeadm(2), 1)
    ]


@contextmanager
def serving(made: Sequence[Node], name: str) -> Iterator[RunningLab]:
    """Serve a lab with these nodes in real time, with all nodes Ready; its context is called ``name``."""
    port = free_port()
    placed = [_placed(node, index, port) for index, node in enumerate(made)]
    spec = {"nodes": placed, "seed": 3, "start": time.time(), "inhibitorLostAfterCancel": "never"}
    argv = [sys.executable, "-m", "chaos.lab", "--speed", "1", "--name", name]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdin
        assert process.stdout
        try:
            process.stdin.write(json.dumps(spec) + "\n")
            process.stdin.flush()
            facts = json.loads(process.stdout.readline())
            with closing(connect(facts["kubeconfig"])) as kube, closing(SystemClock()) as clock:
                wait_for_nodes(kube, clock)
            yield RunningLab(Path(facts["kubeconfig"]), port, {host["node"]: host for host in facts["hosts"]})
        finally:
            with suppress(BrokenPipeError):
                process.stdin.write("stop\n")
                process.stdin.flush()


def _placed(node: Node, index: int, port: int) -> Node:
    more = [
        *node.get("moreAddresses", []),
        {"type": "ExternalIP", "address": f"203.0.{index // 250}.{index % 250 + 1}"},
    ]
    return {**node, "address": f"127.77.{index // 250}.{index % 250 + 1}", "sshPort": port, "moreAddresses": more}


def init(*arguments: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """``nodefall init`` without a terminal, with a home directory that has no keys."""
    command = [sys.executable, "-m", "chaos", "init", *map(str, arguments)]
    variables = {**environment(cwd), "HOME": str(cwd), "SSH_AUTH_SOCK": "", "KUBECONFIG": "", **variables}
    return subprocess.run(
        command, cwd=cwd, env=variables, capture_output=True, text=True, timeout=WALL, check=False,
        start_new_session=True,
    )  # fmt: skip
