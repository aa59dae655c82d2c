"""The judge and the oracle on the same pairs of a recording and an expectation."""

from __future__ import annotations

import json
import math
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from chaos import api
from tests.oracle import evaluate
from tests.oracle.generate import Generator, namespace_of
from tests.oracle.mutate import MUTATIONS, NO_MORE, SAME, mutate
from tests.oracle.question import Case
from tests.oracle.world import Obj, World, read, write

SURE = ("held", "violated")
RECORDINGS = Path(__file__).parents[1] / "recordings"


@dataclass(frozen=True, slots=True)
class Reversal:
    """A verdict that is the opposite of another one of the same expectation."""

    recording: str
    rule: str
    expectation: Obj
    judged: str
    right: str
    entries: list[Obj] = field(repr=False)
    experiment: Obj = field(repr=False)
    namespace: str = ""
    because: str = ""

    def command(self) -> str:
        """Write the files, and say how the judge is called."""
        folder = Path(tempfile.mkdtemp(prefix="oracle-"))
        write(folder / "recording.jsonl.gz", self.entries)
        (folder / "experiment.yaml").write_text(json.dumps(self.experiment, indent=1), encoding="utf-8")
        return f"nodefall judge {folder}/recording.jsonl.gz {folder}/experiment.yaml --bind workload={self.namespace}"


@dataclass(slots=True)
class Tally:
    """Counts by assertion and operator, and what was reversed."""

    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    reversals: list[Reversal] = field(default_factory=list)
    pairs: int = 0

    def add(self, other: Tally) -> None:
        self.counts += other.counts
        self.reversals += other.reversals
        self.pairs += other.pairs

    def table(self) -> str:
        """One line for each assertion and operator."""
        columns = ("agree", "judge undecided", "oracle undecided", "both undecided", "reversed")
        rows = sorted({key[:2] for key in self.counts})
        lines = [f"{'':20}{'':8}" + "".join(f"{c:>18}" for c in columns)]
        lines += [f"{a:20}{o:8}" + "".join(f"{self.counts[a, o, c]:18}" for c in columns) for a, o in rows]
        total = [sum(n for k, n in self.counts.items() if k[2] == c) for c in columns]
        return "\n".join([*lines, f"{'all':28}" + "".join(f"{n:18}" for n in total)])


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


class Subject:
    """A recording, and how to judge expectations about it."""

    def __init__(self, path: Path, folder: Path, seed: int) -> None:
        self.path, self.folder = path, folder
        self.entries = read(path)
        self.world = World(self.entries)
        self.namespace = namespace_of(self.world)
        self.generator = Generator(self.world, self.namespace, seed, self._unproven(seed))

    def _unproven(self, seed: int) -> tuple[str, ...]:
        """Steps that would make every verdict inconclusive."""
        generator = Generator(self.world, self.namespace, seed)
        trivial = {"assert": "nodes-ready", "with": {"not-ready-at-most": 99}, "within": "1s"}
        result = self.judged(generator.experiment([trivial]), self.path)
        return tuple(step.step for step in result.steps if step.proof_status != "proven")

    def judged(self, experiment: Obj, recording: Path) -> api.RunResult:
        path = self.folder / "experiment.yaml"
        path.write_text(json.dumps(experiment), encoding="utf-8")
        return api.judge(recording, api.load(path), bind={"workload": [self.namespace]}).result

    def case(self, world: World) -> Case:
        return Case(world, self.generator.targets, self.namespace, self.generator.steps[0].name)


def compare(path: Path, number: int, seed: int, mutations: int = 1) -> Tally:
    """So many random expectations about a recording as it is, and on so many mutated ones."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as name:
        subject = Subject(path, Path(name), seed)
        if not subject.generator.steps:
            return tally
        drawn = subject.generator.hypotheses(number)
        named = {h["name"]: h for h in drawn}
        truth = {n: evaluate.judge(subject.case(subject.world), h, named) for n, h in named.items()}
        experiment = subject.generator.experiment(drawn)
        verdicts = {v.name: v for v in subject.judged(experiment, path).hypothesis}
        plain = {n: str(v.status) for n, v in verdicts.items()}
        for n, h in named.items():
            _count(tally, h, plain[n], truth[n])
            if opposite(plain[n], truth[n]):
                tally.reversals.append(_reversal(subject, "oracle", h, named, plain[n], truth[n], subject.entries))
        for i in range(mutations):
            _mutated(subject, tally, named, truth, plain, seed * 1000 + i)
    return tally


def _mutated(  # noqa: PLR0913
    subject: Subject, tally: Tally, named: dict[str, Obj], truth: dict[str, str], plain: dict[str, str], seed: int
) -> None:
    kind = sorted(MUTATIONS)[seed % len(MUTATIONS)]
    entries, differs = mutate(subject.entries, kind, seed)
    path = subject.folder / "mutated.jsonl.gz"
    write(path, entries)
    experiment = subject.generator.experiment(list(named.values()))
    found = {v.name: str(v.status) for v in subject.judged(experiment, path).hypothesis}
    case = subject.case(World(entries))
    for n, h in named.items():
        if differs and differs(h):
            continue
        right = truth[n] if truth[n] in SURE else plain[n]
        _count(tally, h, found[n], right)
        rule = broken_rule(kind, plain[n], found[n], truth[n])
        if rule:
            tally.reversals.append(_reversal(subject, f"{kind}: {rule}", h, named, found[n], right, entries))
        elif opposite(evaluate.judge(case, h, named), truth[n]):
            mine = f"{kind}: the oracle contradicts itself"
            tally.reversals.append(_reversal(subject, mine, h, named, found[n], truth[n], entries))


def broken_rule(kind: str, plain: str, found: str, truth: str) -> str | None:
    """Which rule the verdict on the mutated recording breaks."""
    if opposite(found, truth):
        return "the opposite of the oracle"
    if opposite(found, plain):
        return "the opposite of the verdict on the original"
    if kind in SAME and found != plain:
        return "another verdict at another time"
    if kind in NO_MORE and found in SURE and plain not in SURE and kind != "fewer_proofs":
        return "undecided by more"
    return None


def opposite(one: str, other: str) -> bool:
    return {one, other} == set(SURE)


def _count(tally: Tally, expectation: Obj, judged: str, right: str) -> None:
    tally.pairs += 1
    if opposite(judged, right):
        what = "reversed"
    elif judged == right:
        what = "agree" if judged in SURE else "both undecided"
    else:
        what = "judge undecided" if judged not in SURE else "oracle undecided"
    tally.counts[expectation.get("assert", "order"), operator_of(expectation), what] += 1


def _reversal(  # noqa: PLR0913
    subject: Subject, rule: str, h: Obj, named: dict[str, Obj], judged: str, right: str, entries: list[Obj]
) -> Reversal:
    parts = [named[n] for n in h.get("order", ())] + [h]
    experiment = subject.generator.experiment(parts)
    return Reversal(subject.path.name, rule, h, judged, right, entries, experiment, subject.namespace)


def pairs_of(pairs: int, seed: int, paths: list[Path], mutations: int = 1) -> Iterator[tuple[Path, int, int, int]]:
    """Calls of :func:`compare` that make so many pairs."""
    each = 40
    for i in range(math.ceil(pairs / (each * (1 + mutations)))):
        yield paths[i % len(paths)], each, seed * 100_003 + i, mutations
