"""Verify that the lab reproduces a recording."""

from __future__ import annotations

from chaos.lab.replay.build import lab_spec
from chaos.lab.replay.compare import Difference, Result, compare
from chaos.lab.replay.play import play
from chaos.lab.replay.recorded_choices import misplaced_bindings
from chaos.lab.replay.recording import Recording

SEEDS = 5


def replay(recording: Recording, seeds: int = SEEDS) -> Result:
    """Best result of up to ``seeds`` seeds; a complete match ends the search. Raises ReplayError.

    Heartbeats and random choices follow the recording (module ``recorded_choices``). A seed only decides what leaves no
    trace, such as the order of goroutines; nearly every seed matches.
    """
    best: Result | None = None
    for seed in range(1, seeds + 1):
        result = _replay_once(recording, seed)
        if best is None or _rank(result) > _rank(best):
            best = result
        if best.is_match:
            break
    if best is None:
        raise ValueError("seeds must be at least 1")
    return best


def _rank(result: Result) -> tuple[int, int]:
    return result.matched, -len(result.differences)


def _replay_once(recording: Recording, seed: int) -> Result:
    observations = play(recording, seed)
    result = compare(recording, observations, lab_spec(recording, recording.start, seed).controllers)
    result.seed, result.findings = seed, list(recording.findings)
    for side, history in (("recording", recording.observations), ("lab", observations)):
        for t, text in misplaced_bindings(history):
            result.matched = max(0, result.matched - 1)
            result.differences.append(
                Difference(f"scheduler of the {side}", round(t - recording.first_operation_time(), 3), text)
            )
    return result
