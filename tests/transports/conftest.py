from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sshd import SSHD, Server, serving

from chaos.transports.ssh import SshSession, open_session


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
