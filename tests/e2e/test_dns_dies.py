"""The resolver of this machine dies in the middle of a run, and comes back, or does not before its end."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from chaos.app.run.experiment import RunRequest, run
from chaos.app.wiring.connect import connect_cluster
from chaos.cli.cluster.commands import undo_command
from chaos.cluster import connections
from chaos.core.result import RunResult
from chaos.core.verdict import Status
from chaos.documents.inventory import load_inventory
from chaos.engine.load import load
from tests.kit.fakes import FakeProgress
from tests.kit.processes import write_experiment
from tests.kit.proxy import Proxy
from tests.kit.recorded_lab import RecordedLab, recorded_lab

pytestmark = pytest.mark.lab
NAME = "localhost"  # which the certificate of the lab has, too


@dataclass
class Resolver:
    """``cuts``: all connections end when it dies. ``forgets``: no address is known, as in another process."""

    proxy: Proxy
    cuts: bool = False
    forgets: bool = False
    is_dead: bool = False

    def die(self) -> None:
        self.is_dead = True
        if self.forgets:
            connections._ADDRESSES.clear()
        if self.cuts:
            self.proxy.cut()
            self.proxy.mend()


class Dying(FakeProgress):
    """Ends the resolver once the fault is proven."""

    def __init__(self, resolver: Resolver) -> None:
        super().__init__()
        self._resolver = resolver

    def step(self, name: str, node: str, what: str) -> None:
        super().step(name, node, what)
        if what.startswith("proven"):
            self._resolver.die()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordedLab]:
    with recorded_lab(tmp_path_factory.mktemp("lab"), [], 20.0) as made:
        yield made


@pytest.fixture
def resolver(recorded: RecordedLab, monkeypatch: pytest.MonkeyPatch) -> Iterator[Resolver]:
    port = int(str(kubeconfig(recorded)["clusters"][0]["cluster"]["server"]).rpartition(":")[2])
    proxy = Proxy(("127.0.0.1", port))
    found = Resolver(proxy)
    real = socket.getaddrinfo

    def getaddrinfo(host: Any, *arguments: Any, **more: Any) -> Any:
        if host == NAME and found.is_dead:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return real(host, *arguments, **more)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield found
    proxy.close()


def kubeconfig(recorded: RecordedLab) -> dict[str, Any]:
    text = Path(recorded.inventory["cluster"]["kubeconfig"]).read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))


def written(recorded: RecordedLab, resolver: Resolver, folder: Path) -> Path:
    """An inventory whose API server has a name, and is behind the proxy."""
    config, inventory = kubeconfig(recorded), recorded.inventory
    config["clusters"][0]["cluster"]["server"] = f"https://{NAME}:{resolver.proxy.port}"
    inventory["cluster"]["kubeconfig"] = str(folder / "kubeconfig")
    for name, document in (("kubeconfig", config), ("inventory.json", inventory)):
        (folder / name).write_text(json.dumps(document), encoding="utf-8")
        (folder / name).chmod(0o600)
    return folder / "inventory.json"


def experiment(folder: Path) -> Path:
    ready = {"assert": "nodes-ready", "with": {"nodes": "all"}}
    spec: dict[str, Any] = {"title": "t", "targets": {"victim": {"nodes": ["worker-1"]}}, "steadyState": [ready]}
    spec["method"] = [{"name": "do", "action": "cordon", "target": "victim"}]
    spec["hypothesis"] = [ready | {"always": {"for": "20s"}}]
    return write_experiment(folder / "dns.yaml", spec | {"recovery": {"within": "3m"}})


def is_cordoned(recorded: RecordedLab) -> bool:
    node = recorded.lab.cluster.store.get("nodes", "", "worker-1")
    assert node is not None
    return bool(node["spec"].get("unschedulable"))


def carry_out(inventory: Path, resolver: Resolver, folder: Path) -> RunResult:
    with connect_cluster(load_inventory(inventory)) as connection:
        request = RunRequest(load(experiment(folder)), folder / "reports", lambda *_: None)
        return run(request, connection, Dying(resolver)).result


@pytest.mark.parametrize("cuts", [False, True], ids=["connections stay", "connections are cut"])
def test_a_run_goes_on_at_the_address_that_it_knows(
    recorded: RecordedLab, resolver: Resolver, tmp_path: Path, cuts: bool
) -> None:
    resolver.cuts = cuts
    result = carry_out(written(recorded, resolver, tmp_path), resolver, tmp_path)
    assert (result.status, result.exit_code, [undo.proven for undo in result.undo]) == (Status.HELD, 0, [True])
    assert not is_cordoned(recorded)


@pytest.mark.nightly
def test_an_undo_that_knows_no_address_is_pending_until_the_name_is_back(
    recorded: RecordedLab, resolver: Resolver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chaos.engine.rollback.PROOF_SECONDS", 20.0)
    resolver.cuts = resolver.forgets = True
    inventory = written(recorded, resolver, tmp_path)
    result = carry_out(inventory, resolver, tmp_path)
    assert (result.status, result.exit_code) == (Status.INCONCLUSIVE, 3)
    assert f"https://{NAME}:{resolver.proxy.port}: its name cannot be resolved" in result.undo[0].because
    assert is_cordoned(recorded)
    arguments = ["last", "-i", str(inventory), "--reports", str(tmp_path / "reports")]
    dead = CliRunner().invoke(undo_command, arguments)
    assert dead.exit_code != 0
    assert "its name cannot be resolved" in str(dead.exception)
    resolver.is_dead = False
    assert CliRunner().invoke(undo_command, arguments).exit_code == 0
    assert not is_cordoned(recorded)
