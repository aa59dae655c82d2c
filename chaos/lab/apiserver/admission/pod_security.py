"""Pod Security admission in mode enforce: the checks of the baseline level that a pod for a host's own work breaks.

k8s.io/pod-security-admission policy: check_hostNamespaces.go, check_privileged.go; messages of admission.go. The other
checks, and those that only the restricted level has, are not simulated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

LABEL, VERSION = "pod-security.kubernetes.io/enforce", "pod-security.kubernetes.io/enforce-version"
_LEVELS = ("baseline", "restricted")
_HOST_NAMESPACES = ("hostNetwork", "hostPID", "hostIPC")


def violation(namespace: dict[str, Any], spec: dict[str, Any]) -> str:
    """Why the labels of ``namespace`` forbid a pod with this spec; "" if they do not."""
    labels = namespace["metadata"].get("labels") or {}
    if (level := labels.get(LABEL)) not in _LEVELS:
        return ""
    broken = ", ".join(_broken_rules(spec))
    return f'violates PodSecurity "{level}:{labels.get(VERSION, "latest")}": {broken}' if broken else ""


def _broken_rules(spec: dict[str, Any]) -> Iterator[str]:
    if used := [f"{name}=true" for name in _HOST_NAMESPACES if spec.get(name)]:
        yield f"host namespaces ({', '.join(used)})"
    containers = [c["name"] for c in spec["containers"] if (c.get("securityContext") or {}).get("privileged")]
    if containers:
        names = ", ".join(f'"{name}"' for name in containers)
        plural = "s" if len(containers) > 1 else ""
        yield f"privileged (container{plural} {names} must not set securityContext.privileged=true)"
