"""The result of a run or of judging a recording: what every renderer gets, and what result.json holds."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from chaos.model.action import ProofStatus
from chaos.model.verdict import Status, Verdict

RESULT_VERSION = 1


class Phases(Struct, frozen=True):
    """When a step on a node reached what, in epoch seconds; None where nobody knows.

    ``armed``: it waited on the host. ``fired``: the write that let it go. ``began``: as the host says, by its clock.
    ``proven``: the last of what proves it was seen.
    """

    armed: float | None = None
    fired: float | None = None
    began: float | None = None
    proven: float | None = None


class StepResult(Struct, frozen=True):
    """One step on one node; ``shown`` says whether it is proven that it took effect. Times in epoch seconds."""

    step: str
    action: str
    node: str
    begin: float | None
    returned: float | None
    delivery: str
    command: str
    proof_status: ProofStatus
    because: str
    evidence: tuple[int, ...] = ()
    weak: bool = False
    phases: Phases = Phases()


class UndoResult(Struct, frozen=True):
    """One undo: proven, or still owed with the reason."""

    step: str
    action: str
    node: str
    proven: bool
    because: str


class RunResult(Struct, frozen=True):
    """``status`` is the worst verdict; ``exit_code`` as the command ends (an owed undo beats all others)."""

    version: int
    run: str
    experiment: str
    title: str
    status: Status
    exit_code: int
    headline: str  # one line: what failed, what was seen instead, and when; or that all held
    simulated: bool
    kubernetes: str
    cluster_uid: str
    started: float
    ended: float
    targets: dict[str, tuple[str, ...]]
    steps: tuple[StepResult, ...]
    steady_state: tuple[Verdict, ...]
    hypothesis: tuple[Verdict, ...]
    abort: tuple[Verdict, ...] = ()
    recovery: tuple[Verdict, ...] = ()
    undo: tuple[UndoResult, ...] = ()
    leftovers: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    facts: dict[str, Any] = {}
    started_by: str = ""  # login@machine/process that ran it
    nodefall_version: str = ""  # its version
    plan_hash: str = ""
