"""The kinds of plug-ins that experiments and inventories name, and what nodefall calls of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chaos.core.action import Action, AnyAction, Needs, Program, Proof, ProofResult, ProofStatus
from chaos.core.assertion import Claim, Undecidable
from chaos.core.blame import Blame, Hook, Kind
from chaos.core.command import HostCommand, Outcome, PowerState
from chaos.core.fact import HostFact
from chaos.core.power_identity import PowerIdentity, PowerRisk
from chaos.core.signal import SubjectSet


def _unproven(why: str) -> ProofResult:
    return ProofResult(ProofStatus.UNPROVEN, why)


def _undecided(why: str) -> SubjectSet:
    raise Undecidable(why, "a plug-in that works")


_PROOF = Hook(ProofResult, raises=(), instead=_unproven)
_ASSERTION_HOOKS = {
    "subjects": Hook(SubjectSet, raises=(Undecidable,), instead=_undecided),
    "claim": Hook(Claim, raises=()),
    "uses_controller_manager": Hook(bool, raises=()),
}
_FACT_HOOKS = {
    "bind": Hook(HostFact, raises=(ValueError,)),
    "command_for": Hook(HostCommand, raises=(ValueError,)),
    "parse": Hook(raises=(ValueError,)),
}


def _guard_action(action: AnyAction, blame: Blame) -> AnyAction:
    guarded: dict[str, Any] = {
        "prepare": blame.guard(action.prepare, "prepare", Hook(action.state)),
        "program": blame.guard(action.program, "program", Hook(Program, raises=())),
        "proofs": tuple(_guard_proof(proof, blame) for proof in action.proofs),
    }
    if callable(action.needs):
        guarded["needs"] = blame.guard(action.needs, "needs", Hook(Needs, raises=()))
    if action.check_order is not None:
        guarded["check_order"] = blame.guard(action.check_order, "check_order", Hook())
    return replace(action, **guarded)


def _guard_proof(proof: Proof, blame: Blame) -> Proof:
    return replace(proof, check=blame.guard(proof.check, f"proof {proof.name}", _PROOF))


ACTION = Kind("action", Action, _guard_action)
ASSERTION = Kind(
    "assertion",
    ("name", "summary", "example", "needs", "params", "node_fields", "moment_fields", "subjects"),
    lambda assertion, blame: blame.guard_methods(assertion, _ASSERTION_HOOKS),
)
FACT = Kind("fact", HostFact, lambda fact, blame: blame.guard_methods(fact, _FACT_HOOKS))

_NOTHING = type(None)
_POWER_SECONDS = 300.0  # some providers answer when the machine has stopped
_CONTROL_HOOKS = {
    "capabilities": Hook((frozenset, set)),
    "state": Hook(PowerState),
    **dict.fromkeys(("on", "off", "soft_off", "set_restart_policy"), Hook(_NOTHING, seconds=_POWER_SECONDS)),
    "is_stopping": Hook(bool),
    "restart_policy": Hook(str),
    "identity": Hook(PowerIdentity),
    "risks": Hook(tuple, items=PowerRisk, adapt=lambda found, *_: tuple(found)),
    "interfaces": Hook(tuple, items=str, adapt=lambda found, *_: tuple(found)),
}
_SESSION_HOOKS = {"run": Hook(Outcome, seconds=None), "arm": Hook(seconds=None), "close": Hook(seconds=None)}
_TRANSPORT_HOOKS = {
    "open_session": Hook(seconds=None, adapt=lambda session, blame, *_: blame.guard_methods(session, _SESSION_HOOKS)),
    "jump_hosts": Hook((list, tuple)),
    "known_keys": Hook(frozenset),
    "local_problems": Hook((list, tuple, _NOTHING)),
    "sudo_user": Hook(str),
}


def _guard_power(driver: Any, blame: Blame) -> Any:
    """A driver of :mod:`chaos.machines.driver`, which is above: a record of settings and ``make``."""
    hook = Hook(adapt=lambda control, blame, *_: blame.guard_methods(control, _CONTROL_HOOKS))
    return replace(driver, make=blame.guard(driver.make, "make", hook))


POWER = Kind("power control", ("name", "settings", "make", "moves"), _guard_power)
TRANSPORT = Kind(
    "transport",
    ("name", "options", "systems", "needs_kubelet", "open_session"),
    lambda driver, blame: blame.guard_methods(driver, _TRANSPORT_HOOKS),
)
