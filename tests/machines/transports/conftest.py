from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.cluster.exec_stream import V4, V5
from chaos.machines.transports.ssh import SshSession, open_session
from tests.kit.connectionkit import HostLink, docker_link, openssh_link, pod_link, ssh_link
from tests.kit.machines import Docker, docker_daemon, image, missing
from tests.kit.sshd import SSHD, Server, serving


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sshd")


@pytest.fixture
def server(keys: Path) -> Iterator[Server]:
    if not SSHD.exists():
        pytest.skip("openssh-server is not installed")
    with serving(keys) as found:
        yield found


@pytest.fixture
def session(server: Server) -> Iterator[SshSession]:
    found = open_session(server.settings())
    yield found
    found.close()


@pytest.fixture
def folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where control sockets are: nothing may be left there."""
    tmp_path_factory.getbasetemp()  # beside it
    folder = Path(tempfile.mkdtemp(prefix="m", dir="/tmp"))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []
    folder.rmdir()


@pytest.fixture(scope="session")
def docker() -> Iterator[Docker]:
    if why := missing():
        pytest.skip(f"no containers: {why}")
    with docker_daemon() as found:
        yield found


@pytest.fixture(scope="session")
def box(docker: Docker) -> Iterator[str]:
    """A container with a shell and little else."""
    name = f"nodefall-box-{os.getpid()}"
    docker("run", "--detach", "--name", name, "--network", "none", image(docker), "sleep", "infinity")
    yield name
    docker("rm", "--force", name)


SSH = pytest.param("ssh", marks=pytest.mark.slow)  # test_ssh_session.py meets a real sshd in every run
DOCKER = pytest.param("docker", marks=[pytest.mark.root, pytest.mark.slow])


OPENSSH = pytest.param("openssh", marks=pytest.mark.slow)


@pytest.fixture(params=[SSH, OPENSSH, "pod", "pod-v4", DOCKER])
def link(request: pytest.FixtureRequest, keys: Path, tmp_path: Path) -> Iterator[HostLink]:
    if "ssh" in request.param and not SSHD.exists():
        pytest.skip("openssh-server is not installed")
    if request.param == "ssh":
        with ssh_link(keys, tmp_path) as found:
            yield found
    elif request.param == "openssh":
        with openssh_link(keys, tmp_path) as found:
            yield found
    elif request.param.startswith("pod"):
        with pod_link(tmp_path, *([V4] if request.param == "pod-v4" else [V5, V4])) as found:
            yield found
    else:
        with docker_link(request.getfixturevalue("docker"), request.getfixturevalue("box")) as found:
            yield found
