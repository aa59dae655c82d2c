"""What a host is recognized by after a boot, from the lines of real hosts."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.identity import REPORT, host_key, stable_id

ID, UUID, CONTAINER = "b81c4c4544004d4c108058c4c04f4d4e", "4C4C4544-0033-3310-8044-B7C04F443232", "3f2a" * 16
DOCKER = f"1290 1280 254:1 /var/lib/docker/containers/{CONTAINER}/hostname /etc/hostname rw,relatime - ext4 /dev/vda rw"
OWN_DISK = f"1290 1280 254:1 /containers/{CONTAINER}/hostname /etc/hostname rw,relatime - ext4 /dev/vdb rw"
PODMAN = (
    f"812 790 0:24 /containers/storage/overlay-containers/{CONTAINER}/userdata/hostname /etc/hostname "
    "rw,nosuid,nodev - tmpfs tmpfs rw,mode=755"
)
NERDCTL = f"812 790 0:24 /nerdctl/1935db59/containers/default/{CONTAINER}/hostname /etc/hostname rw - ext4 /dev/vda rw"
SANDBOX = f"812 790 0:24 /io.containerd.grpc.v1.cri/sandboxes/{CONTAINER}/hostname /etc/hostname rw - ext4 /dev/vda rw"
TRANSIENT = "41 25 0:23 /machine-id /etc/machine-id ro,nosuid - tmpfs tmpfs rw,mode=755"
ETC_IN_MEMORY = "38 25 0:31 / /etc rw - tmpfs tmpfs rw"
LAYERED = "38 25 0:31 / /etc rw - overlay overlay rw,lowerdir=/sysroot/etc,upperdir=/run/etc,workdir=/run/work"
ROOT_LAYERED = "22 1 0:31 / / rw - overlay overlay rw,lowerdir=/a,upperdir=/b"
ROOT_IN_MEMORY = "1 0 0:2 / / rw - rootfs none rw"
ROOT = "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw"
BOUND = "41 25 254:3 /etc/machine-id /etc/machine-id rw - ext4 /dev/vda3 rw"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((ID, UUID), f"machine {ID}"),
        ((ID,), f"machine {ID}"),  # the firmware's is for root alone
        ((ID, "docker", UUID, DOCKER), f"container {CONTAINER}"),  # kind
        ((ID, UUID, DOCKER), f"container {CONTAINER}"),  # systemd does not know that it is in a container
        ((ID, "docker", OWN_DISK), f"container {CONTAINER}"),
        ((ID, "podman", PODMAN), f"container {CONTAINER}"),
        ((ID, "docker", NERDCTL), f"container {CONTAINER}"),
        ((ID, "docker", UUID), ""),  # whose ID cannot be read: nothing is known to last
        ((ID, "kubernetes", SANDBOX, UUID), ""),  # a sandbox is made again
        ((ID, "lxc", UUID), f"machine {ID}"),
        ((ID, "systemd-nspawn"), f"machine {ID}"),
        ((ID, UUID, TRANSIENT), f"system {UUID.lower()}"),
        ((ID, TRANSIENT), ""),
        ((ID, UUID, BOUND), f"machine {ID}"),
        ((ID, UUID, ROOT), f"machine {ID}"),
        ((ID, UUID, ROOT, ETC_IN_MEMORY), f"system {UUID.lower()}"),  # booted over the network
        ((ID, UUID, ROOT, LAYERED), f"system {UUID.lower()}"),  # the upper layer may be in memory
        ((ID, UUID, ROOT_LAYERED), f"system {UUID.lower()}"),
        ((ID, ROOT_IN_MEMORY), ""),
        ((ID, ROOT, LAYERED, BOUND), f"machine {ID}"),
        ((ID, "lxc", ROOT_LAYERED), f"machine {ID}"),
        ((f"{ID.upper()}  ", UUID), f"machine {ID}"),
        ((ID, "1 2 3:4 /m\x0bdocker\x0by /etc/hostname rw - ext4 /dev/vda1 rw"), f"machine {ID}"),
        (("uninitialized", UUID), f"system {UUID.lower()}"),
        (("0" * 32, UUID), f"system {UUID.lower()}"),
        (("uninitialized",), ""),
        ((ID, "00000000-0000-0000-0000-000000000000"), f"machine {ID}"),
        ((), ""),
    ],
)
def test_stable_id(lines: tuple[str, ...], expected: str) -> None:
    assert stable_id("".join(f"{line}\n" for line in lines)) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((ID, UUID), f"machine {ID}"),
        ((ID, "docker", DOCKER), f"container {CONTAINER}"),
        ((ID, "docker"), f"machine {ID}"),  # of this boot: better than nothing
        ((ID, TRANSIENT), f"machine {ID}"),
        ((ID, UUID, TRANSIENT), f"system {UUID.lower()}"),
        (("uninitialized", "docker"), ""),
        ((), ""),
    ],
)
def test_key_of_a_connection_without_one(lines: tuple[str, ...], expected: str) -> None:
    assert host_key("\n".join(lines)) == expected


@pytest.mark.parametrize(
    ("known", "key"), [(f"machine {ID}", f"machine {ID}"), ("machine x", f"container {CONTAINER}")]
)
def test_a_machine_id_of_before_counts_as_long_as_the_host_has_it(known: str, key: str) -> None:
    """A run that 0.2.0 began knows a container by its machine ID."""
    assert host_key(f"{ID}\ndocker\n{DOCKER}\n", known) == key


@given(st.text(max_size=300))
def test_any_text_is_no_error(report: str) -> None:
    assert stable_id(report) == "" or " " in stable_id(report)


def test_a_real_grep_reports_what_this_machine_is() -> None:
    grep = shutil.which("grep")
    assert grep
    done = subprocess.run([grep, *REPORT[1:]], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode in (0, 1, 2)
    assert done.stderr == ""
    with open("/etc/machine-id", encoding="ascii") as file:
        assert file.read().strip() in done.stdout.splitlines()
