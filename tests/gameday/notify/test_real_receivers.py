"""The real Alertmanager and Pushgateway take what is sent to them."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from chaos.cluster.observers.http_client import HttpFailed, http_request
from chaos.core.clock import SystemClock
from chaos.core.errors import NodefallError
from chaos.core.metrics import Metric, Sample
from chaos.gameday.events import EventKind
from chaos.gameday.notify.receivers import Alertmanager, Pushgateway
from tests.kit.day_events import NOW, event, quick
from tests.kit.processes import free_port

ALERTMANAGER, PUSHGATEWAY = shutil.which("prometheus-alertmanager"), shutil.which("prometheus-pushgateway")
CONFIG = "route: {receiver: none}\nreceivers: [{name: none}]\n"
PATIENCE = 20.0  # wall seconds for a program to listen


@contextmanager
def running(program: str, options: Sequence[str]) -> Iterator[str]:
    """Start a program that listens on loopback; its URL."""
    address = f"127.0.0.1:{free_port()}"
    argv = [program, f"--web.listen-address={address}", *options]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _await(f"http://{address}/-/ready")
            yield f"http://{address}"
        finally:
            process.kill()


def _await(url: str) -> None:
    deadline, nap = time.monotonic() + PATIENCE, threading.Event()
    while time.monotonic() < deadline:
        try:
            if http_request("GET", url).status == 200:
                return
        except HttpFailed:
            pass
        nap.wait(0.1)
    raise AssertionError(f"{url} does not answer")


def get(url: str) -> Any:
    return json.loads(http_request("GET", url).body)


@pytest.mark.skipif(not ALERTMANAGER, reason="needs Debian's package prometheus-alertmanager")
class TestAlertmanager:
    @pytest.fixture
    def url(self, tmp_path: Path) -> Iterator[str]:
        (tmp_path / "config.yml").write_text(CONFIG)
        options = [
            f"--config.file={tmp_path}/config.yml",
            f"--storage.path={tmp_path}/data",
            "--cluster.listen-address=",
        ]
        with running(ALERTMANAGER or "", options) as url:
            yield url

    def test_a_silence_from_begin_to_end(self, url: str) -> None:
        now = _wall()
        for _ in range(2):  # the second is a process that goes on with the day
            receiver = Alertmanager(url, {"severity": "warning", "cluster": "prod-a"}, "", quick(), lambda: now)
            receiver.deliver(event(EventKind.DAY_BEGINS))
        states = [each["status"]["state"] for each in get(f"{url}/api/v2/silences")]
        assert sorted(states) in (["active"], ["active", "expired"]), "one is in force"
        _post_alerts(url)
        assert _states(url) == {"Silent": "suppressed", "Loud": "active"}
        receiver.deliver(event(EventKind.DAY_ENDS))
        assert {each["status"]["state"] for each in get(f"{url}/api/v2/silences")} == {"expired"}
        receiver.deliver(event(EventKind.HALTED))  # nothing is left to end

    def test_silences_of_others_do_not_hide_that_of_the_day(self, url: str) -> None:
        """A server that is shared has many, and expired ones for days: more than a bounded answer holds."""
        now = _wall()
        for number in range(30):
            others = event(EventKind.DAY_BEGINS, gameday="other", day=f"{number} {'x' * 40_000}")
            Alertmanager(url, {"team": f"t{number}"}, "", quick(), lambda: now).deliver(others)
        receiver = Alertmanager(url, {"severity": 'war"ning\\'}, "", quick(), lambda: now)
        receiver.deliver(event(EventKind.DAY_BEGINS))
        receiver.deliver(event(EventKind.DAY_ENDS))
        ours = urlencode({"filter": r'severity="war\"ning\\"'})
        found = get(f"{url}/api/v2/silences?{ours}")
        assert [each["status"]["state"] for each in found] == ["expired"]


def _wall() -> float:
    """Seconds since the epoch, as the server has them."""
    with closing(SystemClock()) as clock:
        return clock.now()


def _post_alerts(url: str) -> None:
    """Two alerts; one has the labels of the silence."""
    alerts = [
        {"labels": {"alertname": "Silent", "severity": "warning", "cluster": "prod-a"}},
        {"labels": {"alertname": "Loud", "severity": "critical", "cluster": "prod-a"}},
    ]
    headers = {"Content-Type": "application/json"}
    assert http_request("POST", f"{url}/api/v2/alerts", body=json.dumps(alerts).encode(), headers=headers).status == 200


def _states(url: str) -> dict[str, str]:
    """By alert, once the server has decided."""
    nap = threading.Event()
    for _ in range(100):
        found = {each["labels"]["alertname"]: each["status"]["state"] for each in get(f"{url}/api/v2/alerts")}
        if len(found) == 2 and "unprocessed" not in found.values():
            return found
        nap.wait(0.1)
    raise AssertionError(found)


@pytest.mark.skipif(not PUSHGATEWAY, reason="needs Debian's package prometheus-pushgateway")
class TestPushgateway:
    @pytest.fixture
    def url(self) -> Iterator[str]:
        with running(PUSHGATEWAY or "", []) as url:
            yield url

    def test_the_last_run_of_each_entry_counts(self, url: str) -> None:
        receiver = Pushgateway(url, "", quick())
        receiver.deliver(event(EventKind.ENTRY_ENDS))
        receiver.deliver(event(EventKind.ENTRY_ENDS, entry="reboot"))
        changed = (
            Metric("nodefall_run_verdict", "1 for the verdict of the last run.", (Sample(1.0, {"verdict": "held"}),)),
        )
        receiver.deliver(event(EventKind.ENTRY_ENDS, entry="reboot", metrics=changed))
        receiver.deliver(event(EventKind.DAY_ENDS))
        text = http_request("GET", f"{url}/metrics").body.decode()
        lines = {line for line in text.splitlines() if line.startswith("nodefall")}
        group = 'cluster="prod-a",entry="{}",gameday="monthly",instance="",job="nodefall",verdict="{}"'
        verdicts = {line for line in lines if line.startswith("nodefall_run_verdict")}
        assert verdicts == {
            f"nodefall_run_verdict{{{group.format('drain', 'violated')}}} 1",
            f"nodefall_run_verdict{{{group.format('drain', 'held')}}} 0",
            f"nodefall_run_verdict{{{group.format('reboot', 'held')}}} 1",
        }
        assert any(line.startswith("nodefall_gameday_end_timestamp_seconds") for line in lines)
        assert not any(
            "push_failure" in line and not line.endswith(" 0") for line in text.splitlines() if line[0] != "#"
        )

    def test_metrics_that_it_refuses(self, url: str) -> None:
        invalid = (Metric("no metric", "", (Sample(NOW),)),)
        with pytest.raises(NodefallError, match="it answers 400"):
            Pushgateway(url, "", quick()).deliver(event(EventKind.ENTRY_ENDS, metrics=invalid))
