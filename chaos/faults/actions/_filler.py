"""Parts shared by actions that exhaust a resource: a transient unit with a time limit, and its bounds.

The unit leaves half of the kubelet's own eviction threshold, so that the node is under pressure and keeps working.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from chaos.core.action import (
    NODE_READY,
    FactCheck,
    Program,
    Proof,
    ProofResult,
    ProofStatus,
    StepRun,
    Target,
    Undo,
    UndoStep,
    failsafe_timer,
)
from chaos.core.command import HostCommand
from chaos.core.errors import Unsupported
from chaos.core.evidence import no_proof
from chaos.core.kube import node_condition
from chaos.core.node_mark import Tag
from chaos.core.timeline import Timeline

_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
_NOT_LOADED = 5  # systemctl's exit code for a unit that does not exist


class FillerState(Struct, frozen=True):
    """How long the unit runs, how much of the resource it leaves, and the tag for the timer's name."""

    seconds: float
    tag: Tag
    remaining: int


def require_own_kernel(target: Target) -> None:
    """Raises Unsupported on a container, because other containers would also lack the resource."""
    if target.require_fact("shared-kernel", "others must not be hit"):
        raise Unsupported(
            f"{target.node} is a container: the other containers of its machine would lack the resource too",
            hint="use a dedicated machine",
        )


def remaining(target: Target, signal: str, capacity: int) -> int:
    """Half of the kubelet's hard eviction threshold for ``signal``. Raises Unsupported if it has none."""
    thresholds = (target.facts.get("configz") or {}).get("evictionHard")
    if not thresholds:
        raise Unsupported(
            f"{target.node}: the kubelet's thresholds (evictionHard) are not known: its /configz was not read",
            hint="grant the credentials of the kubeconfig get on nodes/configz",
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


def run_filler(state: FillerState, kind: str, script: str, arguments: Sequence[str], limits: Sequence[str]) -> Program:
    """Start a unit, which the kernel's OOM killer chooses first and PID 1 ends after ``seconds``.

    PID 1 expands ``${NAME}`` in the command line, so scripts write ``$NAME``. A timer, verified before the fault, is a
    second limit. Undo stops the unit, which frees the resource; the kubelet's condition clears after its transition
    period (5 min).
    """
    unit, idle = f"nodefall-{kind}-filler", FactCheck(f"{kind}-filler", "inactive")
    common = (f"RuntimeMaxSec={state.seconds:g}", "OOMScoreAdjust=1000", "KillSignal=SIGKILL")
    properties = (f"--property={text}" for text in (*common, *limits))
    shell = ("sh", "-c", script, "nodefall", *arguments)
    start = HostCommand(("systemd-run", "--collect", f"--unit={unit}", *properties, "--", *shell))
    stop = ("systemctl", "stop", f"{unit}.service")
    undo = UndoStep(HostCommand(stop, accept=(0, _NOT_LOADED)), unless=idle)
    return Program(
        (start,),
        Undo((undo,), (idle, NODE_READY)),
        preconditions=(idle,),
        failsafe=failsafe_timer(state, *stop),
    )


def prove_condition(name: str) -> Proof:
    """Proven by the kubelet's pressure condition."""

    def check(timeline: Timeline, step: StepRun) -> ProofResult:
        for version in timeline.nodes.get(step.node) or ():
            found = node_condition(version.object, name)
            if step.begin < version.t <= step.until and found and found.status == "True":
                because = f"{name} of {step.node} was True {version.t - step.begin:.1f} s after the step"
                return ProofResult(ProofStatus.PROVEN, because, (version.seq,))
        return no_proof(f"{name} of {step.node} was not seen True")

    return Proof(name, check)


def prove_eviction(resource: str) -> Proof:
    """Proven by a pod that the kubelet evicted for lack of ``resource``."""
    reason = f"The node was low on resource: {resource}"

    def check(timeline: Timeline, step: StepRun) -> ProofResult:
        for history in timeline.pods.on_nodes([step.node]):
            for version in history:
                pod = version.object
                message = (pod.status.message if pod.status else None) or ""
                on_node = pod.spec is not None and pod.spec.node_name == step.node
                if on_node and step.begin < version.t <= step.until and message.startswith(reason):
                    because = f"the kubelet evicted {pod.metadata.name}: {reason}"
                    return ProofResult(ProofStatus.PROVEN, because, (version.seq,))
        return no_proof(f"no pod was seen evicted from {step.node} for {resource}")

    return Proof("evicted", check)
