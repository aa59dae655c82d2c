"""Writes docs/screenshots/: the first screen of a report for each way a run ends, on a desktop and on a phone.

Run `python tools/screenshots.py` after a change of the report's looks; it needs Chromium, and renders the runs that
tests/recordings/reported holds. With `--record` it makes these runs again on the lab first, which takes a minute.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from bench_report_page import recording, result_of

from chaos.core.store.recording import build_timeline
from chaos.reports.run import html
from tests.kit.browser import CHROMIUM, NO_CHROMIUM, Browser
from tests.kit.reported_runs import SCENES, Made, load, record

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "screenshots"
SIZES = {"": (1400, 900), "-phone": (390, 844)}
NODES = 1000
LARGE = f"{NODES}-nodes"


def main() -> int:
    """Write the pictures of the runs that are named, or of all; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join([*SCENES, LARGE])}; all by default")
    parser.add_argument("--record", action="store_true", help="make the runs again on the lab")
    options = parser.parse_args()
    if CHROMIUM is None:
        sys.exit(NO_CHROMIUM)
    names = options.names or [*SCENES, LARGE]
    with tempfile.TemporaryDirectory() as folder:
        if options.record:
            for name in SCENES.keys() & set(names):
                (Path(folder) / name).mkdir()
                record(name, Path(folder) / name)
        for file in pictures(names, Path(folder)):
            print(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1000:.0f} kB")  # noqa: T201
    return 0


def pictures(names: list[str], folder: Path) -> Iterator[Path]:
    """Take them one by one; ``folder`` is for the reports."""
    FOLDER.mkdir(exist_ok=True)
    with Browser() as browser:
        for name in names:
            report = folder / f"{name}.html"
            report.write_text(html.render(*_made(name)), encoding="utf-8")
            for suffix, (width, height) in SIZES.items():
                page = browser.page(report, width=width, height=height)
                page.frame()
                page.screenshot(FOLDER / f"{name}{suffix}.png")
                page.close()
                yield FOLDER / f"{name}{suffix}.png"


def _made(name: str) -> Made:
    if name != LARGE:
        return load(name)
    timeline = build_timeline(recording(NODES))
    return result_of(timeline), timeline


if __name__ == "__main__":
    sys.exit(main())
