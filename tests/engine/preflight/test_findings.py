"""Experiments that findings affect, findings that block a run, and those that --anyway may override."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from chaos.core.errors import Exit, Refused, RequirementUnmet
from chaos.engine.observations import ClusterObservations, ExperimentNeeds, Need
from chaos.engine.preflight.check import Check, Diagnosis, experiment_refusal, refusal, warning
from chaos.engine.preflight.findings import Finding, overall_exit, refuse, run_checks, warnings
from tests.kit.preflightkit import CHECKS, USE, host, observed

A = ExperimentNeeds("a", frozenset({Need.HOST}), ("n1", "n2"))
B = ExperimentNeeds("b", frozenset({Need.GRACEFUL}), ("n2",))
C = ExperimentNeeds("c", frozenset())  # about the cluster


class Reports(Check):
    """Reports the given diagnoses."""

    name = "reports"
    summary = "nothing"

    def __init__(self, *diagnoses: Diagnosis, final: bool = False, is_compatibility: bool = False) -> None:
        self._diagnoses, self.is_final, self.is_compatibility_check = diagnoses, final, is_compatibility

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        yield from self._diagnoses


def found(*checks: Check, bundled: bool = False, experiments: tuple[ExperimentNeeds, ...] = (A, B, C)) -> list[Finding]:
    numbered = {str(number): check for number, check in enumerate(checks)}
    return run_checks(numbered, observed(experiments=experiments), bundled=bundled)


AFFECTED = [
    (refusal("x"), ("a", "b", "c")),
    (refusal("x", needs=frozenset({Need.HOST})), ("a",)),
    (refusal("x", needs=frozenset({Need.HOST, Need.GRACEFUL})), ("a", "b")),
    (refusal("x", host="n1"), ("a",)),
    (refusal("x", host="n2"), ("a", "b")),
    (refusal("x", host="n1", needs=frozenset({Need.GRACEFUL})), ()),
    (experiment_refusal(B, "x"), ("b",)),
    (experiment_refusal(B, "x", host="n1"), ()),
]


@pytest.mark.parametrize(("diagnosis", "names"), AFFECTED)
def test_which_experiments_are_affected(diagnosis: Diagnosis, names: tuple[str, ...]) -> None:
    assert found(Reports(diagnosis))[0].experiments == names


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
    ([refusal("x", host="n1", needs=frozenset({Need.GRACEFUL}))], Exit.HELD),  # it blocks no experiment
]


@pytest.mark.parametrize(("diagnoses", "code"), ENDS)
def test_the_exit_code(diagnoses: list[Diagnosis], code: Exit) -> None:
    assert overall_exit(found(Reports(*diagnoses)), (A, B, C)) is code


def test_bundled_experiments_that_are_incompatible_are_only_noted() -> None:
    fit, own = (
        Reports(experiment_refusal(A, "x"), is_compatibility=True),
        Reports(refusal("y", needs=frozenset({Need.GRACEFUL}))),
    )
    assert [f.severity for f in found(fit, own)] == ["refusal", "refusal"]
    assert [(f.severity, f.message, f.is_incompatible) for f in found(fit, own, bundled=True)] == [
        ("refusal", "y", False),
        ("note", "x", True),
    ]


def test_a_refusal_blocks_unless_it_is_overridden() -> None:
    one = found(Reports(refusal("no lock", "restart it"), warning("hm")), experiments=(A,))
    with pytest.raises(Refused, match="no lock") as caught:
        refuse(one, anyway=False)
    assert caught.value.hint == "restart it; --anyway overrides this; the run is then inconclusive at best"
    assert refuse(one, anyway=True) == ("reports: no lock",)
    assert [finding.message for finding in warnings(one)] == ["hm"]


def test_a_final_refusal_is_never_overridden() -> None:
    both = found(Reports(refusal("no lock")), Reports(refusal("it is us"), final=True), experiments=(A,))
    with pytest.raises(Refused, match="it is us") as caught:
        refuse(both, anyway=True)
    assert "--anyway" not in caught.value.hint
    with pytest.raises(Refused, match=r"no lock \(and 1 more: it is us\)"):
        refuse(both, anyway=False)


def test_guards_are_final() -> None:
    final = {name for name, check in CHECKS.items() if check.is_final}
    assert {
        "self-protection",
        "permissions",
        "lock",
        "pending-undo",
        "failsafe-timers",
        "targets",
        "steps",
        "host-reachable",
        "sudo",
    } <= final
    assert not final & {
        "kubelet-inhibitor",
        "inhibit-delay",
        "budgets",
        "webhooks",
        "kubelet-requirements",
        "remediators",
    }


def test_a_refusal_that_affects_no_experiment_blocks_none() -> None:
    gone = run_checks(
        CHECKS, observed(host(inhibitor_kubelet=False), experiments=(replace(USE, needs=frozenset({Need.DOWN})),))
    )
    assert refuse(gone, anyway=False) == ()


@pytest.mark.parametrize(("value", "error"), [("0s", RequirementUnmet), (None, Refused)])
def test_an_unmet_requirement_is_distinct_from_other_refusals(value: str | None, error: type[Refused]) -> None:
    experiment = replace(USE, requires={"kubelet": {"shutdownGracePeriod": ">0"}}, nodes=("n1",))
    config = {} if value is None else {"shutdownGracePeriod": value}
    with pytest.raises(Refused) as caught:
        refuse(run_checks(CHECKS, observed(host(configz=config), experiments=(experiment,))), anyway=False)
    assert type(caught.value) is error
    assert "requires kubelet.shutdownGracePeriod >0" in caught.value.message


def test_json_has_the_keys_of_0_1_0_beside_the_present_ones() -> None:
    (finding,) = found(Reports(experiment_refusal(A, "no", "fix it"), is_compatibility=True))
    assert finding.to_dict() == {
        "check": "reports", "severity": "refusal", "subject": "cluster", "experiments": ("a",),
        "message": "no", "hint": "fix it", "incompatible": True, "says": "no", "mend": "fix it", "unfit": True,
        "unmet": False, "final": False,
    }  # fmt: skip
