"""The judge and the oracle on the same pairs of a recording and an expectation."""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from chaos import api
from tests.oracle import evaluate
from tests.oracle.generate import Generator, namespace_of, probed
from tests.oracle.mutate import MUTATIONS, SAME, mutate
from tests.oracle.question import Case
from tests.oracle.shrink import Failure
from tests.oracle.world import Obj, World, read, write

EFFECTIVE = True  # what an expectation means that does not say ``as``
SURE = ("held", "violated")
RECORDINGS = Path(__file__).parents[1] / "recordings"
COLUMNS = ("agree", "judge undecided", "oracle undecided", "both undecided", "reversed")
Call = tuple[Path, int, int, int]


@dataclass(slots=True)
class Tally:
    """Counts by assertion and operator, those of mutated recordings apart, and what was reversed.

    ``reasons``: why the judge does not decide what the oracle does, on recordings as they are.
    """

    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    pairs: int = 0

    def add(self, other: Tally) -> None:
        self.counts += other.counts
        self.reasons += other.reasons
        self.failures += other.failures
        self.pairs += other.pairs

    def count(self, expectation: Obj, operator: str, judged: str, right: str, because: str | None = None) -> None:
        """``because``: of a recording as it is, None of a mutated one."""
        self.pairs += 1
        if because is not None and because.startswith("foreign fault"):  # as documented: somebody else interfered
            judged = right = "inconclusive"
        what = "judge undecided" if judged not in SURE else "oracle undecided"
        if judged == right:
            what = "agree" if judged in SURE else "both undecided"
        what = "reversed" if opposite(judged, right) else what
        subject = "order" if because is not None and "order" in expectation else expectation.get("assert", "order")
        self.counts["mutated" if because is None else subject, operator, what] += 1
        if because is not None and what == COLUMNS[1]:
            self.reasons[f"{subject} {operator}: {_general(because)}"] += 1

    def table(self) -> str:
        """One line for each assertion and operator."""
        rows = sorted({key[:2] for key in self.counts})
        lines = [f"{'':20}{'':9}" + "".join(f"{c:>18}" for c in COLUMNS)]
        lines += [f"{a:20}{o:9}" + "".join(f"{self.counts[a, o, c]:18}" for c in COLUMNS) for a, o in rows]
        total = [sum(n for k, n in self.counts.items() if k[2] == c) for c in COLUMNS]
        reasons = [f"{n:6}  {reason}" for reason, n in self.reasons.most_common(60)]
        return "\n".join([*lines, f"{'all':29}" + "".join(f"{n:18}" for n in total), "", *reasons])


def _general(because: str) -> str:
    """A reason without names and numbers."""
    return re.sub(r"[\w./-]*\d[\w./:-]*", "N", because)[:150]


def recordings() -> list[Path]:
    """Those in tests."""
    return sorted(RECORDINGS.rglob("*.jsonl.gz"))


def operator_of(expectation: Obj) -> str:
    if "order" in expectation:
        return "order"
    word = next((o for o in ("within", "never", "always") if o in expectation), "moment")
    if word == "within":
        return "for" if "for" in expectation else word
    return "until" if "until" in expectation[word] else word


def opposite(one: str, other: str) -> bool:
    return {one, other} == set(SURE)


class Subject:
    """A recording, and how both judge expectations about it."""

    def __init__(self, path: Path, folder: Path, seed: int) -> None:
        self.name, self.path, self.folder = path.name, folder / "original.jsonl.gz", folder
        self.entries = probed(read(path), seed)
        write(self.path, self.entries)
        self.world = World(self.entries)
        self.namespace = namespace_of(self.world)
        self.generator = Generator(self.world, self.namespace, seed)
        self.generator = Generator(self.world, self.namespace, seed, self._unproven())

    @property
    def bound(self) -> dict[str, list[str]]:
        return {"workload": [self.namespace], **self.generator.targets}

    def _unproven(self) -> tuple[str, ...]:
        """Steps that would make every verdict inconclusive."""
        trivial = {"assert": "nodes-ready", "with": {"not-ready-at-most": 99}, "within": "1s"}
        result = self.result(self.generator.experiment([trivial]), self.path)
        return tuple(step.step for step in result.steps if step.proof_status != "proven")

    def result(self, experiment: Obj, recording: Path) -> api.RunResult:
        path = self.folder / "experiment.yaml"
        path.write_text(json.dumps(experiment), encoding="utf-8")
        return api.judge(recording, api.load(path), bind=self.bound).result

    def case(self, world: World) -> Case:
        return Case(world, self.generator.targets, self.namespace, self.generator.steps[0].name, EFFECTIVE)

    def judged(self, expectations: Iterable[Obj], recording: Path) -> dict[str, api.Verdict]:
        experiment = self.generator.experiment(list(expectations))
        return {v.name: v for v in self.result(experiment, recording).hypothesis}

    def one(self, name: str, named: dict[str, Obj], entries: list[Obj]) -> tuple[str, str]:
        """The verdicts of the judge and the oracle on one expectation."""
        path = self.folder / "one.jsonl.gz"
        write(path, entries)
        verdict = self.judged(self.parts(name, named), path)[name]
        return str(verdict.status), evaluate.judge(self.case(World(entries)), named[name], named)

    @staticmethod
    def parts(name: str, named: dict[str, Obj]) -> list[Obj]:
        """An expectation, and those that it orders."""
        return [*(named[n] for n in named[name].get("order", ())), named[name]]


