"""``run --serve`` and ``watch`` on a lab, in a real browser: what is seen, Stop, and the final report."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.browser import CHROMIUM, Browser, Page
from tests.kit.live_pages import open_live, problems, until
from tests.kit.processes import WALL, lab, nodefall, start, wait_for, write_experiment

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed to open the page in"),
]
# Goes on for a day: it is stopped before, however slow the machine is.
SPEC: dict[str, Any] = {
    "title": "A cordon that is watched",
    "targets": {"victim": {"role": "worker", "count": 1}},
    "steadyState": [{"assert": "nodes-ready", "with": {"nodes": "all"}}],
    "method": [{"name": "cordon", "action": "cordon", "target": "victim"}],
    "hypothesis": [
        {
            "name": "it stays tainted",
            "assert": "node-taint",
            "with": {"node": "victim", "key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
            "after": "cordon",
            "within": "2s",
            "for": "24h",
        }
    ],
    "maxDuration": "25h",
}
SPEED = 8.0  # cluster seconds in a second: the page is as busy as that of a real cluster, and costs little
STEPPED = "data && data.steps.length && data.verdicts.some((verdict) => verdict.status === 'pending')"
FINAL = "document.body && document.body.dataset.ready && document.querySelector('header.inconclusive')"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as started:
        yield started


def address(process: subprocess.Popen[str]) -> str:
    lines = wait_for(process, "live page: ")
    return str(re.findall(r"live page: (\S+)", lines[-1])[0])


def stop(page: Page) -> None:
    until(page, "!control('stop').disabled")
    page.evaluate("control('stop').click(), control('stop-yes').click()")


def result_in(folder: Path) -> dict[str, Any]:
    return dict(json.loads(next(folder.glob("reports/*/*/result.json")).read_text()))


def test_stop_on_the_page_is_the_first_interrupt_and_the_page_becomes_the_report(
    browser: Browser, tmp_path: Path
) -> None:
    experiment = write_experiment(tmp_path / "watched.yaml", SPEC)
    with lab(tmp_path, speed=SPEED) as inventory:
        run = start("run", experiment, "-i", inventory, "--plain", "--seed", "1", "--serve", cwd=tmp_path)
        url = address(run)
        page = open_live(browser, tmp_path, url)
        until(page, STEPPED)
        assert page.evaluate("data.lanes.flags.filter((flags) => flags & TARGET).length") == 1
        assert until(page, "control('phase').textContent === 'observe'")
        stop(page)
        output, _ = run.communicate(timeout=WALL)
    assert run.returncode == 130, output
    result = result_in(tmp_path)
    assert result["headline"].startswith("interrupted by signal 2")
    assert [undo["proven"] for undo in result["undo"]] == [True]
    until(page, FINAL)
    assert page.evaluate("data.steps[0].name") == "cordon"
    assert problems(page, url) == []
    assert url.rstrip("/").rpartition("/")[2] not in "".join(
        path.read_text(errors="replace") for path in tmp_path.glob("reports/*/*/*") if path.suffix != ".gz"
    ), "the token is stored nowhere"


@pytest.mark.nightly
def test_watch_shows_a_run_of_another_process_and_aborts_it(browser: Browser, tmp_path: Path) -> None:
    experiment = write_experiment(tmp_path / "watched.yaml", SPEC)
    with lab(tmp_path, speed=SPEED) as inventory:
        run = start("run", experiment, "-i", inventory, "--plain", "--seed", "1", cwd=tmp_path)
        wait_for(run, "phase: observe")
        watch = start("watch", "last", cwd=tmp_path)
        url = address(watch)
        page = open_live(browser, tmp_path, url)
        until(page, STEPPED)
        stop(page)
        output, _ = run.communicate(timeout=WALL)
    assert run.returncode == 2, output
    assert "aborted: asked to stop: stopped on the live page" in output
    until(page, FINAL)
    output, _ = watch.communicate(timeout=WALL)
    assert (watch.returncode, "the run has ended; report: " in output) == (0, True), output
    assert problems(page, url) == []
    again = nodefall("watch", "last", cwd=tmp_path)
    assert (again.returncode, "does not go on here" in again.stderr) == (64, True)


@pytest.mark.nightly
def test_watch_of_a_cluster_shows_it_and_who_holds_its_lock(browser: Browser, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with lab(tmp_path, speed=SPEED) as inventory:
        watch = start("watch", "-i", inventory, cwd=elsewhere)
        page = open_live(browser, tmp_path, address(watch))
        assert until(page, "control('phase').textContent") == "no run is active on this cluster"
        assert page.evaluate("data.lanes.kind.filter((kind) => kind === NODE).length") == 4
        experiment = write_experiment(tmp_path / "watched.yaml", SPEC)
        run = start("run", experiment, "-i", inventory, "--plain", "--seed", "1", cwd=tmp_path)
        wait_for(run, "phase: observe")
        assert "is active" in until(
            page, "control('phase').textContent.includes('is active') && control('phase').textContent"
        )
        until(page, "data.taints.start.length > 1")
        stop(page)
        output, _ = run.communicate(timeout=WALL)
        assert run.returncode == 2, output
        until(page, "control('phase').textContent.startsWith('no run')")
        watch.terminate()
        assert watch.wait(WALL) == 143
