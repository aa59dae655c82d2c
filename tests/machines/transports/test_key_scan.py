"""The key that a real sshd presents, without a login, and how it compares with known_hosts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.app.init import known_hosts_text, read_host_keys
from chaos.core.errors import Unreachable
from chaos.core.inventory import Inventory
from chaos.machines.sessions.settings import LocalUser
from chaos.machines.transports.key_scan import scan
from tests.kit.sshd import SSHD, Server, keygen, public, serving

pytestmark = pytest.mark.skipif(not SSHD.exists(), reason="needs sshd")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path / "sshd") as running:
        yield running


def inventory(server: Server) -> Inventory:
    defaults: dict[str, Any] = {"port": server.port, "knownHosts": str(server.folder / "known_hosts")}
    document = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Inventory", "metadata": {"name": "c"}}
    return Inventory.model_validate({**document, "cluster": {"kubeconfig": "k"}, "defaults": defaults})


def statuses(server: Server) -> tuple[list[str], str]:
    found = read_host_keys(inventory(server), {"n1": "127.0.0.1"}, LocalUser("ada", server.folder))
    return [key.status for key in found], known_hosts_text(found)


def test_the_key_of_a_server(server: Server) -> None:
    key = scan(server.settings())
    assert f"{key.type} {key.base64}" == public(server.host_key)
    with pytest.raises(Unreachable, match="cannot be reached"):
        scan(replace(server.settings(), port=1))


def test_keys_are_new_known_changed_or_revoked(server: Server) -> None:
    line = f"{server.name} {public(server.host_key)}"
    server.know("")
    assert statuses(server) == (["new"], f"{line}\n")
    server.know(line)
    assert statuses(server) == (["known"], f"{line}\n")
    server.know(f"{server.name} {public(keygen(server.folder / 'other'))}")
    assert statuses(server) == (["changed"], ""), "never trusted by itself"
    server.know(f"@revoked {line}")
    assert statuses(server) == (["revoked"], "")


def test_a_machine_that_does_not_answer(server: Server) -> None:
    (key,) = read_host_keys(inventory(server), {"n1": "127.77.9.9"}, LocalUser("ada", server.folder))
    assert key.status == "unreachable"
    assert "cannot be reached" in key.error
    assert known_hosts_text([key]) == ""
