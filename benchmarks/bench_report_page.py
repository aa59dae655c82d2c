"""The report of a run with 1,000 nodes and 30,000 pods in a real browser: size, load time, and time of a frame.

Run from the repository: ``python benchmarks/bench_report_page.py [NODES]``; needs Chromium. Fewer nodes have fewer
pods. Exit code 1 if a goal is missed: a file under 5 MB, drawn within 1.5 s, and 60 frames a second while panning.
The times depend on other load of the machine: the load of a page is measured three times, and the least is printed.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from judge_load import BEGIN, T0, VICTIM, Cluster

from chaos.core.action import ProofStatus
from chaos.core.recording import RecordingEntry
from chaos.core.result import RESULT_VERSION, RunResult, StepResult
from chaos.core.store.recording import build_timeline
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status, Verdict
from chaos.reports.run.html import render

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.kit.browser import Browser, Page

PODS_PER_NODE, RATE, SECONDS = 30, 150, 180  # RATE: entries a second
SIZE_GOAL, LOAD_GOAL, FRAME_GOAL = 5.0, 1500, 1000 / 60  # MB, ms, ms
LOADS, PANS = 3, 120
SENTENCE = f"Node {VICTIM} did not have Ready=Unknown within 40 s"


def main() -> int:
    """Print size, load time and frame times; exit code 1 if a goal is missed."""
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    timeline = build_timeline(recording(nodes))
    begin = time.process_time()
    page = render(result_of(timeline), timeline)
    seconds = time.process_time() - begin
    size = len(page.encode()) / 1e6
    print(f"{nodes:,} nodes, {len(timeline.pods):,} pods, {len(timeline.entries):,} entries")
    print(f"report.html: {size:.2f} MB, rendered in {seconds:.1f} s of CPU (goal: under {SIZE_GOAL:g} MB)")
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        file = Path(folder) / "report.html"
        file.write_text(page, encoding="utf-8")
        loads = [load(browser, file) for _ in range(LOADS)]
        print(f"drawn after {', '.join(map(str, loads))} ms (goal: under {LOAD_GOAL} ms)")
        slow = max(frames(browser.page(file), show) for show in ("affected", "all"))
    return int(size >= SIZE_GOAL or min(loads) >= LOAD_GOAL or slow > FRAME_GOAL)


def recording(nodes: int) -> Iterator[RecordingEntry]:
    cluster = Cluster(nodes, nodes * PODS_PER_NODE, RATE)
    yield from cluster.listed()
    for second in range(1, SECONDS):
        yield from cluster.second(second)


def result_of(timeline: Timeline) -> RunResult:
    """A result that cites what happened to the node."""
    begin = T0 + BEGIN
    lost = timeline.nodes[VICTIM].last
    step = StepResult("off", "power-cut", VICTIM, begin, begin + 0.3, "answered", "", ProofStatus.PROVEN, "off")
    verdict = Verdict(
        "the node is noticed", "node-condition", Status.VIOLATED, f"Ready of {VICTIM} was True until +45s",
        "Ready=Unknown within 40s", "after 45s", lost.t, begin, begin + 40, (lost.seq,), sentence=SENTENCE,
        operator="within",
    )  # fmt: skip
    return RunResult(
        RESULT_VERSION, "r", "large", "A node of a large cluster goes off", Status.VIOLATED, 1,
        f"1 of 1 violated: {SENTENCE}",
        True, "v1.36.2", "u", T0, timeline.end, {"victim": (VICTIM,)}, (step,), (), (verdict,),
        tally="1 of 1 violated", sentence=SENTENCE,
    )  # fmt: skip


def load(browser: Browser, file: Path) -> int:
    """Milliseconds from the navigation to the complete drawing."""
    page = browser.page(file)
    drawn = int(page.evaluate("document.body.dataset.ready"))
    page.close()
    return drawn


def frames(page: Page, show: str) -> float:
    """Median milliseconds of script for a frame while panning and scrolling, zoomed in fivefold."""
    page.evaluate(f"view.show = '{show}', refresh(), zoom(0.2, 20000), frames.length = 0")
    moves = (
        f"(async () => {{ for (let i = 0; i < {PANS}; i++) {{ pan(i < {PANS // 2} ? 12 : -12);"
        " board.scrollTop += 15; redraw(); await new Promise(requestAnimationFrame); }"
        " return frames; })()"
    )
    begin = time.perf_counter()
    taken: list[float] = sorted(page.evaluate(moves))
    rate = PANS / (time.perf_counter() - begin)
    median, high = statistics.median(taken), taken[int(len(taken) * 0.95)]
    print(f"{show}: {median:.1f} ms a frame, 95th percentile {high:.1f} ms, {rate:.0f} frames a second", end="")
    print(f" (goal: {FRAME_GOAL:.1f} ms)")
    return median


if __name__ == "__main__":
    sys.exit(main())
