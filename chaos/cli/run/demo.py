"""The run of ``nodefall demo``: an experiment in the process of its simulated cluster."""

from __future__ import annotations

import secrets
import sys
from contextlib import closing
from pathlib import Path

import msgspec

from chaos.app.lab_spec import lab_spec
from chaos.app.run.results import Run
from chaos.cli.lazy import is_verbose
from chaos.cli.output import can_redraw, tune_gc
from chaos.cli.run.live import BestEffortProgress, Display, make_progress
from chaos.cli.run.run import OutputOptions, open_report, print_result
from chaos.core.clock import SystemClock
from chaos.core.files import bundled_path
from chaos.core.lab_settings import Lab
from chaos.core.ports import Clock
from chaos.documents.inventory import load_inventory
from chaos.engine.load import load
from chaos.lab.facade import LabSpec
from chaos.rehearsal.run import RehearsalOptions, rehearse_and_store

_WATCHED_PACE = 40.0  # seconds of cluster time per second where a view is redrawn: 100 s in 2.5 s


def run_demo(reports: Path, output: OutputOptions) -> int:
    """Run, print the result on stdout, and return the exit code. Raises NodefallError."""
    tune_gc()
    plain = output.plain or is_verbose()
    display = make_progress(sys.stderr, force_plain=plain, quiet=output.quiet)
    is_watched = not (plain or output.quiet) and can_redraw(sys.stderr)
    with closing(SystemClock()) as clock:
        shown = PacedProgress(display, clock, _WATCHED_PACE) if is_watched else BestEffortProgress(display)
        with closing(shown) as progress:
            progress.note("simulating a cluster in this process")
            done = _rehearse(reports, RehearsalOptions(progress=progress), clock.now())
    open_report(progress, done)
    return print_result(done, output)


def _rehearse(reports: Path, options: RehearsalOptions, now: float) -> Run:
    seed = secrets.randbits(32)
    loaded = load(bundled_path("experiments/graceful-poweroff.yaml"))
    lab = load_inventory(bundled_path("hosts/lab.yaml")).lab or Lab()
    spec = msgspec.convert(lab_spec(lab, seed, now), LabSpec)
    return rehearse_and_store(loaded, spec, seed, reports, options)


class PacedProgress(BestEffortProgress):
    """Lets at most ``pace`` seconds of the run pass in a second of ``clock``, as a person has to see them."""

    def __init__(self, display: Display, clock: Clock, pace: float) -> None:
        super().__init__(display)
        self._clock, self._pace = clock, pace
        self._lead: float | None = None  # by how much the first tick's time at this pace was before the clock

    def tick(self, now: float) -> None:
        super().tick(now)
        ahead = now / self._pace - self._clock.now()
        if self._lead is None:
            self._lead = ahead
        if ahead > self._lead:
            self._clock.sleep(ahead - self._lead)
