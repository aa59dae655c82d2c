"""The run of ``nodefall demo``: an experiment in the process of its simulated cluster."""

from __future__ import annotations

import secrets
import sys
from contextlib import closing
from pathlib import Path

import msgspec

from chaos.app.lab_spec import lab_spec
from chaos.app.run.results import Run
from chaos.cli.bundled import bundled_path
from chaos.cli.log_options import is_verbose
from chaos.cli.run.gc_tuning import tune_gc
from chaos.cli.run.paced_progress import PacedProgress
from chaos.cli.run.progress import BestEffortProgress, can_redraw, make_progress
from chaos.cli.run.run_impl import OutputOptions, open_report, print_result
from chaos.core.clock import SystemClock
from chaos.core.inventory import Lab
from chaos.documents.inventory import load_inventory
from chaos.engine.load import load
from chaos.lab.facade import LabSpec
from chaos.rehearsal.run import RehearsalOptions
from chaos.rehearsal.stored import rehearse_and_store

_WATCHED_PACE = 40.0  # seconds of cluster time per second where a view is redrawn: 100 s in 2.5 s


def run_demo(reports: Path, output: OutputOptions) -> int:
    """Run, print the result on stdout, and return the exit code. Raises NodefallError."""
    tune_gc()
    plain = output.plain or is_verbose()
    display = make_progress(sys.stderr, force_plain=plain, quiet=output.quiet)
    with closing(BestEffortProgress(display)) as progress, closing(SystemClock()) as clock:
        progress.note("simulating a cluster in this process")
        is_watched = not (plain or output.quiet) and can_redraw(sys.stderr)
        shown = PacedProgress(progress, clock, _WATCHED_PACE) if is_watched else progress
        done = _rehearse(reports, RehearsalOptions(progress=shown), clock.now())
    open_report(progress, done)
    return print_result(done, output)


def _rehearse(reports: Path, options: RehearsalOptions, now: float) -> Run:
    seed = secrets.randbits(32)
    loaded = load(bundled_path("experiments/graceful-poweroff.yaml"))
    lab = load_inventory(bundled_path("hosts/lab.yaml")).lab or Lab()
    spec = msgspec.convert(lab_spec(lab, seed, now), LabSpec)
    return rehearse_and_store(loaded, spec, seed, reports, options)
