"""Whether a recording is a history that the lab can produce."""

from __future__ import annotations

from chaos.lab.replay.build import lab_spec
from chaos.lab.replay.compare import Difference, Result, compare
from chaos.lab.replay.play import play
from chaos.lab.replay.recording import Recording

SEEDS = 48


def replay(recording: Recording, seeds: int = SEEDS) -> Result:
    """The best of so many seeds, the first that matches wholly ends the search. Raises ReplayError.

    Heartbeats are taken from the recording. A seed only decides what leaves no trace and the facts call arbitrary:
    the order of goroutines, as of two nodes in the NoExecute queue or of evictions that are tried again.
    """
    best: Result | None = None
    for seed in range(1, seeds + 1):
        result = _once(recording, seed)
        if best is None or _rank(result) > _rank(best):
            best = result
        if best.same:
            break
    if best is None:
        raise ValueError("seeds must be at least 1")
    return best


def _rank(result: Result) -> tuple[int, int]:
    return result.matched, -len(result.differences)


def _once(recording: Recording, seed: int) -> Result:
    played = play(recording, seed)
    result = compare(recording, played.seen, lab_spec(recording, recording.begin, seed).controllers)
    result.seed = seed
    result.differences += [Difference("scheduler", 0.0, text) for text in played.misplaced]
    return result
