"""kubectl with the credentials of the kubelet: labels of Nodes, as far as NodeRestriction lets it."""

from __future__ import annotations

from chaos.lab.hostshell.process import Process, Program

_KUBECONFIG = ["--kubeconfig", "/etc/kubernetes/kubelet.conf"]


async def kubectl(process: Process, argv: list[str]) -> int:
    """``kubectl --kubeconfig FILE label nodes --all LABEL=VALUE``, ``LABEL-``; ``wait node --selector LABEL=VALUE``."""
    kubelet = process.host.machine.kubelet
    match argv[1:]:
        case [*options, "label", "nodes", "--all", label] if options == _KUBECONFIG:
            key, is_set, value = label.partition("=")
            refused = kubelet.label_nodes(key if is_set else key.removesuffix("-"), value if is_set else None)
            name = process.host.machine.name
            for node in refused:
                why = f'node "{name}" is not allowed to modify node "{node}"'
                process.err(f'Error from server (Forbidden): nodes "{node}" is forbidden: {why}\n')
            return 1 if refused else 0
        case [*options, "wait", "node", "--selector", label, "--for=condition=Ready", _] if options == _KUBECONFIG:
            key, _, value = label.partition("=")
            if kubelet.has_labeled_node(key, value):
                return 0
            return process.fail("error: no matching resources found")
    return process.fail("kubectl: the lab simulates only label nodes --all, and wait node, as the kubelet")


PROGRAMS: dict[str, Program] = {"kubectl": kubectl}