def compare(path: Path, number: int, seed: int, mutations: int = 1) -> Tally:
    """So many random expectations about a recording as it is, and on so many mutated ones."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as name:
        subject = Subject(path, Path(name), seed)
        if not subject.generator.steps:
            return tally
        named = {h["name"]: h for h in subject.generator.hypotheses(number)}
        truth = {n: evaluate.judge(subject.case(subject.world), h, named) for n, h in named.items()}
        plain = subject.judged(named.values(), subject.path)
        for n, h in named.items():
            status = str(plain[n].status)
            tally.count(h, operator_of(h), status, truth[n], plain[n].because)
            if opposite(status, truth[n]):
                found = _failure(subject, "the opposite of the oracle", n, named, plain[n], truth[n])
                tally.failures.append(found)
        _states(subject, tally, number // 8)
        for i in range(mutations):
            _mutated(subject, tally, named, truth, plain, seed * 7919 + i)
    return tally


def _states(subject: Subject, tally: Tally, number: int) -> None:
    """Of some statements: the steady state, and the recovery of it."""
    drawn = [subject.generator.statement(f"s{i}") for i in range(number)]
    within = subject.generator.random.uniform(1, 200)
    experiment = subject.generator.experiment(
        [{"assert": "nodes-ready", "with": {"not-ready-at-most": 99}, "within": "1s"}], drawn, f"{within:.3f}s"
    )
    result, case = subject.result(experiment, subject.path), subject.case(subject.world)
    is_steady = all(evaluate.steady(case, statement) == "held" for statement in drawn)
    for word, verdicts in (("steady", result.steady_state), ("recovery", result.recovery)):
        for statement, verdict in zip(drawn, verdicts, strict=True):
            if word == "recovery" and not is_steady:
                continue  # without a steady state before the fault, a recovery is not judged
            right = evaluate.steady(case, statement) if word == "steady" else evaluate.recovery(case, statement, within)
            tally.count(statement, word, str(verdict.status), right, verdict.because)
            if opposite(str(verdict.status), right):
                failure = Failure(subject.name, word, statement, str(verdict.status), right, verdict.because,
                                  subject.entries, subject.entries, experiment, subject.bound)  # fmt: skip
                tally.failures.append(failure)


def _mutated(
    subject: Subject,
    tally: Tally,
    named: dict[str, Obj],
    truth: dict[str, str],
    plain: dict[str, api.Verdict],
    seed: int,
) -> None:
    kind = sorted(MUTATIONS)[seed % len(MUTATIONS)]
    entries, differs = mutate(subject.entries, kind, seed)
    path = subject.folder / "mutated.jsonl.gz"
    write(path, entries)
    found = subject.judged(named.values(), path)
    case = subject.case(World(entries))
    for n, h in named.items():
        if differs and differs(h):
            continue
        status, before = str(found[n].status), str(plain[n].status)
        right, mine = truth[n] if truth[n] in SURE else before, evaluate.judge(case, h, named)
        tally.count(h, operator_of(h), status, right if opposite(status, right) else mine)
        less = kind == "cut_tail" or (kind == "fewer_proofs" and subject.world.proven)
        rule = broken_rule(kind, before, status, truth[n], less)
        if rule is None and opposite(mine, truth[n]):
            rule = "the oracle contradicts itself"
        if rule:
            tally.failures.append(_failure(subject, f"{kind}: {rule}", n, named, found[n], right, entries))


def broken_rule(kind: str, plain: str, found: str, truth: str, less: bool) -> str | None:
    """Which rule the verdict on the mutated recording breaks."""
    if opposite(found, truth):
        return "the opposite of the oracle"
    if opposite(found, plain):
        return "the opposite of the verdict on the original"
    if kind in SAME and found != plain:
        return "another verdict at another time"
    if less and found in SURE and plain not in SURE:
        return "undecided by more"
    return None


def _failure(
    subject: Subject,
    rule: str,
    name: str,
    named: dict[str, Obj],
    verdict: api.Verdict,
    right: str,
    entries: list[Obj] | None = None,
) -> Failure:
    own = subject.entries if entries is None else entries

    def fails(mutated: list[Obj], original: list[Obj]) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            subject.folder = Path(folder)
            judged, own_truth = subject.one(name, named, mutated)
            before, truth = subject.one(name, named, original) if entries is not None else (judged, own_truth)
        return judged == str(verdict.status) and opposite(judged, truth if truth in SURE else before)

    experiment = subject.generator.experiment(subject.parts(name, named))
    return Failure(subject.name, rule, named[name], str(verdict.status), right, verdict.because,
                   own, subject.entries, experiment, subject.bound, fails)  # fmt: skip


def calls(pairs: int, seed: int, paths: list[Path], mutations: int = 1) -> Iterator[Call]:
    """Calls of :func:`compare` that make so many pairs."""
    each = 40
    for i in range(math.ceil(pairs / (each * (1.25 + mutations)))):
        yield paths[i % len(paths)], each, seed * 100_003 + i, mutations
