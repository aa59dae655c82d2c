"""The page in a real browser: the script runs under the content security policy and draws every lane."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.model.result import RunResult
from chaos.model.timeline import Timeline
from chaos.report import html

Made = tuple[RunResult, Timeline]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed to open the page in")


def dump(page: str, folder: Path) -> str:
    """Return the document after its script ran."""
    file = folder / "report.html"
    file.write_text(page, encoding="utf-8")
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
    argv = [str(CHROMIUM), *flags, f"--user-data-dir={folder}/profile", "--dump-dom", file.as_uri()]
    return subprocess.run(argv, capture_output=True, text=True, timeout=100, check=True).stdout


def body_of(dom: str) -> dict[str, str]:
    found = re.search(r"<body([^>]*)>", dom)
    assert found
    return dict(re.findall(r'data-(\w+)="([^"]*)"', found[1]))


def test_script_draws_a_lane_per_node_and_changed_pod(recorded: Made, tmp_path: Path) -> None:
    dom = dump(html.render(*recorded), tmp_path)
    assert body_of(dom) == {"drawn": "true", "lanes": "20"}  # 4 nodes, 16 pods
    assert 'class="chosen"' in dom  # the violated verdict


def test_hostile_text_neither_runs_nor_breaks_the_script(hostile: Callable[[str], Made], tmp_path: Path) -> None:
    code = "document.body.dataset.owned=1"
    bad = f"</script><script>{code}</script><img src=x onerror='{code}'>\x00'\""
    dom = dump(html.render(*hostile(bad)), tmp_path)
    assert body_of(dom) == {"drawn": "true", "lanes": "2"}


def test_run_without_observations_is_drawn(recorded: Made, tmp_path: Path) -> None:
    assert body_of(dump(html.render(recorded[0], Timeline()), tmp_path)) == {"drawn": "true", "lanes": "0"}
