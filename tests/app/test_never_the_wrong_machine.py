"""Random inventories, and addresses that change hands at random times: no machine but the planned one is changed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from chaos.app.run.experiment import RunRequest, run
from chaos.app.wiring.connect import connect_cluster
from chaos.cli.cluster.commands import undo_command
from chaos.core.errors import NodefallError, Refused
from chaos.core.plan import Plan
from chaos.documents.inventory import load_inventory
from chaos.engine.load import load
from tests.kit.fakes import FakeProgress
from tests.kit.proxy import Proxy
from tests.kit.recorded_lab import CONTROL_PLANE, WORKERS, RecordedLab, recorded_lab

pytestmark = pytest.mark.lab
_MANY = int(os.environ.get("NODEFALL_EXAMPLES", "0"))
_PROFILE = settings(
    max_examples=_MANY or 4,
    derandomize=not _MANY,  # the same examples in every run, others in the nightly run
    deadline=None,
    phases=[phase for phase in Phase if phase not in (Phase.explain, Phase.shrink)],  # each example takes seconds
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
Ways = dict[str, str]  # worker to the machine that its address, or its power control, leads to
RIGHT: Ways = {name: name for name in WORKERS}


@dataclass(frozen=True)
class Case:
    """``ways``: where the SSH addresses lead at plan, inject, rollback and undo; ``powers``: at run and undo."""

    action: str
    ways: tuple[Ways, Ways, Ways, Ways]
    powers: tuple[Ways, Ways]


def _ways() -> st.SearchStrategy[Ways]:
    """Most are right: a plan of a wrong inventory is refused, and nothing comes after it."""
    swapped = st.permutations(WORKERS).map(lambda order: dict(zip(WORKERS, order, strict=True)))
    somewhere = st.fixed_dictionaries({name: st.sampled_from([*WORKERS, CONTROL_PLANE]) for name in WORKERS})
    return st.one_of(st.just(RIGHT), st.just(RIGHT), swapped, somewhere)


CASES = st.builds(
    Case,
    action=st.sampled_from(["kubelet-stop", "power-cut"]),
    ways=st.tuples(st.one_of(st.just(RIGHT), st.just(RIGHT), _ways()), _ways(), _ways(), _ways()),
    powers=st.tuples(_ways(), _ways()),
)


class Addresses:
    """A proxy for each worker's SSH port, which known_hosts has with the keys of all machines."""

    def __init__(self, recorded: RecordedLab, folder: Path, stack: ExitStack) -> None:
        self._document, self._folder = recorded.inventory, folder
        hosts = self._document["hosts"]
        self._ports = {name: host["port"] for name, host in hosts.items()}
        self._powers = {name: host["power"]["url"] for name, host in hosts.items()}
        self._proxies = {name: Proxy(("127.0.0.1", self._ports[name])) for name in WORKERS}
        known = Path(self._document["defaults"]["knownHosts"]).read_text()
        keys = {line.split(" ", 1)[1] for line in known.splitlines()}
        for name, proxy in self._proxies.items():
            stack.callback(proxy.close)
            hosts[name]["port"] = proxy.port
            known += "".join(f"[127.0.0.1]:{proxy.port} {key}\n" for key in sorted(keys))
        (folder / "known_hosts").write_text(known)
        self._document["defaults"]["knownHosts"] = str(folder / "known_hosts")
        self._document["limits"] = {"maxNodes": 1, "minReadyNodes": 1}

    def lead(self, ways: Ways) -> None:
        """Existing connections break, and new ones lead there."""
        for name, proxy in self._proxies.items():
            proxy.redirect(("127.0.0.1", self._ports[ways[name]]))

    def inventory(self, powers: Ways) -> Path:
        """The file, with these power controls."""
        document = json.loads(json.dumps(self._document))
        for name in WORKERS:
            document["hosts"][name]["power"]["url"] = self._powers[powers[name]]
        path = self._folder / "inventory.json"
        path.write_text(json.dumps(document))
        path.chmod(0o600)
        return path


