"""Shipped experiments on their labs within this process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict

from chaos.app.lab_spec import lab_spec
from chaos.app.run.results import JudgedRun
from chaos.core.inventory import Defaults, Inventory
from chaos.core.lab_settings import Lab, Rule
from chaos.documents.inventory import load_inventory
from chaos.engine.load import LoadedExperiment, load, required_permissions
from chaos.engine.registry import load_registry
from chaos.lab.facade import LabSpec
from chaos.rehearsal.run import RehearsalOptions, rehearse_once
from tests.kit.experiment_runs import BUNDLED, as_rule
from tests.kit.processes import EXPERIMENTS, ROOT

START = 1_795_000_000.0


@cache
def settings_of(name: str, transport: str = "ssh", *, is_kind: bool = False) -> Inventory:
    """The inventory of the lab that an experiment names; ``is_kind``: hosts get a new machine ID at each boot."""
    inventory = load_inventory(ROOT / "hosts" / BUNDLED[name].notes["lab"])
    assert inventory.lab
    lab = inventory.lab.model_copy(update={"machine_id_per_boot": is_kind})
    return inventory.model_copy(update={"defaults": Defaults(transport=transport), "lab": lab})


def of_size(name: str, workers: int) -> Inventory:
    """The inventory of an experiment's lab with another number of workers, any of which may be targets.

    The zones keep their nodes as far as there are as many; what is more is in another zone.
    """
    inventory = settings_of(name)
    lab = inventory.lab
    assert lab is not None
    change: dict[str, Any] = {"workers": workers}
    if lab.windows_workers:
        change["windows_workers"] = workers
    if lab.zones:
        own = [lab.zones[index % len(lab.zones)] for index in range(min(workers, lab.workers))]
        change["zones"] = own + ["rest"] * (workers - len(own))
    limits = inventory.limits.model_copy(update={"max_nodes": workers, "min_ready_nodes": 0})
    return inventory.model_copy(update={"lab": lab.model_copy(update=change), "limits": limits})


def rehearse_of_size(name: str, workers: int, seed: int) -> JudgedRun:
    """Run an experiment on its lab with another number of workers. Raises Refused."""
    settings = of_size(name, workers)
    assert settings.lab is not None
    spec = msgspec.convert(lab_spec(settings.lab, 1, START), LabSpec)
    return rehearse_once(loaded(name), spec, seed, RehearsalOptions(settings))


@cache
def loaded(name: str) -> LoadedExperiment:
    """A shipped experiment."""
    return load(EXPERIMENTS / f"{name}.yaml", load_registry())


@cache
def _lab(name: str, transport: str, is_kind: bool) -> Lab:
    """The lab that an experiment names, with the rights that it needs, and no more."""
    settings = settings_of(name, transport, is_kind=is_kind)
    lab = settings.lab
    assert lab is not None
    needed = (asdict(permission) for permission in required_permissions(loaded(name), settings))
    return lab.model_copy(update={"rights": [Rule.model_validate(as_rule(right)) for right in needed]})


def spec_of(name: str, breakages: Sequence[str] = (), transport: str = "ssh", *, is_kind: bool = False) -> LabSpec:
    """The lab of an experiment, with ``breakages``."""
    return msgspec.convert(lab_spec(_lab(name, transport, is_kind), 1, START) | {"breakages": list(breakages)}, LabSpec)


def rehearse(
    name: str,
    seed: int = 1,
    breakages: Sequence[str] = (),
    recording: Path | None = None,
    transport: str = "ssh",
    *,
    is_kind: bool = False,
) -> JudgedRun:
    """Run an experiment on its lab, with ``breakages``; ``is_kind``: hosts get a new machine ID at each boot."""
    options = RehearsalOptions(settings_of(name, transport, is_kind=is_kind), recording)
    spec = spec_of(name, breakages, transport, is_kind=is_kind)
    return rehearse_once(loaded(name), spec, seed, options)


def outcome(run: JudgedRun) -> str:
    """The status of a run, or that it was aborted."""
    return "aborted" if run.result.headline.startswith("aborted: ") else str(run.result.status)
