"""The text of ``nodefall doctor``: repeated findings are one line, and what cannot be loaded is a note."""

from __future__ import annotations

from pathlib import Path

from chaos.app.doctor import Report
from chaos.cli.setup.doctor import render
from chaos.engine.preflight.check import Severity
from chaos.engine.preflight.findings import Finding

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def text(*findings: Finding, everything: bool = False) -> list[str]:
    report = Report(1, "https://x", kubernetes="v1.36.2", hosts=("n1", "n2"), findings=findings)
    return render(report, everything=everything)[2:-2]


def refused(host: str, message: str, *experiments: str, check: str = "steps", hint: str = "") -> Finding:
    subject = f"host {host}" if host else "cluster"
    return Finding(check, Severity.REFUSAL, subject, message, hint, experiments=experiments)


def test_a_finding_of_many_hosts_and_experiments_is_one_line() -> None:
    findings = [
        refused(host, f"step power-off: {host} has no power control", name, hint=f"give {host} one")
        for host in ("n1", "n2")
        for name in ("a", "b")
    ]
    assert text(*findings) == [
        "refusal  steps              step power-off: n1, n2 has no power control",
        "                            hint: give n1, n2 one",
        "                            affects: a, b",
    ]
    assert len(text(*findings, everything=True)) == 3 * 4


def test_a_message_that_names_its_experiment_is_not_repeated_for_each() -> None:
    findings = [refused("", f"{name}: no Prometheus in the inventory", name, check="prometheus") for name in "abc"]
    assert text(*findings) == [
        "refusal  prometheus         no Prometheus in the inventory",
        "                            affects: a, b, c",
    ]


def test_other_messages_are_other_lines() -> None:
    assert len(text(refused("n1", "x"), refused("n1", "y"), refused("n1", "x", check="sudo"))) == 3


def mismatch(name: str, reason: str) -> Finding:
    return Finding("targets", Severity.NOTE, "cluster", reason, experiments=(name,), is_incompatible=True)


def test_experiments_that_do_not_match_for_the_same_reason_are_one_line() -> None:
    assert text(mismatch("c", "c: too few nodes"), mismatch("a", "a: too few nodes"), mismatch("b", "b: no zone")) == [
        "",
        "do not match this cluster:",
        "  a, c: too few nodes",
        "  b: no zone",
    ]
