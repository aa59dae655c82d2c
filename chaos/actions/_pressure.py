"""What the actions that use a resource up share: a unit of PID 1 that ends by itself, and how far it goes.

How far is what the kubelet's own threshold says: half of it is left, so that the node is short of it and lives on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import Field

from chaos.model.action import (
    FactCheck,
    FailsafeTimer,
    Proof,
    ProofResult,
    ProofStatus,
    StepRun,
    Target,
    Undo,
    UndoState,
    UndoStep,
)
from chaos.model.command import HostCommand
from chaos.model.duration import parse_duration
from chaos.model.errors import Unsupported
from chaos.model.evidence import no_proof
from chaos.model.experiment import DurationText, Model
from chaos.model.kube import node_condition
from chaos.model.timeline import Timeline

_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
_NOT_LOADED = 5


class Params(Model):
    """For how long."""

    duration: DurationText | None = Field(
        None, description="when it ends by itself; at the latest when maxDuration is over, which is the default"
    )


def require_own_kernel(target: Target) -> None:
    """Raises Unsupported where others would be short of it too."""
    if target.require_fact("shared-kernel", "others must not be hit"):
        raise Unsupported(
            f"{target.node} is a container: what is used up there, its machine's other containers lack too",
            hint="use a machine of its own",
        )


def remaining(target: Target, signal: str, capacity: int) -> int:
    """Half of the kubelet's hard threshold for ``signal``. Raises Unsupported where it has none."""
    thresholds = (target.facts.get("configz") or {}).get("evictionHard")
    if not thresholds:
        raise Unsupported(
            f"{target.node}: the kubelet's thresholds (evictionHard) are not known: its /configz was not read",
            hint="the credentials of the kubeconfig need get on nodes/configz",
        )
    text = str(thresholds.get(signal, "0"))
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(%|[kMGT]i?|Ki|)", text)
    share = match[2] == "%" if match else False
    value = float(match[1]) * (capacity / 100 if share else _UNITS[match[2]]) if match else 0
    if not value:
        raise Unsupported(
            f"{target.node}: the kubelet has no hard threshold for {signal}, so it would report nothing",
            hint=f"set evictionHard {signal} in its configuration",
        )
    return int(value / 2)


def capture_state(target: Target, params: Params, **more: int | str) -> UndoState:
    """What inject and undo need; it never lasts longer than the run may."""
    seconds = min(parse_duration(params.duration), target.max_duration) if params.duration else target.max_duration
    return {"seconds": seconds, "tag": target.tag, **more}


def unit_name(kind: str) -> str:
    return f"nodefall-{kind}-filler"


def start_filler(
    memory: UndoState, kind: str, script: str, arguments: Sequence[str], limits: Sequence[str]
) -> HostCommand:
    """The unit: first to be killed if the kernel runs out, ended by PID 1 when its time is over.

    PID 1 expands ``${NAME}`` in what it starts, so scripts write ``$NAME``.
    """
    common = (f"RuntimeMaxSec={memory['seconds']:g}", "OOMScoreAdjust=1000", "KillSignal=SIGKILL")
    properties = (f"--property={text}" for text in (*common, *limits))
    shell = ("sh", "-c", script, "nodefall", *arguments)
    return HostCommand(("systemd-run", "--collect", f"--unit={unit_name(kind)}", *properties, "--", *shell))


def filler_failsafe(memory: UndoState, kind: str) -> FailsafeTimer:
    """The same end from a timer that is read back before the fault."""
    stop = ("systemctl", "stop", f"{unit_name(kind)}.service")
    return FailsafeTimer(f"nodefall-{memory['tag']}", memory["seconds"], stop)


def stop_filler(memory: UndoState, kind: str) -> Undo:
    """Gone is the unit with all that it held; the kubelet's condition follows after its transition period (5 min)."""
    stopped = FactCheck(f"{kind}-filler", "inactive")
    stop = HostCommand(("systemctl", "stop", f"{unit_name(kind)}.service"), accept=(0, _NOT_LOADED))
    proof = (stopped, FactCheck("node-ready", True))
    return Undo((UndoStep(stop, unless=stopped),), proof, disarm=f"nodefall-{memory['tag']}")


def prove_condition(name: str) -> Proof:
    """The kubelet says that it is short."""

    def check(timeline: Timeline, step: StepRun) -> ProofResult:
        for version in timeline.nodes.get(step.node) or ():
            found = node_condition(version.object, name)
            if step.begin < version.t <= step.until and found and found.status == "True":
                because = f"{name} of {step.node} was True {version.t - step.begin:.1f}s after it"
                return ProofResult(ProofStatus.PROVEN, because, (version.seq,))
        return no_proof(f"{name} of {step.node} was not seen True")

    return Proof(name, check)


def prove_eviction(resource: str) -> Proof:
    """The kubelet ended a pod for it."""

    def check(timeline: Timeline, step: StepRun) -> ProofResult:
        words = f"The node was low on resource: {resource}"
        for history in timeline.pods.values():
            for version in history:
                pod = version.object
                said = (pod.status.message if pod.status else None) or ""
                mine = pod.spec is not None and pod.spec.node_name == step.node
                if mine and step.begin < version.t <= step.until and said.startswith(words):
                    return ProofResult(
                        ProofStatus.PROVEN, f"the kubelet evicted {pod.metadata.name}: {words}", (version.seq,)
                    )
        return no_proof(f"no pod was seen evicted from {step.node} for {resource}")

    return Proof("evicted", check)
