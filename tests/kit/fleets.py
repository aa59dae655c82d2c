"""Fleets of labs: a game day, an inventory for each lab, and a stand-in kubelet that runs the Jobs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.cluster.client import connect
from chaos.cluster.cluster_state import cluster_uid
from tests.kit.gamedays import left_behind, write_day
from tests.kit.job_kubelet import JobKubelet
from tests.kit.kubectl_lab import Kubectl
from tests.kit.processes import lab

IMAGE = "registry.example.com/nodefall@sha256:" + "0" * 64
HEAD = {"apiVersion": "nodefall.dev/v1alpha1"}
NO_CODES: Mapping[str, int] = {}
NO_BREAKAGES: Mapping[str, str] = {}
_STARTS_AT_ONCE = 4
_KINDS = "jobs,pods,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,networkpolicies,configmaps"


@dataclass(frozen=True, slots=True)
class FleetLab:
    """A lab of the fleet. ``inventory``: as the lab has written it."""

    name: str
    folder: Path
    inventory: Path
    kubelet: JobKubelet

    def applied(self) -> list[str]:
        """What a fleet has applied and not deleted, as KIND/NAME, besides the volume and its namespace."""
        kubectl = Kubectl(json.loads(self.inventory.read_text())["cluster"]["kubeconfig"], self.folder)
        return kubectl("get", _KINDS, "-A", "-l", "nodefall.dev/fleet", "-o", "name").split()

    def left_behind(self) -> list[str]:
        """What is left of faults and locks."""
        expected = ("configmap/nodefall-gameday-europe.fleet", "namespace/nodefall")
        return [name for name in left_behind(self.inventory, self.folder) if name not in expected]


@contextmanager
def fleet_labs(
    folder: Path, names: list[str], broken: Mapping[str, int] = NO_CODES, breakages: Mapping[str, str] = NO_BREAKAGES
) -> Iterator[dict[str, FleetLab]]:
    """Labs with a stand-in kubelet each. By the name of the lab: ``broken``: the exit code of pods that fail at once;
    ``breakages``: a defect of the lab."""

    def begin(stack: ExitStack, number: int, name: str) -> FleetLab:
        home = folder / "labs" / name
        home.mkdir(parents=True)
        defect = ("--breakage", breakages[name]) if name in breakages else ()
        inventory = stack.enter_context(lab(home, "--seed", str(number), *defect))
        kubelet = stack.enter_context(JobKubelet(inventory, folder / "pods" / name, broken.get(name)))
        return FleetLab(name, home, inventory, kubelet)

    with ExitStack() as stack, ThreadPoolExecutor(_STARTS_AT_ONCE) as pool:
        stacks = [stack.enter_context(ExitStack()) for _ in names]  # each is used by one thread
        yield dict(zip(names, pool.map(begin, stacks, range(len(names)), names), strict=True))


def write_inventories(folder: Path, labs: dict[str, FleetLab]) -> None:
    """An inventory for each lab, as those of real clusters: with expectUID, and paths beside the file."""
    for name, each in labs.items():
        document = json.loads(each.inventory.read_text())
        cluster = document["cluster"]
        kube = connect(cluster["kubeconfig"])
        uid = cluster_uid(kube)
        kube.close()
        place = folder / f"{name}.kube"
        place.mkdir()
        shutil.copy(cluster["kubeconfig"], place / "config")
        wanted = {key: cluster[key] for key in ("simulated", "timeSource")}
        settings = {"kubeconfig": f"{name}.kube/config", "expectUID": uid, **wanted}
        write_json(
            folder / f"{name}.json", {**HEAD, "kind": "Inventory", "metadata": {"name": name}, "cluster": settings}
        )


def write_fleet(folder: Path, names: list[str], entries: list[str], **spec: Any) -> Path:
    """A fleet of these clusters, and its game day with an entry for each name. ``spec``: other keys of the fleet."""
    write_day(folder, entries)
    clusters = [{"name": name, "inventory": f"{name}.json"} for name in names]
    spec = {"gameday": "day.yaml", "image": IMAGE, "clusters": clusters} | spec
    document = {**HEAD, "kind": "Fleet", "metadata": {"name": "europe"}, "spec": spec}
    return write_json(folder / "fleet.yaml", document)


def write_json(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document))
    path.chmod(0o644)
    return path
