"""Forty results of runs, of every ending, whose names and messages are as hostile as a name can be."""

from __future__ import annotations

from itertools import cycle, islice

from msgspec.structs import replace

from chaos.core.action import ProofStatus
from chaos.core.errors import Exit
from chaos.core.result import RunResult, StepResult, UndoResult
from chaos.core.timeline import Timeline
from chaos.core.verdict import Known, Status, Verdict
from tests.kit.reported_runs import SCENES, load
from tests.kit.stored_runs import NOW, result_of

Made = tuple[RunResult, Timeline]
NAMES = (
    "nodes",
    "a <b> & \"c\" 'd' | e `f` \N{MONKEY FACE} ]]> @team #12 <script>alert(1)</script>",
    "line one\nline two\r\n::error::x ##vso[task.logissue] ##[error]y \x1b[31mred \x00",
    "L" * 300,
    "\u2028\u202e\ufffe\ud800 {{7*7}} ${x} %s",
    'quantile="0.99"} 1\n# EOF\\',
)
KNOWN = Known(">=v1.31", "https://example.org/1", "it is late")
ENDINGS = {
    "held": ("3 of 3 held", Exit.HELD, Status.HELD),
    "violated": ("1 of 3 violated", Exit.VIOLATED, Status.VIOLATED),
    "inconclusive": ("1 of 3 inconclusive", Exit.INCONCLUSIVE, Status.INCONCLUSIVE),
    "interrupted": ("interrupted by SIGINT before every verdict was decided", Exit.SIGINT, Status.INCONCLUSIVE),
    "aborted": ("aborted: a step could not be sent", Exit.INCONCLUSIVE, Status.INCONCLUSIVE),
    "refused": ("refused: it requires more", Exit.REFUSED, Status.INCONCLUSIVE),
    "undo pending": ("1 of 3 violated", Exit.UNDO_PENDING, Status.VIOLATED),
    "known": ("2 of 3 held, 1 violated as known", Exit.HELD, Status.HELD),
    "incomplete": ("all expectations held, but the report is incomplete", Exit.INCONCLUSIVE, Status.INCONCLUSIVE),
}


def consumed_runs() -> dict[str, Made]:
    """By name: four of the lab, and each ending with each of four names in turn."""
    found = {f"lab {name}": load(name) for name in SCENES}
    for ending in ENDINGS:
        for number in range(4):
            found[f"{ending} {number}"] = (_result(ending, number), Timeline())
    return found


def not_held(result: RunResult) -> int:
    """How many steps, expectations and undos were not held; at least one if the run was not."""
    verdicts = (*result.steady_state, *result.hypothesis, *result.abort, *result.recovery)
    counts = (
        sum(step.proof_status is not ProofStatus.PROVEN for step in result.steps),
        sum(verdict.status is not Status.HELD and verdict.shown is not Status.KNOWN for verdict in verdicts),
        sum(not undo.proven for undo in result.undo),
    )
    return max(sum(counts), int(result.exit_code != 0))


def _result(ending: str, number: int) -> RunResult:
    """The names begin with another one for each number; two expectations have one name, or none."""
    headline, code, status = ENDINGS[ending]
    names = list(islice(cycle(NAMES), number, number + 4))
    if ending == "refused":
        found: tuple[Verdict, ...] = ()
    else:
        held, other = _verdict(names[0], Status.HELD, names[1]), _verdict(names[0], _worst(ending), names[2])
        found = (held, other, _verdict("pods", Status.HELD, names[3]), _verdict("pods", _worst(ending), names[1]))
    made = result_of(*found, experiment="nasty", title=names[1], headline=f"{headline}: {names[2]}")
    is_begun, is_undone = ending not in ("refused", "interrupted"), ending != "undo pending"
    return replace(
        made,
        status=status,
        exit_code=int(code),
        series=f"{number + 1} of 4" if number else "",
        steps=(_step(names[3], is_proven=ending != "aborted"),) if is_begun else (),
        undo=(UndoResult("cut", "partition", names[1], is_undone, names[2]),) if is_begun else (),
        recovery=(_verdict("recovery: pods", _worst(ending), names[3]),) if is_begun else (),
        notes=(names[3],),
    )


def _worst(ending: str) -> Status:
    """The status of expectations that were not held, in a run that ended so."""
    if ending in ("violated", "undo pending", "known"):
        return Status.VIOLATED
    if ending in ("held", "incomplete"):
        return Status.HELD
    return Status.PENDING if ending == "interrupted" else Status.INCONCLUSIVE


def _verdict(name: str, status: Status, text: str) -> Verdict:
    known = KNOWN if text is NAMES[0] and status is Status.VIOLATED else None
    return Verdict(
        name, "pods", status, text, f"2 pods {text}", text, NOW, NOW - 1, NOW + 1, sentence=text, known=known
    )


def _step(name: str, *, is_proven: bool) -> StepResult:
    status = ProofStatus.PROVEN if is_proven else ProofStatus.UNPROVEN
    return StepResult(name, "partition", "worker-1", NOW, NOW + 1, "answered", f"cut {name}", status, name)
