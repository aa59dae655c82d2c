"""The table of breakages and experiments: which cells are noticed, undecided, or not noticed."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.lab.breakages import BREAKAGES
from tests.kit.experiment_runs import BUNDLED

_GROUPS = 4  # neighbours, as X-late and X-early, are in different ones: they would undo each other
_APART = (  # these do together what none of them does alone
    ("taint-eviction-reordered", "delete-removes-running-pod"),
    ("taint-eviction-reordered", "pod-removal-early"),
    ("taint-eviction-reordered", "statefulset-replaced-before-removal"),
    ("unknown-early", "replicaset-replaces-unready"),
)
# No node stays Ready, and the abort condition ends whatever lasts a minute; and pods that a node rejects are made and
# bound again and again, as fast as the lab can.
_ALONE = ("heartbeats-ignored", "no-schedule-taint-missing", "no-schedule-taint-late", "replacement-late")
NOTICED = [(name, breakage) for name, item in BUNDLED.items() for breakage in item.breakages]
UNDECIDED = [(name, breakage) for name, item in BUNDLED.items() for breakage in item.undecided_by]


def is_noticed(name: str, status: str) -> bool:
    """Whether an experiment with this status has noticed what its lab does wrong."""
    wanted = BUNDLED[name].notes["verdict"]
    return status != wanted and (wanted != "held" or status == "violated")


def unnoticed() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each experiment with all other breakages, a quarter of them at once."""
    for name, item in BUNDLED.items():
        left = {*item.breakages, *item.undecided_by, *_ALONE}
        for group in _groups():
            yield name, tuple(b for b in group if b not in left)


def _groups() -> list[list[str]]:
    groups = [list(BREAKAGES)[group::_GROUPS] for group in range(_GROUPS)]
    for number, group in enumerate(groups):
        for one, other in _APART:
            if one in group and other in group:
                group.remove(other)
                groups[number - 1].append(other)
    return groups
