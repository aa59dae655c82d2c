"""A program with the live view, without a cluster: ``python -m tests.kit.live_program HOW``.

HOW is ``run``: until SIGINT; ``crash``: an exception ends it; ``bug``: drawing fails; ``short``: it ends by itself.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from types import FrameType

from chaos.cli.run.live import BestEffortProgress, make_progress
from chaos.cli.run.view import frame as frames
from chaos.core.result import Judgement
from tests.kit.live_views import META, START, named, pending
from tests.kit.small_timelines import timeline_of


def main(how: str) -> None:
    """Run as a run does, for its view."""
    logging.basicConfig(filename="view.log", level=logging.DEBUG)
    stopped, count = threading.Event(), 0

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        stopped.set()

    signal.signal(signal.SIGINT, stop)
    if how == "bug":
        frames.frame = _fail  # type: ignore[assignment]
    progress = BestEffortProgress(make_progress(sys.stderr))
    try:
        progress.phase("plan")
        progress.phase("arm")
        timeline = timeline_of((START, "nodes", "ADDED", named("True", "worker-1")))
        timeline.meta.update(META)
        for second in range(3 if how == "short" else 100_000):
            progress.tick(START + second)
            progress.judged(Judgement((pending("pods end", "2 of 5", 100_000.0),), (), timeline, START + 200_000))
            progress.note(f"second {second}")
            if how == "crash" and second == 10:
                raise RuntimeError("the run crashes")
            if stopped.wait(0.05) or (how == "bug" and second == 10):
                break
        progress.note(f"stopped by {count}")
    finally:
        progress.close()
    sys.stdout.write(f"the end, report: {progress.opens_report}\n")


def _fail(*_arguments: object) -> None:
    raise KeyError("cannot draw")


if __name__ == "__main__":
    main(sys.argv[1])
