"""Real systemd machines for tests: containers of a Debian image made from Debian's packages, on a dual-stack network.

Docker is used where it answers; where it does not, root starts a separate daemon and ends it afterwards.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from chaos.core.ports import PowerControl
from chaos.machines.power.docker import DockerControl
from chaos.machines.transports.docker import Container

PACKAGES = (
    "systemd,systemd-sysv,dbus,openssh-server,sudo,nftables,iptables,iproute2,procps,curl,socat,iputils-ping,"
    "netcat-openbsd,openssl"
)
_WITH_ETCD = f"{PACKAGES},etcd-server,etcd-client"
SUITE = "bookworm"
# Not --privileged: these suffice for systemd, a firewall and a reboot, and more machines can grant them.
CAPABILITIES = ("SYS_ADMIN", "NET_ADMIN", "NET_RAW", "SYS_BOOT", "SYS_PTRACE")
KUBELET = """[Unit]
Description=stands in for the kubelet: holds its lock, and nothing else
After=dbus.service systemd-logind.service
[Service]
ExecStart=/usr/local/bin/kubelet --what=shutdown --who=kubelet --mode=delay \
"--why=Kubelet needs time to handle node shutdown" /usr/bin/sleep infinity
Restart=always
RestartSec=1
[Install]
WantedBy=multi-user.target
"""
RUNTIME = """[Unit]
Description=stands in for the container runtime
[Service]
ExecStart=/usr/bin/sleep infinity
[Install]
WantedBy=multi-user.target
"""
SETUP = f"""set -e
useradd --create-home --shell /bin/bash chaos
echo 'chaos ALL=(root) NOPASSWD: ALL' > /etc/sudoers.d/chaos
install -d -m 700 -o chaos -g chaos /home/chaos/.ssh
cat > /etc/systemd/system/kubelet.service <<'END'
{KUBELET}END
cat > /etc/systemd/system/containerd.service <<'END'
{RUNTIME}END
ln -s /usr/bin/systemd-inhibit /usr/local/bin/kubelet
systemctl enable kubelet.service containerd.service ssh.service
systemctl mask getty-static.service console-getty.service systemd-resolved.service
rm -f /etc/machine-id /etc/ssh/ssh_host_*
"""
_SETUP = f"{SETUP}systemctl disable etcd.service\n"  # a member starts when a test wants it
# Each machine has separate keys and a separate identity, as clones of an image must.
_FIRST_BOOT = "ssh-keygen -A; systemd-machine-id-setup; exec /sbin/init"
BOOT_SECONDS = 90.0  # on a machine with much else to do
# A node forwards for its pods; Docker takes IPv6 away from interfaces that are not its own.
_SYSCTLS = ("ipv4.conf.all.forwarding=1", "ipv6.conf.all.forwarding=1", "ipv6.conf.default.disable_ipv6=0")
_DAEMON_FILES = ("data-root", "exec-root", "pidfile")


class DockerFailed(RuntimeError):
    """A docker command did not do what it should; the text is what it said."""


@dataclass(frozen=True)
class Docker:
    """``host`` is DOCKER_HOST."""

    host: str

    def __call__(self, *arguments: str, stdin: bytes | None = None, check: bool = True, timeout: float = 120) -> str:
        done = subprocess.run(
            ["docker", *arguments],
            input=stdin,
            capture_output=True,
            timeout=timeout,
            env={**os.environ, "DOCKER_HOST": self.host} if self.host else None,
            check=False,
        )
        if check and done.returncode:
            raise DockerFailed(f"docker {' '.join(arguments)}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout.decode(errors="replace").strip()

    @property
    def answers(self) -> bool:
        try:
            return bool(self("version", "--format", "{{.Server.Version}}", timeout=20))
        except (DockerFailed, OSError, subprocess.TimeoutExpired):
            return False


def missing() -> str:
    """Why there can be no machines here, "" if there can."""
    if not shutil.which("docker"):
        return "there is no docker (package docker.io)"
    if Docker("").answers:
        return ""
    if os.geteuid() != 0:
        return "Docker does not answer, and only root could start a daemon"
    absent = [name for name in ("dockerd", "mmdebstrap") if not shutil.which(name)]
    return f"Docker does not answer, and there is no {' and no '.join(absent)}" if absent else ""


@contextmanager
def docker_daemon() -> Iterator[Docker]:
    """The Docker that answers, or one started for this."""
    if Docker("").answers:
        yield Docker("")
        return
    with ExitStack() as stack:
        own = _start_daemon(stack)
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("DOCKER_HOST", own.host)  # for nodefall's own docker commands
        yield own


def _start_daemon(stack: ExitStack) -> Docker:
    """One that just ended may still hold the bridge: then the next one does not come up, and another try does."""
    said = ""
    for _ in range(3):
        with ExitStack() as trying:
            folder = trying.enter_context(
                tempfile.TemporaryDirectory(prefix="nodefall-docker-", ignore_cleanup_errors=True)
            )
            own, log = Docker(f"unix://{folder}/docker.sock"), Path(folder) / "log"
            files = (f"--{key}={folder}/{key}" for key in _DAEMON_FILES)
            with log.open("wb") as out:
                daemon = subprocess.Popen(["dockerd", "--host", own.host, *files], stdout=out, stderr=out)
            trying.callback(daemon.wait, 60)
            trying.callback(daemon.terminate)
            try:
                _until(lambda docker=own: docker.answers, 20, "dockerd to answer")
            except DockerFailed:
                said = log.read_text(errors="replace")[-500:]
                continue
            stack.push(trying.pop_all())
            return own
    raise DockerFailed(f"dockerd does not come up: {said}")


def _until(holds: object, seconds: float, what: str) -> None:
    """Wait until ``holds()``. Raises DockerFailed."""
    assert callable(holds)
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise DockerFailed(f"waited {seconds:g} s for {what}")
        time.sleep(0.1)


def _root_filesystem() -> Path:
    """The image's tar; made once and image, as it takes a minute."""
    recipe = hashlib.sha256(f"{SUITE} {_WITH_ETCD} {_SETUP}".encode()).hexdigest()[:12]
    image = cache() / f"host-{recipe}.tar"
    if not image.exists():
        made = image.with_suffix(f".{os.getpid()}.tar")
        hook = f"--customize-hook=chroot \"$1\" sh -c '{quoted(_SETUP)}'"
        subprocess.run(
            ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={_WITH_ETCD}", hook, SUITE, str(made)],
            check=True,
            timeout=600,
        )
        made.rename(image)
    return image


