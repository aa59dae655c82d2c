"""The kubeconfig of a pod: its ServiceAccount, by the token that the kubelet renews in a file."""

from __future__ import annotations

from chaos.documents.yaml_text import dump

_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_SERVER = "https://kubernetes.default.svc"
_NAME = "in-cluster"


def kubeconfig_text(context: str | None) -> str:
    """A kubeconfig whose only context has the name that the inventory gives, so that the inventory stays as it is."""
    name = context or _NAME
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": {"server": _SERVER, "certificate-authority": f"{_MOUNT}/ca.crt"}}],
        "users": [{"name": _NAME, "user": {"tokenFile": f"{_MOUNT}/token"}}],
        "contexts": [{"name": name, "context": {"cluster": _NAME, "user": _NAME}}],
        "current-context": name,
    }
    return dump([document])
