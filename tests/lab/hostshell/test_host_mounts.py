"""Mounts of a simulated host, read by the fact ``mount``."""

from __future__ import annotations

import pytest

from chaos.faults.readings.disks import mount
from tests.kit.lab_host import Host

READ_ONLY = "mount -o remount,ro,nosuid,relatime /dev/vdb1 /var/lib/data"


def read(host: Host, path: str = "/var/lib/data") -> dict[str, str | bool]:
    fact = mount.bind({"path": path})
    code, out, _ = host.run(str(fact.command_for({})))
    found: dict[str, str | bool] = fact.parse(out, code)
    return found


def test_a_data_disk_is_read_only_until_it_is_remounted() -> None:
    host = Host()
    before = read(host)
    assert before == {
        "source": "/dev/vdb1",
        "type": "ext4",
        "options": "rw,nosuid,relatime",
        "whole": True,
        "with-root": False,
        "writable": True,
    }
    assert host.run(READ_ONLY, root=False)[0] == 1
    assert read(host) == before
    assert host.run(READ_ONLY) == (0, "", "")
    assert read(host) == before | {"options": "ro,nosuid,relatime", "writable": False}
    assert host.run(READ_ONLY.replace("ro,", "rw,")) == (0, "", "")
    assert read(host) == before
    assert read(host, "/var/lib") == {}


@pytest.mark.parametrize("command", [READ_ONLY.replace("vdb1", "vdb2"), "mount -o remount,ro /dev/vda1 /"])
def test_a_remount_that_fails_changes_nothing(command: str) -> None:
    host = Host()
    assert host.run(command)[0] == 32
    assert read(host)["writable"] is True
