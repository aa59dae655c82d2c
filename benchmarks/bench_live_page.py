"""What the live page of a run with 1,000 nodes and 30,000 pods costs: CPU time of its messages, and their size.

Run from the repository: ``python benchmarks/bench_live_page.py [NODES]``. Every message has the changes of one second,
150 of them. The server waits after each so that all take less than 5 % of a CPU: the printed interval.
"""

from __future__ import annotations

import statistics
import sys
import time
from itertools import chain

from bench_report_page import RATE, recording, result_of

from chaos.core.store.recording import build_timeline
from chaos.core.timeline import Timeline
from chaos.reports.live.server import INTERVAL, SHARE
from chaos.reports.run.page.live_page import LivePage
from chaos.reports.run.page.page_data import pack_text

WARM, MESSAGES = 20, 30  # seconds of the run before the first message, and after it


def main() -> int:
    """Print the figures."""
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    timeline = build_timeline(recording(nodes))
    page, result = LivePage(), result_of(timeline)
    later = _seconds(timeline)
    first, others = list(chain.from_iterable(later[:WARM])), later[WARM : WARM + MESSAGES]
    begin = time.process_time()
    for entry in first:
        page.add(entry)
    added = time.process_time() - begin
    begin = time.process_time()
    page.update(result, first[-1].t)
    whole = pack_text(page.whole(result))
    made = time.process_time() - begin
    print(f"{nodes:,} nodes, {len(timeline.pods):,} pods, {RATE} entries a second")
    print(f"first page: {added:.1f} s of CPU for {len(first):,} entries, then {made:.1f} s; {len(whole) / 1e6:.2f} MB")
    costs, sizes = [], []
    for entries in others:
        begin = time.process_time()
        for entry in entries:
            page.add(entry)
        sizes.append(len(page.update(result, entries[-1].t)))
        costs.append(time.process_time() - begin)
    median, worst = statistics.median(costs), max(costs)
    print(f"{len(costs)} messages: {median * 1000:.0f} ms of CPU each, at most {worst * 1000:.0f} ms", end="")
    print(f"; {statistics.median(sizes) / 1e3:.0f} kB each")
    print(f"interval at {SHARE:.0%} of a CPU: {max(INTERVAL, median / SHARE):.1f} s")
    return 0


def _seconds(timeline: Timeline) -> list[list]:  # type: ignore[type-arg]
    """The entries by second; the lists of the begin are in the first one."""
    found: list[list] = [[]]  # type: ignore[type-arg]
    for entry in timeline.entries:
        second = int(entry.t - timeline.start)
        while len(found) <= second:
            found.append([])
        found[second].append(entry)
    return [entries for entries in found if entries]


if __name__ == "__main__":
    sys.exit(main())
