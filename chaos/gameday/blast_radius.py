"""What an experiment may bring down, as far as it is known without a cluster."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from chaos.core.action import AnyAction, UndoKind
from chaos.core.experiment import Experiment, TargetSpec


class BlastRadius(Struct, frozen=True):
    """``nodes``: how many at once, at most; ``shares``: percentages of nodes, which are counted on the cluster.

    ``targets``: each in words; ``takes_down``: machines stop; ``on_hosts``: operations on machines, besides the
    API; ``irreversible``: steps that cannot be undone.
    """

    nodes: int
    shares: tuple[str, ...]
    targets: tuple[str, ...]
    actions: tuple[str, ...]
    takes_down: bool
    on_hosts: bool
    irreversible: tuple[str, ...]

    @property
    def rank(self) -> tuple[bool, int, int, bool]:
        """Greater for a worse one: machines that go down, then the largest share, then the number of nodes."""
        return self.takes_down, max(map(_percent, self.shares), default=0), self.nodes, self.on_hosts

    def __str__(self) -> str:
        count = [f"{self.nodes} node{'s' if self.nodes != 1 else ''}"] if self.nodes or not self.shares else []
        effect = "machines go down" if self.takes_down else "machines stay up" if self.on_hosts else "API objects only"
        undo = f", {', '.join(self.irreversible)} cannot be undone" if self.irreversible else ""
        return f"{' and '.join([*count, *self.shares])}, {effect}{undo}"


def blast_radius(experiment: Experiment) -> BlastRadius:
    """The blast radius of one run: all nodes of the targets that its steps act on."""
    spec = experiment.spec
    used = {step.target for step in spec.method if step.target}
    targets = {name: target for name, target in spec.targets.items() if name in used}
    counts = [str(target.count) for target in targets.values()]
    actions = [step.bound.action for step in spec.method]
    return BlastRadius(
        nodes=sum(int(count) for count in counts if not count.endswith("%")),
        shares=tuple(
            f"{target.count} of {_selected(target)}" for target in targets.values() if str(target.count).endswith("%")
        ),
        targets=tuple(f"{name}: {target.count} of {_selected(target)}" for name, target in targets.items()),
        actions=tuple(dict.fromkeys(action.name for action in actions)),
        takes_down=any(action.takes_down or action.may_crash for action in actions),
        on_hosts=any(action.on_host for action in actions),
        irreversible=tuple(step.name for step in spec.method if _is_irreversible(step.bound.action, step.with_)),
    )


def worst(radii: list[BlastRadius]) -> BlastRadius:
    """The worst of them; there is at least one."""
    return max(radii, key=lambda radius: radius.rank)


def _selected(target: TargetSpec) -> str:
    """``workers of zone a that run the workload``."""
    system = {"linux": "Linux ", "windows": "Windows "}.get(target.os or "", "")
    what = f"{system}{target.role or 'node'}s" if not target.nodes else ", ".join(target.nodes)
    labels = ", ".join(f"{key}={value}" for key, value in (target.match_labels or {}).items())
    return (
        what
        + (f" of zone {target.zone}" if target.zone else "")
        + (f" with {labels}" if labels else "")
        + (" that run the workload" if target.runs else "")
    )


def _is_irreversible(action: AnyAction, given: dict[str, Any]) -> bool:
    return (
        action.undo_kind is UndoKind.IRREVERSIBLE
        or any(given.get(parameter) is True for parameter in action.irreversible_params)
        or bool(action.undo_param and given.get(action.undo_param) is None)
    )


def _percent(share: str) -> int:
    return int(share.partition("%")[0])
