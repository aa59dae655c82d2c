"""Fleet files, with the game day and the inventories that they refer to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from chaos.core.inventory import Inventory
from chaos.core.registry import PluginRegistry
from chaos.documents.document import expect_kind, read_document
from chaos.documents.error_collector import Cursor, ErrorCollector, did_you_mean
from chaos.documents.gameday import load_game_day, load_referenced
from chaos.documents.inventory import load_inventory
from chaos.documents.plugin_lookup import report_duplicates
from chaos.documents.pydantic_errors import check_model
from chaos.documents.tree import MappingEntry, to_builtins
from chaos.gameday.fleet.document import Fleet

_HINT = "give the inventory of a real cluster, which has expectUID"


@dataclass(frozen=True, slots=True)
class FleetFiles:
    """A fleet. ``inventories``: paths by the name of the cluster."""

    document: Fleet
    gameday: Path
    inventories: dict[str, Path]


def load_fleet(path: Path, registry: PluginRegistry, now: datetime) -> FleetFiles:
    """The fleet in ``path``. ``now``: the window of its game day must still open after it.

    Raises BadInput with all problems, those of the game day and of the inventories included.
    """
    root = read_document(path)
    expect_kind(path, root, "Fleet")
    errors = ErrorCollector(str(path))
    fleet = check_model(Fleet, root, to_builtins(root), errors)
    spec = Cursor(errors, MappingEntry(root.mark, root)).get("spec")
    folder = path.parent
    load_referenced(spec.get("gameday"), folder, lambda file: load_game_day(file, registry, now))
    inventories = _load_clusters(spec, folder)
    _check_home(spec)
    errors.raise_if_any()
    assert isinstance(fleet, Fleet)  # noqa: S101 - None only with a problem
    return FleetFiles(fleet, folder / fleet.spec.gameday, inventories)


def _load_clusters(spec: Cursor, folder: Path) -> dict[str, Path]:
    clusters = list(spec.get("clusters").items())
    report_duplicates((cluster.get("name") for cluster in clusters), "cluster")
    report_duplicates((cluster.get("inventory") for cluster in clusters), "inventory")
    found, names = {}, dict[str, str]()  # names: by the UID of the cluster
    for cluster in clusters:
        place, name = cluster.get("inventory"), cluster.get("name").text or ""
        inventory = load_referenced(place, folder, load_inventory)
        if inventory:
            _check_inventory(place, inventory)
            settings = inventory.cluster
            uid = settings.expect_uid if settings and not settings.simulated else None  # labs of one seed share it
            if uid and (other := names.setdefault(uid, name)) != name:
                place.report(f"it is the same cluster as {other}: expectUID is {uid} in both inventories")
        found[name] = folder / (place.text or "")
    return found


def _check_inventory(place: Cursor, inventory: Inventory) -> None:
    if inventory.cluster is None:
        place.report("a lab cannot be part of a fleet, as it is started for a command", _HINT)
    elif not inventory.cluster.expect_uid:
        hint = "kubectl get namespace kube-system -o jsonpath={.metadata.uid}"
        place.report("expectUID is missing in this inventory, so the wrong cluster could be under test", hint)


def _check_home(spec: Cursor) -> None:
    home = spec.get("home")
    names = [name for cluster in spec.get("clusters").items() if (name := cluster.get("name").text)]
    if home.text and home.text not in names:
        home.report(f"unknown cluster {home.text!r}", did_you_mean(home.text, names))
