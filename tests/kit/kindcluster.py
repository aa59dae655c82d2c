"""A kind cluster that is there: its nodes are containers called like them."""

from __future__ import annotations

import json
import re
import subprocess
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from chaos.cluster.client import connect
from chaos.core.inventory import Inventory
from chaos.documents.inventory import load_inventory
from chaos.machines.transports.docker import find_engine

_ANSWER = 120
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_NODE = r"{}-(control-plane|worker)\d*"


@dataclass(frozen=True)
class KindCluster:
    """``folder`` is for reports and keys."""

    inventory: Inventory
    folder: Path

    @cached_property
    def nodes(self) -> list[str]:
        """As the API has them, those of the control plane first."""
        cluster = self.inventory.cluster
        assert cluster is not None
        with closing(connect(cluster.kubeconfig, cluster.context)) as kube:
            items = json.loads(kube.request("GET", "/api/v1/nodes").body)["items"]
        found = [(_CONTROL_PLANE not in item["metadata"].get("labels", {}), item["metadata"]["name"]) for item in items]
        return [name for _, name in sorted(found)]

    def inside(self, node: str, script: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """A shell script as root in the container, past every fault."""
        _, host = self.inventory.host_of(node)
        engine = find_engine(host.engine or self.inventory.defaults.engine)
        command = [engine, "exec", "-i", host.container or node, "sh", "-c", script]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=_ANSWER, check=False)

    def no_logind(self) -> str:
        """Why nothing can be shut down gracefully, "" if it can: logind answers on D-Bus."""
        command = "busctl call org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.DBus.Peer Ping"
        if self.inventory.defaults.transport == "ssh":
            return ""  # its nodes need not be containers: a run is refused if they have none
        done = self.inside(self.nodes[-1], command)
        said = (done.stderr or done.stdout).strip()
        return f"no graceful shutdown on this cluster: {self.nodes[-1]}: {said}" if done.returncode else ""

    def no_ssh(self) -> str:
        """Why SSH is not tried, "" if it is."""
        if self.inventory.defaults.transport == "ssh":
            return "the inventory has ssh already"
        done = self.inside(self.nodes[-1], "systemctl is-active ssh.service || systemctl is-active sshd.service")
        return f"no sshd on {self.nodes[-1]}: {done.stdout.strip()}" if done.returncode else ""

    def by_ssh(self, identity: Path) -> Inventory:
        """The same over SSH: addresses as the Nodes say, which change with each start; so keys hold for any address."""
        key, known = identity.with_suffix(".pub").read_text(), []
        for node in self.nodes:
            done = self.inside(node, "mkdir -p -m 700 /root/.ssh && cat >> /root/.ssh/authorized_keys", key)
            assert done.returncode == 0, done.stderr
            known += [f"* {line}" for line in self.inside(node, "cat /etc/ssh/ssh_host_*_key.pub").stdout.splitlines()]
        file = self.folder / "known_hosts"
        file.write_text("".join(f"{line}\n" for line in known))
        document = self.inventory.model_dump(mode="json", by_alias=True, exclude_none=True)
        document["defaults"] = {
            "transport": "ssh",
            "user": "root",
            "sudo": False,
            "identityFile": str(identity),
            "knownHosts": str(file),
            "agent": False,
        }
        return Inventory.model_validate(document)


def described(name: str, engine: str, folder: Path) -> Inventory:
    """The inventory of a cluster that somebody else has made: docker transport, docker power. Asks only the engine."""
    nodes = [n for n in _said(engine, "ps", "--format", "{{.Names}}").split() if re.fullmatch(_NODE.format(name), n)]
    assert nodes, f"no container is called {name}-control-plane or {name}-worker"
    plane = f"{name}-control-plane"
    port = _said(engine, "port", plane, "6443/tcp").split()[0].rpartition(":")[2]
    kubeconfig = folder / "kubeconfig"
    config = _said(engine, "exec", plane, "cat", "/etc/kubernetes/admin.conf")
    kubeconfig.write_text(re.sub(r"server: https://\S+", f"server: https://127.0.0.1:{port}", config))
    kubeconfig.chmod(0o600)
    power = {"kind": "docker", "engine": engine}
    document = {
        "apiVersion": "nodefall.dev/v1alpha1",
        "kind": "Inventory",
        "metadata": {"name": "kind"},
        "cluster": {"kubeconfig": kubeconfig.name},
        "defaults": {"transport": "docker", "engine": engine},
        "hosts": {node: {"power": power} for node in nodes},
    }
    file = folder / "inventory.json"
    file.write_text(json.dumps(document))
    file.chmod(0o600)
    return load_inventory(file)


def _said(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=_ANSWER, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
