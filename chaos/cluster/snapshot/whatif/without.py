"""``without=NODE``: the cluster without a node. Pods that ran there are placed again by their controllers."""

from __future__ import annotations

from chaos.cluster.snapshot.contents import Contents, Object, name_of
from chaos.cluster.snapshot.whatif.change import Apply, ChangeError, ChangeKind, node_named


def remove_node(contents: Contents, name: str) -> int:
    """Remove a node, and what is bound to it; the number of pods. Raises ChangeError."""
    node_named(contents, name)
    if len(contents.of("nodes")) == 1:
        raise ChangeError(f"{name} is the only node", "leave a node")
    contents.objects["nodes"] = [node for node in contents.of("nodes") if name_of(node) != name]
    contents.configs.pop(name, None)
    contents.hosts.pop(name, None)
    pods = contents.of("pods")
    contents.objects["pods"] = [pod for pod in pods if (pod.get("spec") or {}).get("nodeName") != name]
    attachments = contents.of("volumeattachments")
    contents.objects["volumeattachments"] = [each for each in attachments if _node(each) != name]
    return len(pods) - len(contents.objects["pods"])


def _node(attachment: Object) -> str:
    return str((attachment.get("spec") or {}).get("nodeName", ""))


def _parse(text: str) -> Apply:
    def apply(contents: Contents) -> str:
        pods = remove_node(contents, text)
        return f"{text} does not exist; its {pods} pods are placed again"

    return apply


def _nodes(contents: Contents) -> list[str]:
    return sorted(name_of(node) for node in contents.of("nodes"))


KIND = ChangeKind("without", "NODE", "the cluster without that node", _parse, _nodes)