def cache() -> Path:
    """The folder in which images are kept."""
    folder = Path(os.environ.get("NODEFALL_TEST_CACHE", Path.home() / ".cache" / "nodefall-tests"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def quoted(script: str) -> str:
    return script.replace("'", "'\\''")


def image(docker: Docker) -> str:
    """The name of the machines' image, which is there now."""
    root = _root_filesystem()
    name = root.stem.replace("host-", "nodefall-test-host:")
    if not docker("images", "--quiet", name):
        docker("import", str(root), name, timeout=300)
    return name


@dataclass(frozen=True)
class RealHost:
    """One machine. ``identity`` is the private key that user ``chaos`` may log in with."""

    docker: Docker
    name: str
    identity: Path

    def run(self, script: str, check: bool = True) -> str:
        """A shell script as root, past everything that a test may have cut off."""
        return self.docker("exec", "-i", self.name, "sh", "-c", script, check=check)

    @property
    def running(self) -> bool:
        return self.docker("inspect", "--format", "{{.State.Running}}", self.name) == "true"

    @property
    def port(self) -> int:
        """Of its sshd."""
        return 22

    def power(self) -> PowerControl:
        return DockerControl(Container(self.name, "docker"))

    @property
    def addresses(self) -> tuple[str, str]:
        """IPv4 and IPv6; they may change with a start."""
        networks = json.loads(self.docker("inspect", "--format", "{{json .NetworkSettings.Networks}}", self.name))
        (network,) = networks.values()
        return network["IPAddress"], network["GlobalIPv6Address"]

    @property
    def host_keys(self) -> list[str]:
        return self.run("cat /etc/ssh/ssh_host_*_key.pub").splitlines()

    def start(self) -> None:
        """Power on, and wait until it has booted."""
        self.docker("start", self.name)
        self.await_boot()

    def kill(self) -> None:
        """Power off at once."""
        self.docker("kill", self.name)

    def await_boot(self) -> None:
        _until(self._booted, BOOT_SECONDS, f"{self.name} to boot")

    def _booted(self) -> bool:
        state = self.docker("exec", self.name, "systemctl", "is-system-running", check=False)
        held = self.docker("exec", self.name, "systemd-inhibit", "--list", "--no-legend", check=False)
        return state in ("running", "degraded") and "kubelet" in held

    def await_end(self, seconds: float) -> None:
        _until(lambda: not self.running, seconds, f"{self.name} to be off")


@contextmanager
def machines(count: int, folder: Path) -> Iterator[list[RealHost]]:
    """``count`` machines that have booted, and all log in with one key; gone afterwards."""
    identity = folder / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(identity)], check=True, timeout=30)
    mark = f"nodefall-test-{os.getpid()}"
    with ExitStack() as stack:
        docker = stack.enter_context(docker_daemon())
        _create_network(docker, mark)
        stack.callback(docker, "network", "rm", mark, check=False)
        hosts = [RealHost(docker, f"{mark}-{number + 1}", identity) for number in range(count)]
        for host in hosts:
            stack.callback(docker, "rm", "--force", "--volumes", host.name, check=False)
            _boot(docker, host, mark)
        key = identity.with_suffix(".pub").read_text()
        for host in hosts:
            host.await_boot()
            docker("exec", "-i", host.name, "sh", "-c", "cat > /home/chaos/.ssh/authorized_keys", stdin=key.encode())
        yield hosts


def _create_network(docker: Docker, name: str) -> None:
    """Dual-stack, with subnets that Docker does not choose.

    A daemon that was killed leaves its rules behind. One that masquerades the subnet that the next daemon chooses
    would make all IPv4 traffic come from the gateway, which a partition spares.
    """
    number = os.getpid()
    subnets = (f"10.{128 + (number >> 8 & 0x7F)}.{number & 0xFF}.0/24", f"fd00:91:{number & 0xFFFF:x}::/64")
    docker("network", "create", "--ipv6", *(f"--subnet={subnet}" for subnet in subnets), name)


def _boot(docker: Docker, host: RealHost, network: str) -> None:
    options = ["--detach", "--name", host.name, "--hostname", host.name, "--network", network, "--cgroupns=private"]
    options += ["--security-opt=seccomp=unconfined", "--security-opt=apparmor=unconfined"]
    options += [f"--cap-add={name}" for name in CAPABILITIES]
    options += [f"--sysctl=net.{name}" for name in _SYSCTLS]
    options += [f"--tmpfs={path}" for path in ("/run", "/run/lock", "/tmp")]
    docker("run", *options, "--stop-signal=SIGRTMIN+3", image(docker), "sh", "-c", _FIRST_BOOT)