class Redirecting(FakeProgress):
    """Lets the addresses lead elsewhere once the fault is proven, before the rollback."""

    def __init__(self, addresses: Addresses, ways: Ways) -> None:
        super().__init__()
        self._addresses, self._ways = addresses, ways

    def step(self, name: str, node: str, what: str) -> None:
        super().step(name, node, what)
        if what.startswith("proven"):
            self._addresses.lead(self._ways)


def experiment(folder: Path, action: str) -> Path:
    """One step on worker-1, over once it is proven."""
    ready: dict[str, Any] = {"assert": "nodes-ready", "with": {"nodes": "all"}}
    spec = {"title": "t", "targets": {"victim": {"nodes": ["worker-1"]}}, "steadyState": [ready]}
    spec["method"] = [{"name": "do", "action": action, "target": "victim"}]
    spec["hypothesis"] = [{"assert": "lease-fresh", "with": {"node": "victim"}, "within": "1s"}]
    path = folder / "experiment.yaml"
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Experiment", "metadata": {"name": "wrong"}}
    path.write_text(json.dumps(head | {"spec": spec}))
    return path


def carry_out(case: Case, addresses: Addresses, folder: Path) -> str:
    """Plan, inject and roll back; the error, or "". An undo by another process follows, and one that is right."""
    error = ""

    def confirm(plan: Plan, *_: object) -> None:
        assert {step.node for step in plan.steps} == {"worker-1"}
        addresses.lead(case.ways[1])

    addresses.lead(case.ways[0])
    loaded = load(experiment(folder, case.action))
    progress = Redirecting(addresses, case.ways[2])
    try:
        with connect_cluster(load_inventory(addresses.inventory(case.powers[0]))) as connection:
            request = RunRequest(loaded, folder / "reports", confirm, anyway=True)
            run(request, connection, progress)
    except NodefallError as caught:
        error = f"{type(caught).__name__}: {caught.message}"
        if isinstance(caught, Refused) and not [*(folder / "reports").glob("*/*/plan.json")]:
            return error
    undo(addresses, folder, case.ways[3], case.powers[1])
    assert undo(addresses, folder, RIGHT, RIGHT) == 0, "\n".join(progress.reports)
    return error


def undo(addresses: Addresses, folder: Path, ways: Ways, powers: Ways) -> int:
    """The exit code of the command."""
    addresses.lead(ways)
    arguments = ["last", "-i", str(addresses.inventory(powers)), "--reports", str(folder / "reports")]
    return CliRunner().invoke(undo_command, arguments).exit_code


SHARED: tuple[list[str], ...] = ([], ["host-key"], ["machine-id", "system-uuid", "boot-id", "host-key"])


@pytest.fixture(scope="module", params=SHARED, ids=["distinct", "one host key", "clones"])
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordedLab]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("chaos.engine.rollback.PROOF_SECONDS", 20.0)  # else each wrong address costs 300 s
        with recorded_lab(tmp_path_factory.mktemp("lab"), request.param, 1000.0) as made:
            yield made


def test_the_right_machine_is_changed(recorded: RecordedLab, tmp_path: Path) -> None:
    with ExitStack() as stack:
        addresses = Addresses(recorded, tmp_path, stack)
        for action in ("kubelet-stop", "power-cut"):
            (tmp_path / action).mkdir()
            error = carry_out(Case(action, (RIGHT,) * 4, (RIGHT,) * 2), addresses, tmp_path / action)
            changed = {machine for machine, _ in recorded.changes()}
            if action == "power-cut" and "system-uuid" in recorded.lab.cluster.spec.shared_identity:
                assert "the power control of host worker-1 may be that of control-plane, worker-2, worker-3" in error
                assert changed == set()
            else:
                assert (error, changed) == ("", {"worker-1"})
    assert recorded.is_whole()


@_PROFILE
@given(case=CASES)
def test_no_other_machine_is_changed(recorded: RecordedLab, case: Case) -> None:
    with TemporaryDirectory() as name, ExitStack() as stack:
        addresses = Addresses(recorded, Path(name), stack)
        carry_out(case, addresses, Path(name))
        assert [(machine, text) for machine, text in recorded.changes() if machine != "worker-1"] == []
