"""Any program on the host: the experiment gives inject, undo and proof, each as argv without a shell."""

from __future__ import annotations

import re
import shlex
from typing import Self

from msgspec import Struct
from pydantic import Field, field_validator, model_validator

from chaos.core.action import (
    NODE_READY,
    Action,
    FactCheck,
    Needs,
    Program,
    Proof,
    ProofResult,
    StepRun,
    Target,
    Undo,
    UndoKind,
    UndoStep,
    failsafe_timer,
)
from chaos.core.command import HostCommand
from chaos.core.duration import parse_duration
from chaos.core.errors import Unsupported
from chaos.core.evidence import EXIT_CODE_ZERO, holds_until, no_proof
from chaos.core.fact import FactRef
from chaos.core.field_types import DurationText, Model
from chaos.core.node_mark import Tag
from chaos.core.timeline import Timeline

# What systemd expands in the command line of a unit: ${NAME} anywhere, $NAME as a word.
_EXPANDED = re.compile(r"\$\{|^\$[A-Za-z_]")


class Params(Model):
    """Programs with their arguments, one list item per word; they run as root and without a shell."""

    inject: list[str] = Field(min_length=1, description="The program that injects the fault.")
    undo: list[str] | None = Field(
        None,
        min_length=1,
        description="The program that restores the host. It must be harmless if it runs twice or without "
        "the fault. A step without undo needs allow: [irreversible].",
    )
    proof: list[str] | None = Field(
        None,
        min_length=1,
        description="A read-only program whose exit code shows the fault. It runs on all targets every few seconds.",
    )
    proof_exit: int = Field(
        0, ge=0, le=255, alias="proof-exit", description="The exit code of the proof while the fault is in force."
    )
    timeout: DurationText = Field("30s", description="How long inject and undo may run.")

    @field_validator("undo")
    @classmethod
    def _validate_undo(cls, value: list[str] | None) -> list[str] | None:
        for word in value or ():
            if _EXPANDED.search(word):
                raise ValueError(f"{word!r}: the failsafe timer runs it, and systemd would expand the variable")
        return value

    @model_validator(mode="after")
    def _validate_programs(self) -> Self:
        for argv in (self.inject, self.undo, self.proof):
            if argv is not None and not argv[0]:
                raise ValueError("the first word is a program, not empty")
        return self


class CommandState(Struct, frozen=True):
    """The programs; the proof's reference and its exit code before the fault; the failsafe timer."""

    inject: tuple[str, ...]
    undo: tuple[str, ...]
    timeout: float
    proof: str
    previous_exit: int | None
    tag: Tag
    seconds: float


def _reference(proof: list[str]) -> str:
    return str(FactRef("command-exit", {"argv": shlex.join(proof)}))


def _check_proof(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by the proof's exit code, until the effect is ended on purpose."""
    proof, expected = step.params.get("proof"), step.params.get("proof-exit", 0)
    if not isinstance(proof, list):
        return no_proof("the step has no proof")
    what = f"`{shlex.join(map(str, proof))}` exits with {expected}"
    return holds_until(_reference(proof), lambda value: value == expected, what).check(timeline, step)


def _needs(params: Params) -> Needs:
    proof = (_reference(params.proof),) if params.proof else ()
    return Needs(proof, proof)


def _prepare(target: Target, params: Params) -> CommandState:
    proof = _reference(params.proof) if params.proof else ""
    previous = target.require_fact(proof, "it proves the fault") if proof else None
    if proof and previous == params.proof_exit:
        raise Unsupported(
            f"{target.node}: the proof exits with {previous} before the fault, so it would prove nothing",
            hint="undo an earlier fault, or correct proof and proof-exit",
        )
    return CommandState(
        inject=tuple(params.inject),
        undo=tuple(params.undo or ()),
        timeout=parse_duration(params.timeout),
        proof=proof,
        previous_exit=previous,
        tag=target.tag,
        seconds=target.max_duration,
    )


def _program(state: CommandState) -> Program:
    inject = HostCommand(state.inject, timeout=state.timeout)
    previous = (FactCheck(state.proof, state.previous_exit),) if state.proof else ()
    if not state.undo:
        return Program((inject,), preconditions=previous)
    step = UndoStep(HostCommand(state.undo, timeout=state.timeout), unless=previous[0] if previous else None)
    return Program(
        (inject,),
        Undo((step,), (*previous, NODE_READY)),
        preconditions=previous,
        failsafe=failsafe_timer(state, *state.undo),
    )


ACTION = Action(
    name="command",
    summary="run a program on the host, with undo and proof from the experiment",
    description="""
    For faults without an action, such as stopping another service. The experiment must allow it:
    `allow: [custom]`.

    If you give ``undo``, a failsafe timer on the host runs it if nodefall cannot. If you give ``proof``, the undo is
    proven once the program exits with the same code as before the fault. Without ``proof``, the only evidence is exit
    code 0 of ``inject``, which is a weak proof, and the undo counts as done once it exits with 0.
    """,
    example=(
        "{name: stop-cron, action: command, target: victim, with: {inject: [systemctl, stop, cron.service],"
        " undo: [systemctl, start, cron.service], proof: [systemctl, is-active, --quiet, cron.service], proof-exit: 3}}"
    ),
    params=Params,
    state=CommandState,
    undo_kind=UndoKind.RESTORES,
    undo_param="undo",
    allowance="custom",
    may_disconnect=True,
    proofs=(Proof("command-exit", _check_proof), EXIT_CODE_ZERO),
    needs=_needs,
    prepare=_prepare,
    program=_program,
)
