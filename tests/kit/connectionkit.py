"""Links to hosts for the contract of transports: a session, and a function that cuts its connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from chaos.core.clock import SystemClock
from chaos.core.ports import Session
from chaos.machines.pod.helpers import HelperPods
from chaos.machines.pod.manifest import PodOptions
from chaos.machines.pod.session import HelperSlot, PodSession
from chaos.machines.transports.docker import Container, DockerSession
from chaos.machines.transports.ssh import open_session
from tests.kit.exec_server import exec_server
from tests.kit.machines import Docker
from tests.kit.openssh import openssh_session
from tests.kit.sshd import serving


@dataclass(frozen=True)
class HostLink:
    """``cut`` breaks the connection; a new one can be opened. ``folder`` is on the host."""

    session: Session
    cut: Callable[[], None]
    folder: str


@contextmanager
def ssh_link(keys: Path, folder: Path) -> Iterator[HostLink]:
    with serving(keys) as server:
        session = open_session(server.settings())
        yield HostLink(session, server.cut, str(folder))
        session.close()


@contextmanager
def openssh_link(keys: Path, folder: Path) -> Iterator[HostLink]:
    with serving(keys) as server, closing(openssh_session(server)) as session:
        yield HostLink(session, server.cut, str(folder))


@contextmanager
def pod_link(folder: Path, *protocols: str) -> Iterator[HostLink]:
    """The programs of a pod are those of this machine; API servers of other versions speak other ``protocols``."""
    with exec_server(*protocols) as server, closing(SystemClock()) as clock, closing(server.client()) as api:
        pods = HelperPods(api, clock, "kube-system")
        session = PodSession(HelperSlot("worker-1", pods, PodOptions()), api)
        yield HostLink(session, server.cut, str(folder))
        session.close()
        assert pods.remove() == []
        assert server.pods == {}


@contextmanager
def docker_link(docker: Docker, name: str) -> Iterator[HostLink]:
    """The connection is cut by killing the container."""

    def cut() -> None:
        docker("kill", name)
        docker("start", name)

    docker("exec", name, "rm", "-rf", "/var/tmp/line")
    docker("exec", name, "mkdir", "/var/tmp/line")
    session = DockerSession(Container(name, "docker"))
    yield HostLink(session, cut, "/var/tmp/line")
    session.close()
