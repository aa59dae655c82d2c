"""The collector's settings in the process of a run, each in a separate process."""

from __future__ import annotations

import subprocess
import sys


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_run_is_tuned_before_anything_else() -> None:
    code = """
import gc
from pathlib import Path
from chaos.cli.run.run import OutputOptions, RunOptions, run_and_report
from chaos.core.errors import UsageError
try:
    run_and_report(RunOptions(None, None, Path("reports")), OutputOptions(plain=True))
except UsageError:
    print(gc.get_threshold()[0] > 10_000)
"""
    assert run_python(code) == "True\n"


def test_what_survives_is_examined_once_and_cyclic_garbage_is_freed() -> None:
    code = """
import gc, weakref
from chaos.cli.process import tune_gc
class Cycle:
    def __init__(self): self.me = self
tune_gc()
frozen = gc.get_freeze_count()
kept = [[] for _ in range(60_000)]
garbage = weakref.ref(Cycle())
gc.collect()
print(gc.get_freeze_count() - frozen >= 60_000, len(gc.get_objects()) < 1_000, garbage())
"""
    assert run_python(code) == "True True None\n"
