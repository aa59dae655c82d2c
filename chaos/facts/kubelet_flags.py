"""Command line of the kubelet."""

from __future__ import annotations

import re

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

# Distributions whose kubelet is part of another process.
_UNITS = ("k3s.service", "k3s-agent.service")
_MICROK8S = "/var/snap/microk8s/current/args/kubelet"
_SNAP = {"${SNAP_COMMON}": "/var/snap/microk8s/common", "${SNAP_DATA}": "/var/snap/microk8s/current"}
_SCRIPT = f'ps -eo args=; echo; systemctl show --property=ExecStart "$@"; echo; cat {_MICROK8S} 2>/dev/null; true'


class KubeletFlags(HostFact):
    """Mapping ``{"config": "/var/lib/kubelet/config.yaml"}`` by name without dashes; a flag without a value is "true".

    The flags are those of the kubelet's process (kubeadm, rke2), else of ``--kubelet-arg`` of k3s, else of microk8s'
    file of arguments; the last two have no kubelet process. The configuration file of k3s is not read.
    """

    name = "kubelet-flags"
    summary = "flags that the kubelet was started with"
    command = HostCommand(("sh", "-c", _SCRIPT, "nodefall", *_UNITS))

    def parse(self, stdout: str, exit_code: int) -> dict[str, str]:
        parts = stdout.split("\n\n", 1)
        if exit_code or len(parts) != 2:
            raise ValueError("ps or systemctl did not answer")
        processes, others = parts
        for line in processes.splitlines():
            program, _, arguments = line.strip().partition(" ")
            if program.rpartition("/")[2] == "kubelet":
                return _flags(arguments.split())
        embedded = re.findall(r"--kubelet-arg[= ](\S+)", others)
        files = [line for line in others.splitlines() if line.startswith("--")]
        return _flags([f"--{text.lstrip('-')}" for text in embedded] or files)


def _flags(words: list[str]) -> dict[str, str]:
    flags: dict[str, str] = {}
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            separate = after if after and not after.startswith("-") else "true"
            flags[name] = _expand(value if equals else separate)
    return flags


def _expand(value: str) -> str:
    """Value with the variables that microk8s' start script expands."""
    for name, path in _SNAP.items():
        value = value.replace(name, path)
    return value.strip('"')


FACT = KubeletFlags()
