from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.machines.winrm.session import WinRmSession
from tests.kit.tls_authority import Authority
from tests.kit.wsman_server import WsManServer, serving_wsman, sha256_of


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "authority")


@pytest.fixture
def service(authority: Authority) -> Iterator[WsManServer]:
    context = authority.server()
    with serving_wsman(context, authority.file, sha256_of(authority.folder / "server.pem")) as found:
        yield found


@pytest.fixture
def session(service: WsManServer) -> Iterator[WinRmSession]:
    found = WinRmSession(service.endpoint())
    yield found
    found.close()
