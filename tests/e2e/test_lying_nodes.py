"""Node objects that say they are another machine, before a run and while it lasts: no other machine is touched."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_foreign_journal import api
from tests.kit.processes import lab, nodefall
from tests.kit.wrong_machines import boots, experiment

pytestmark = pytest.mark.lab
LIAR, OTHER = "worker-1", "worker-2"
INFO = ("machineID", "systemUUID", "bootID")
LIES: dict[str, tuple[str, ...]] = {
    "machine ID": ("machineID",),
    "system UUID": ("systemUUID",),
    "boot ID": ("bootID",),
    "addresses": ("addresses",),
    "provider ID": ("providerID",),
    "everything": (*INFO, "addresses", "providerID"),
}


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with lab(tmp_path_factory.mktemp("lab"), speed=16) as path:
        yield path


def read(inventory: Path, name: str) -> dict[str, Any]:
    return api(inventory, "GET", f"/api/v1/nodes/{name}")


def pretend(inventory: Path, fields: tuple[str, ...], of: dict[str, Any]) -> None:
    """Write into the liar's Node what the Node ``of`` has."""
    status: dict[str, Any] = {"nodeInfo": {key: of["status"]["nodeInfo"][key] for key in fields if key in INFO}}
    if "addresses" in fields:
        status["addresses"] = of["status"]["addresses"]
    api(inventory, "PATCH", f"/api/v1/nodes/{LIAR}/status", {"status": status})
    if "providerID" in fields:
        api(inventory, "PATCH", f"/api/v1/nodes/{LIAR}", {"spec": {"providerID": of["spec"]["providerID"]}})


@contextmanager
def lying(inventory: Path, fields: tuple[str, ...]) -> Iterator[None]:
    """The lie is repeated, as the kubelet's own answers replace it; then the truth."""
    truth, other, over = read(inventory, LIAR), read(inventory, OTHER), threading.Event()

    def repeat() -> None:
        while not over.wait(0.2):
            pretend(inventory, fields, other)

    pretend(inventory, fields, other)
    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        pretend(inventory, fields, truth)


@pytest.mark.parametrize("action", ["reboot", "power-cut"])
@pytest.mark.parametrize("fields", LIES.values(), ids=LIES)
def test_a_node_that_says_it_is_another_machine(
    inventory: Path, tmp_path: Path, fields: tuple[str, ...], action: str
) -> None:
    before = boots(inventory)
    file = experiment(tmp_path, {"name": "do", "action": action, "target": "victim"})
    with lying(inventory, fields):
        done = nodefall("run", file, "-i", inventory, "--plain", "--yes", cwd=tmp_path)
    is_refused = bool({"machineID", "systemUUID"} & {*fields})
    assert done.returncode in ((4,) if is_refused else (0, 2)), done.stderr
    assert ("host worker-1 is not the machine of the Node worker-1" in done.stderr) is is_refused
    nodefall("undo", "last", cwd=tmp_path)
    after = boots(inventory)
    assert {name for name in before if after[name] != before[name]} <= {LIAR}, done.stderr
