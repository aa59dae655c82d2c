"""The ID by which a host is recognized after a boot: of its container, of its installation, or of its firmware. Pure.

``/etc/machine-id`` is not always such an ID. The entry point of kind's nodes writes a new one at each start of the
container, and where the file is in memory, each boot has another one (machine-id(5)).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from chaos.core.identity import is_uuid

MACHINE = "machine "  # prefix of an ID that is the machine ID of the installation
_FILES = ("/etc/machine-id", "/run/systemd/container", "/sys/class/dmi/id/product_uuid", "/proc/self/mountinfo")
_LINES = (
    "^[0-9a-fA-F]{32} *$",
    "^[0-9a-fA-F-]{36}$",
    "^[a-z][a-z-]*$",
    "^[0-9]+ [0-9]+ [0-9:]+ [^ ]+ (/|/etc|/etc/machine-id|/etc/hostname) .*$",
)
# Prints one line for each of those that the host has: machine ID, firmware's UUID (root only), manager of the
# container, and what is mounted at these paths. Exit code 2: some files are missing.
REPORT = ("grep", "-hsoE", "|".join(_LINES), *_FILES)
# docker mounts /var/lib/docker/containers/ID/hostname, podman overlay-containers/ID/userdata/hostname of its storage.
_CONTAINER = re.compile(r"/(?:[a-z]+-)?containers/(?:[^/ ]+/)?([0-9a-f]{64})/(?:userdata/)?hostname$")
# Containers with a root file system of their own, in which systemd keeps the machine ID as on any machine.
_LASTING = ("lxc", "lxc-libvirt", "systemd-nspawn")
_UNINITIALIZED = "uninitialized"  # in /etc/machine-id before the first boot
_IN_MEMORY = ("tmpfs", "ramfs", "rootfs")
_LAYERED = ("overlay", "aufs")  # whose upper layer may be in memory
_PATHS = ("/etc/machine-id", "/etc", "/")  # the first of them that is a mount point has the file


def stable_id(report: str) -> str:
    """``container ID``, ``machine ID`` or ``system UUID`` from the output of :data:`REPORT`.

    "" if nothing on the host is known to be the same after its next boot.
    """
    words, mounts = _parse(report)
    if container := _container_id(mounts):
        return f"container {container}"
    managers = [word for word in words if re.fullmatch("[a-z][a-z-]*", word) and not _is_machine_id(word)]
    is_lasting = any(manager in _LASTING for manager in managers)
    if not is_lasting and any(manager != _UNINITIALIZED for manager in managers):
        return ""
    ids = machine_ids(report)
    if ids and _is_on_disk(mounts, may_be_layered=is_lasting):
        return f"{MACHINE}{ids[0]}"
    return next((f"system {word.lower()}" for word in words if len(word) == 36 and is_uuid(word)), "")


def machine_ids(report: str) -> list[str]:
    """The machine ID of the boot, in lower case; none if the host has none."""
    return [word.lower() for word in _parse(report)[0] if _is_machine_id(word)]


def host_key(report: str, known: str = "") -> str:
    """By what a connection that presents no key recognizes its host; "" if there is nothing.

    That is the stable ID, and without one the machine ID of the boot: another one is refused then, though it may be
    the same host after a boot. ``known`` is the key of before: a machine ID counts as long as the host has it.
    """
    keys = [f"{MACHINE}{found}" for found in machine_ids(report)]
    if known in keys:
        return known
    return stable_id(report) or next(iter(keys), "")


def _parse(report: str) -> tuple[list[str], list[list[str]]]:
    """The words, and the fields of mounts (proc_pid_mountinfo(5)), whose paths have no spaces."""
    lines = [line.strip(" \r") for line in report.split("\n")]
    return [line for line in lines if " " not in line], [fields for line in lines if len(fields := line.split(" ")) > 6]


def _is_machine_id(word: str) -> bool:
    return bool(re.fullmatch("[0-9a-fA-F]{32}", word)) and is_uuid(word)


def _container_id(mounts: Iterable[Sequence[str]]) -> str:
    """The ID in the path of what an engine mounts over /etc/hostname, "" if none did."""
    found = (_CONTAINER.search(fields[3]) for fields in mounts if fields[4] == "/etc/hostname")
    return next((match[1] for match in found if match), "")


def _is_on_disk(mounts: Sequence[Sequence[str]], *, may_be_layered: bool) -> bool:
    """Whether the file system that has /etc/machine-id outlasts a boot, as far as is known."""
    for path in _PATHS:
        kinds = [fields[fields.index("-") + 1] for fields in mounts if fields[4] == path and "-" in fields[5:-1]]
        if kinds:
            return kinds[-1] not in _IN_MEMORY and (may_be_layered or kinds[-1] not in _LAYERED)
    return True
