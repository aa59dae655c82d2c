"""A machine with a separate kernel for tests: Debian under QEMU, which needs no KVM; booted from its own disk."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from chaos.core.command import PowerState
from chaos.core.ports import ON_OFF_STATE, PowerControl
from tests.kit.machines import PACKAGES, SETUP, SUITE, cache, quoted
from tests.kit.processes import free_port

PROGRAMS = ("qemu-system-x86_64", "mmdebstrap", "mke2fs", "debugfs", "ssh")
_PACKAGES = f"{PACKAGES},linux-image-cloud-amd64,initramfs-tools,zstd,systemd-timesyncd"
# What the kernel needs to find its disk is all that its first file system holds: under emulation every byte counts.
_OWN_KERNEL = """
printf '%s\\n' virtio_pci virtio_blk ext4 > /etc/initramfs-tools/modules
sed -i s/MODULES=most/MODULES=list/ /etc/initramfs-tools/initramfs.conf
update-initramfs -u -k all
printf '[Match]\\nName=e*\\n[Network]\\nDHCP=yes\\n' > /etc/systemd/network/20-all.network
echo '/dev/vda / ext4 defaults 0 1' > /etc/fstab
echo 127.0.0.1 localhost nodefall-vm > /etc/hosts
echo nodefall-vm > /etc/hostname
mkdir -p /var/lib/kubelet
systemctl enable systemd-networkd.service systemd-timesyncd.service
systemctl mask systemd-networkd-wait-online.service e2scrub_reap.service dpkg-db-backup.timer fstrim.timer
ssh-keygen -A
systemd-machine-id-setup
"""
_DISK = "3G"
_MEMORY = 768  # MiB
_APPEND = "root=/dev/vda rw console=ttyS0 quiet panic=10 net.ifnames=0"
BOOT_SECONDS = 240.0


class VmFailed(RuntimeError):
    """A virtual machine did not do what it should; the text is what it said."""


def missing() -> str:
    """Why there can be no virtual machine here, "" if there can."""
    absent = [name for name in PROGRAMS if not shutil.which(name)]
    if absent:
        return f"there is no {' and no '.join(absent)} (qemu-system-x86, mmdebstrap, e2fsprogs)"
    return "" if os.geteuid() == 0 else "only root can make its disk"


def _image() -> Path:
    """The folder with disk, kernel, initrd and host keys; made once and kept, as it takes two minutes."""
    setup = SETUP.replace("rm -f /etc/machine-id /etc/ssh/ssh_host_*", "") + _OWN_KERNEL
    recipe = hashlib.sha256(f"{SUITE} {_PACKAGES} {setup} {_DISK}".encode()).hexdigest()[:12]
    directory = cache() / f"vm-{recipe}"
    if directory.exists():
        return directory
    with tempfile.TemporaryDirectory(dir=directory.parent) as made:
        tree, parts = Path(made) / "tree", Path(made) / "parts"
        parts.mkdir()
        hook = f"--customize-hook=chroot \"$1\" sh -c '{quoted(setup)}'"
        command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={_PACKAGES}", hook, SUITE, str(tree)]
        subprocess.run(command, check=True, timeout=900)
        for name in ("vmlinuz", "initrd.img"):
            (found,) = (tree / "boot").glob(f"{name}-*")
            shutil.copy(found, parts / name)
        shutil.copy(tree / "etc/ssh/ssh_host_ed25519_key.pub", parts)
        disk = parts / "disk"
        subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", str(tree), str(disk), _DISK], check=True, timeout=300)
        parts.rename(directory)
    return directory


@dataclass
class VirtualMachine:
    """It has a power button (:meth:`start`, :meth:`kill`) and goes off by itself when its kernel powers it off."""

    name: str
    folder: Path
    image: Path
    port: int
    process: subprocess.Popen[bytes] | None = None
    _lock: Lock = field(default_factory=Lock)

    @property
    def identity(self) -> Path:
        return self.folder / "id_ed25519"

    @property
    def addresses(self) -> tuple[str, str]:
        """The second is none: QEMU's own network forwards IPv4 only."""
        return "127.0.0.1", ""

    @property
    def host_keys(self) -> list[str]:
        return (self.image / "ssh_host_ed25519_key.pub").read_text().splitlines()

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def console(self) -> str:
        """The end of what it wrote there."""
        return (self.folder / "console").read_text(errors="replace")[-2000:]

    def power(self) -> PowerControl:
        return _Button(self)

    def press(self) -> None:
        """Power on; nothing if it is on."""
        with self._lock:
            if not self.running:
                self.process = subprocess.Popen(self._command(), stdin=subprocess.DEVNULL)

    def start(self) -> None:
        """Power on, and wait until it has booted."""
        self.press()
        self.await_boot()

    def kill(self) -> None:
        """Power off at once; what it has written is on its disk."""
        with self._lock:
            if self.process is not None:
                self.process.kill()
                self.process.wait(10)

    def await_boot(self) -> None:
        end = time.monotonic() + BOOT_SECONDS
        while self.run("systemctl is-system-running; systemd-inhibit --list --no-legend", False).count("kubelet") < 1:
            if time.monotonic() > end or not self.running:
                raise VmFailed(f"{self.name} does not boot: {self.console}")
            time.sleep(1.0)

    def run(self, script: str, check: bool = True, timeout: float = 120.0) -> str:
        """A shell script as root, by SSH. Raises VmFailed."""
        options = (f"UserKnownHostsFile={self.folder / 'known'}", "ConnectTimeout=25", "BatchMode=yes")
        argv = ["ssh", "-q", *(f"-o{option}" for option in options), f"-i{self.identity}", f"-p{self.port}"]
        argv += ["chaos@127.0.0.1", f"sudo sh -c '{quoted(script)}'"]
        try:
            done = subprocess.run(argv, capture_output=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            if check:
                raise
            return ""
        if check and done.returncode:
            raise VmFailed(f"{self.name}: {script}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout.decode(errors="replace").strip()

    def prepare(self) -> None:
        """A dedicated disk, with our key on it."""
        subprocess.run(["cp", "--sparse=always", str(self.image / "disk"), str(self._disk)], check=True, timeout=120)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.identity)], check=True)
        wanted = f"write {self.identity}.pub /home/chaos/.ssh/authorized_keys"
        subprocess.run(["debugfs", "-w", "-R", wanted, str(self._disk)], check=True, capture_output=True)
        known = "".join(f"[127.0.0.1]:{self.port} {key}\n" for key in self.host_keys)
        (self.folder / "known").write_text(known)

    @property
    def _disk(self) -> Path:
        return self.folder / "disk"

    def _command(self) -> list[str]:
        drive = f"file={self._disk},format=raw,if=virtio,cache=unsafe"
        network = f"user,model=virtio-net-pci,hostfwd=tcp:127.0.0.1:{self.port}-:22"
        return [
            *("qemu-system-x86_64", "-machine", "q35,accel=tcg", "-cpu", "max", "-m", str(_MEMORY)),
            *("-display", "none", "-monitor", "none", "-serial", f"file:{self.folder / 'console'}"),
            *("-kernel", str(self.image / "vmlinuz"), "-initrd", str(self.image / "initrd.img"), "-append", _APPEND),
            *("-drive", drive, "-nic", network, "-rtc", "base=utc,clock=host"),
        ]


@dataclass(frozen=True)
class _Button:
    """Implements ``chaos.core.ports.PowerControl``."""

    machine: VirtualMachine
    capabilities = ON_OFF_STATE

    def state(self) -> PowerState:
        return PowerState.ON if self.machine.running else PowerState.OFF

    def on(self) -> None:
        self.machine.press()

    def off(self) -> None:
        self.machine.kill()


@contextmanager
def virtual_machine(folder: Path) -> Iterator[VirtualMachine]:
    """One that has booted; gone afterwards."""
    machine = VirtualMachine("nodefall-vm", folder, _image(), free_port())
    machine.prepare()
    try:
        machine.start()
        yield machine
    finally:
        machine.kill()
