"""The ID by which a host is recognized after a boot: of its container, of its installation, or of its firmware. Pure.

``/etc/machine-id`` is not always such an ID. The entry point of kind's nodes writes a new one at each start of the
container, and systemd mounts a transient one where the root file system is read-only or the file is empty
(machine-id(5)).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from chaos.model.identity import is_uuid

MACHINE = "machine "  # prefix of an ID that is the machine ID of the installation
_FILES = ("/etc/machine-id", "/run/systemd/container", "/sys/class/dmi/id/product_uuid", "/proc/self/mountinfo")
_LINES = (
    "^[0-9a-f]{32}$",
    "^[0-9a-fA-F-]{36}$",
    "^[a-z][a-z-]*$",
    "^[0-9]+ .* /etc/machine-id .*$",
    "^[0-9]+ .* /etc/hostname .*$",
)
# Prints one line for each of those that the host has: machine ID, firmware's UUID (root only), manager of the
# container, and what is mounted over /etc/machine-id and /etc/hostname. Exit code 2: some files are missing.
REPORT = ("grep", "-hsoE", "|".join(_LINES), *_FILES)
# docker mounts /var/lib/docker/containers/ID/hostname, podman overlay-containers/ID/userdata/hostname of its storage.
_CONTAINER = re.compile(r"/(?:[a-z]+-)?containers/(?:[^/ ]+/)?([0-9a-f]{64})/(?:userdata/)?hostname$")
# Containers with a root file system of their own, in which systemd keeps the machine ID as on any machine.
_LASTING = ("lxc", "lxc-libvirt", "systemd-nspawn")
_UNINITIALIZED = "uninitialized"  # in /etc/machine-id before the first boot


def stable_id(report: str) -> str:
    """``container ID``, ``machine ID`` or ``system UUID`` from the output of :data:`REPORT`.

    "" if nothing on the host is known to be the same after its next boot.
    """
    mounts = [fields for line in report.splitlines() if len(fields := line.split()) > 6]  # proc_pid_mountinfo(5)
    words = _words(report)
    if container := _container_id(mounts):
        return f"container {container}"
    ids = _machine_ids(words)
    managers = [word for word in words if re.fullmatch("[a-z][a-z-]*", word) and word not in ids]
    if any(manager not in (*_LASTING, _UNINITIALIZED) for manager in managers):
        return ""
    if ids and not _has_transient_id(mounts):
        return f"{MACHINE}{ids[0]}"
    return next((f"system {word.lower()}" for word in words if len(word) == 36 and is_uuid(word)), "")


def host_key(report: str) -> str:
    """By what a connection that presents no key of its own recognizes its host; "" if there is nothing.

    That is the stable ID, and without one the machine ID of the boot: another one is refused then, though it may be
    the same host after a boot.
    """
    return stable_id(report) or next((f"{MACHINE}{id_}" for id_ in _machine_ids(_words(report))), "")


def _words(report: str) -> list[str]:
    return [line.strip() for line in report.splitlines() if " " not in line.strip()]


def _machine_ids(words: Iterable[str]) -> list[str]:
    return [word for word in words if re.fullmatch("[0-9a-f]{32}", word) and is_uuid(word)]


def _container_id(mounts: Iterable[list[str]]) -> str:
    """The ID in the path of what an engine mounts over /etc/hostname, "" if none did."""
    found = (_CONTAINER.search(fields[3]) for fields in mounts if fields[4] == "/etc/hostname")
    return next((match[1] for match in found if match), "")


def _has_transient_id(mounts: Iterable[list[str]]) -> bool:
    """Whether the machine ID is in memory, mounted over the file."""
    return any(fields[4] == "/etc/machine-id" and fields[-3:-2] == ["tmpfs"] for fields in mounts)
