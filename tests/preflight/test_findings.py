"""What findings touch, what stops a run, and what --anyway may set aside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from chaos.model.errors import Exit, Refused, RequirementUnmet
from chaos.preflight.check import Check, Diagnosis, experiment_refusal, refusal, warning
from chaos.preflight.findings import Finding, overall_exit, refuse, run_checks, warnings
from chaos.preflight.observations import ClusterObservations, ExperimentNeeds, Need
from tests.kit.preflightkit import CHECKS, USE, host, signs

A = ExperimentNeeds("a", frozenset({Need.HOST}), ("n1", "n2"))
B = ExperimentNeeds("b", frozenset({Need.GRACEFUL}), ("n2",))
C = ExperimentNeeds("c", frozenset())  # about the cluster


class Says(Check):
    """What a test wants it to."""

    name = "says"
    summary = "nothing"

    def __init__(self, *diagnoses: Diagnosis, final: bool = False, fit: bool = False) -> None:
        self._diagnoses, self.is_final, self.is_compatibility_check = diagnoses, final, fit

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        yield from self._diagnoses


def found(*checks: Check, shipped: bool = False, uses: tuple[ExperimentNeeds, ...] = (A, B, C)) -> list[Finding]:
    numbered = {str(number): check for number, check in enumerate(checks)}
    return run_checks(numbered, signs(uses=uses), bundled=shipped)


TOUCHED = [
    (refusal("x"), ("a", "b", "c")),
    (refusal("x", needs=frozenset({Need.HOST})), ("a",)),
    (refusal("x", needs=frozenset({Need.HOST, Need.GRACEFUL})), ("a", "b")),
    (refusal("x", host="n1"), ("a",)),
    (refusal("x", host="n2"), ("a", "b")),
    (refusal("x", host="n1", needs=frozenset({Need.GRACEFUL})), ()),
    (experiment_refusal(B, "x"), ("b",)),
    (experiment_refusal(B, "x", host="n1"), ()),
]


@pytest.mark.parametrize(("diagnosis", "names"), TOUCHED)
def test_which_experiments_are_touched(diagnosis: Diagnosis, names: tuple[str, ...]) -> None:
    assert found(Says(diagnosis))[0].experiments == names


ENDS = [
    ([], Exit.HELD),
    ([warning("x")], Exit.HELD),
    ([refusal("x")], Exit.REFUSED),
    ([experiment_refusal(A, "x")], Exit.INCONCLUSIVE),
    ([experiment_refusal(A, "x", host="n1")], Exit.INCONCLUSIVE),
    ([experiment_refusal(A, "x"), experiment_refusal(B, "y", host="n2"), experiment_refusal(C, "z")], Exit.REFUSED),
    (
        [
            experiment_refusal(A, "x", host="n1"),
            experiment_refusal(A, "x", host="n2"),
            experiment_refusal(B, "y"),
            experiment_refusal(C, "z"),
        ],
        Exit.REFUSED,
    ),
    (
        [experiment_refusal(A, "x", host="n1"), experiment_refusal(B, "y"), experiment_refusal(C, "z")],
        Exit.INCONCLUSIVE,
    ),
    ([refusal("x", host="n1", needs=frozenset({Need.GRACEFUL}))], Exit.HELD),  # it stops nobody
]


@pytest.mark.parametrize(("diagnoses", "code"), ENDS)
def test_the_exit_code(diagnoses: list[Diagnosis], code: Exit) -> None:
    assert overall_exit(found(Says(*diagnoses)), (A, B, C)) is code


def test_shipped_experiments_that_do_not_fit_are_only_noted() -> None:
    fit, own = Says(experiment_refusal(A, "x"), fit=True), Says(refusal("y", needs=frozenset({Need.GRACEFUL})))
    assert [f.severity for f in found(fit, own)] == ["refusal", "refusal"]
    assert [(f.severity, f.message, f.is_incompatible) for f in found(fit, own, shipped=True)] == [
        ("refusal", "y", False),
        ("note", "x", True),
    ]


def test_a_refusal_stops_unless_it_is_set_aside() -> None:
    one = found(Says(refusal("no lock", "restart it"), warning("hm")), uses=(A,))
    with pytest.raises(Refused, match="no lock") as stopped:
        refuse(one, anyway=False)
    assert stopped.value.hint == "restart it; --anyway runs it all the same, as inconclusive at best"
    assert refuse(one, anyway=True) == ("says: no lock",)
    assert [finding.message for finding in warnings(one)] == ["hm"]


def test_what_is_final_is_never_set_aside() -> None:
    both = found(Says(refusal("no lock")), Says(refusal("it is us"), final=True), uses=(A,))
    with pytest.raises(Refused, match="it is us") as stopped:
        refuse(both, anyway=True)
    assert "--anyway" not in stopped.value.hint
    with pytest.raises(Refused, match=r"no lock \(and 1 more: it is us\)"):
        refuse(both, anyway=False)


def test_guards_are_final() -> None:
    final = {name for name, check in CHECKS.items() if check.is_final}
    assert {"ourselves", "permissions", "lock", "debts", "timers", "targets", "steps", "reachable", "sudo"} <= final
    assert not final & {"kubelet-inhibitor", "inhibit-delay", "budgets", "webhooks", "requires", "remediators"}


def test_a_refusal_that_touches_no_experiment_stops_none() -> None:
    gone = run_checks(CHECKS, signs(host(kubelet_inhibitor=False), uses=(replace(USE, needs=frozenset({Need.DOWN})),)))
    assert refuse(gone, anyway=False) == ()


@pytest.mark.parametrize(("value", "error"), [("0s", RequirementUnmet), (None, Refused)])
def test_a_requirement_that_is_not_met_is_told_from_other_refusals(value: str | None, error: type[Refused]) -> None:
    use = replace(USE, requires={"kubelet": {"shutdownGracePeriod": ">0"}}, nodes=("n1",))
    config = {} if value is None else {"shutdownGracePeriod": value}
    with pytest.raises(Refused) as stopped:
        refuse(run_checks(CHECKS, signs(host(configz=config), uses=(use,))), anyway=False)
    assert type(stopped.value) is error
    assert "requires kubelet.shutdownGracePeriod >0" in stopped.value.message
