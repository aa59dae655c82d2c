"""Links to hosts for the contract of transports: a session, and a function that cuts its connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from chaos.hosts.transports.containers import Container
from chaos.hosts.transports.docker import DockerSession
from chaos.hosts.transports.ssh import open_session
from chaos.model.ports import Session
from tests.kit.machines import Docker
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
