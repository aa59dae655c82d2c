"""The client certificate that a kubelet of kubeadm's layout starts with, and whether one is mounted over it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from chaos.facts._certificates import CURRENT_FILE
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

EXPIRED_FILE = "/run/nodefall-kubelet-client.pem"  # what certificate-expired mounts over it; a boot removes both
# Only the digest of the file, which has the private key too, leaves the host.
_SCRIPT = (
    'readlink "$1"; stat --dereference --format="mode=%a owner=%u:%g" "$1"; sha256sum "$1"; '
    'openssl x509 -noout -checkend 0 -in "$1"; stat --format="prepared=%n" "$2"; cat /proc/self/mountinfo; '
    'echo processes; pgrep -x kubelet; echo former; cat "$2.pid"; echo file; readlink --canonicalize "$1"'
)
_TITLES = ("processes", "former", "file")
_ESCAPE = re.compile(r"\\([0-7]{3})")  # of mountinfo
_LINE = re.compile(
    r"(?P<target>/var/lib/kubelet/pki/kubelet-client-[0-9-]+\.pem)"
    r"|mode=(?P<mode>[0-7]+) owner=(?P<owner>\d+:\d+)|(?P<digest>[0-9a-f]{64}) .*"
    r"|Certificate will (?P<valid>not )?expire|prepared=(?P<prepared>\S+)"
)


class KubeletClientCertificate(HostFact):
    """Mapping ``{"target": "/var/lib/kubelet/pki/kubelet-client-2026-01-31-10-00-00.pem", "mode": "600",
    "owner": "0:0", "sha256": "9f2c...", "expired": true, "mounted": true, "prepared": true, "former-process": false}``.

    ``target`` of the symbolic link; the rest of what is read through it. ``mounted``: another file is mounted over the
    target. ``prepared``: the file that certificate-expired mounts exists. ``former-process``, only if it is mounted: a
    kubelet still runs that ran when that was done, or one may: which did is not noted yet, or the action was cut off.
    """

    name = "kubelet-client-certificate"
    summary = "client certificate of the kubelet: its file, and whether it has expired"

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:  # noqa: ARG002 - no needs
        return HostCommand(("sh", "-c", _SCRIPT, "nodefall", CURRENT_FILE, EXPIRED_FILE))

    def parse(self, stdout: str, exit_code: int) -> dict[str, str | bool]:
        head, processes, former, file = _sections(stdout)
        found: dict[str, str | None] = {}
        mounts = set()
        for line in head:
            if match := _LINE.fullmatch(line):
                found |= {key: value for key, value in match.groupdict().items() if value}
                found |= {"checked": line} if line.startswith("Certificate will ") else {}
            elif len(fields := line.split()) > 5:
                mounts.add(_ESCAPE.sub(lambda code: chr(int(code[1], 8)), fields[4]))  # proc_pid_mountinfo(5)
        target, digest = found.get("target"), found.get("digest")
        if exit_code or not mounts or not target or not digest or not file:
            raise ValueError(f"{CURRENT_FILE} is no symbolic link to a file of the kubelet's")
        if "checked" not in found:
            raise ValueError(f"openssl is not installed, or does not understand {CURRENT_FILE}")
        is_mounted = file[0] in mounts  # the kernel names it without symbolic links, as of /var/lib/kubelet
        may_run = not former or not set(processes).isdisjoint(former)
        return {
            "target": target,
            "mode": found.get("mode") or "",
            "owner": found.get("owner") or "",
            "sha256": digest,
            "expired": "valid" not in found,
            "mounted": is_mounted,
            "prepared": "prepared" in found,
            **({"former-process": may_run} if is_mounted else {}),
        }


def _sections(stdout: str) -> list[list[str]]:
    """Lines before the titles of the script, and after each. Raises ValueError where one is missing."""
    sections: list[list[str]] = [[]]
    for line in stdout.splitlines():
        if line in _TITLES:
            sections.append([])
        else:
            sections[-1].append(line)
    if len(sections) != len(_TITLES) + 1:
        raise ValueError("the host did not answer")
    return sections


FACT = KubeletClientCertificate()
