"""What both transports are tested on: a session to a host, and a way to cut it."""

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
class Line:
    """``cut`` takes the line away while a command runs, and lets it be opened again; ``folder`` is on the host."""

    session: Session
    cut: Callable[[], None]
    folder: str


@contextmanager
def ssh_line(keys: Path, folder: Path) -> Iterator[Line]:
    with serving(keys) as server:
        session = open_session(server.settings())
        yield Line(session, server.cut, str(folder))
        session.close()


@contextmanager
def docker_line(docker: Docker, name: str) -> Iterator[Line]:
    """Its line is cut by killing the container."""

    def cut() -> None:
        docker("kill", name)
        docker("start", name)

    docker("exec", name, "rm", "-rf", "/var/tmp/line")
    docker("exec", name, "mkdir", "/var/tmp/line")
    session = DockerSession(Container(name, "docker"))
    yield Line(session, cut, "/var/tmp/line")
    session.close()
