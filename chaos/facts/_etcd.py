"""kubeadm's etcd: its manifest, and commands in its container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.model.command import HostCommand

MANIFEST = "/etc/kubernetes/manifests/etcd.yaml"
NAMESPACE, CONTAINER = "kube-system", "etcd"
CRICTL = '"$1" --runtime-endpoint "unix://$2"'  # in scripts: client and socket of the runtime are the first words
_PKI = "/etc/kubernetes/pki/etcd"  # on the host and in the container: cmd/kubeadm/app/phases/etcd/local.go
# The image has no shell. CRI labels: pkg/kubelet/types/labels.go.
_FIND = (
    f"id=$({CRICTL} ps --quiet --state Running "
    f"--label io.kubernetes.container.name={CONTAINER} --label io.kubernetes.pod.namespace={NAMESPACE}) && "
    'test -n "$id"'
)
# Not exec --sync, which discards what a command prints that fails (cri-tools, cmd/crictl/exec.go, ExecSync), as etcdctl
# does for the members that answer if another one does not.
_ETCDCTL = (
    f'{CRICTL} exec "$id" etcdctl --endpoints=https://127.0.0.1:2379 '
    f"--cacert={_PKI}/ca.crt --cert={_PKI}/healthcheck-client.crt --key={_PKI}/healthcheck-client.key"
)
NEEDS = ("runtime-socket", "runtime-client")


def etcdctl(known: Mapping[str, Any], *commands: str) -> HostCommand:
    """Commands of etcdctl in the container of etcd, one after the other; ``known``: values of NEEDS.

    Raises ValueError without crictl.
    """
    client = str(known["runtime-client"])
    if not client.endswith("/crictl"):
        raise ValueError("crictl is not installed")
    script = " && ".join((_FIND, *(f"{_ETCDCTL} {command}" for command in commands)))
    return HostCommand(("sh", "-c", script, "nodefall", client, str(known["runtime-socket"])), timeout=40.0)
