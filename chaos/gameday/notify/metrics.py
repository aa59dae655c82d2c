"""Metrics of the last run of each entry, and of the last day: to a Pushgateway, or to the node exporter.

https://github.com/prometheus/pushgateway#put-method and
https://github.com/prometheus/node_exporter#textfile-collector: files ``*.prom``, replaced as a whole.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from chaos.core.errors import NodefallError
from chaos.core.metrics import Metric, Sample, exposition
from chaos.gameday.notifier import DayEvent, EventKind
from chaos.gameday.notify.requester import Requester, bearer

_READABLE = 0o644  # the node exporter is another user
_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Pushgateway:
    """Each entry, and the day, is a group that replaces its former one."""

    def __init__(self, url: str, token: str, requester: Requester) -> None:
        self._url, self._requester, self._headers = url.rstrip("/"), requester, bearer(token)

    def deliver(self, event: DayEvent) -> None:
        if metrics := day_metrics(event):
            key = {"job": "nodefall", **_group(event)}
            path = "/".join(f"{quote(name, safe='')}/{quote(value, safe='')}" for name, value in key.items())
            headers = {"Content-Type": _CONTENT_TYPE, **self._headers}
            self._requester.send_bytes("PUT", f"{self._url}/metrics/{path}", exposition(metrics).encode(), headers)


class TextfileCollector:
    """Each entry, and the day, is a file that replaces its former one."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def deliver(self, event: DayEvent) -> None:
        if metrics := day_metrics(event):
            group = _group(event)
            path = self._directory / f"nodefall_{'_'.join(group.values())}.prom"
            text = exposition(metric.with_labels(group) for metric in metrics)
            try:
                _replace(path, text.encode())
            except OSError as error:
                raise NodefallError(f"{path} cannot be written: {error.strerror}") from error


def day_metrics(event: DayEvent) -> Sequence[Metric]:
    """The metrics that an event brings, without the labels of their group."""
    if event.kind is EventKind.ENTRY_ENDS:
        return event.metrics
    if event.kind is not EventKind.DAY_ENDS:
        return ()
    runs = tuple(Sample(number, {"verdict": name}) for name, number in event.counts.items())
    ended = Sample(event.at)
    return (
        Metric("nodefall_gameday_runs", "Runs of the last game day, by verdict or status.", runs),
        Metric("nodefall_gameday_end_timestamp_seconds", "When the last game day ended.", (ended,)),
    )


def _group(event: DayEvent) -> Mapping[str, str]:
    """Names of game days, clusters and entries have no character that a path or a file name must not have."""
    labels = {"gameday": event.gameday, "cluster": event.cluster, "entry": event.entry}
    return {name: value for name, value in labels.items() if value}


def _replace(path: Path, data: bytes) -> None:
    """Write the whole file at once: the node exporter may read it at any time. Raises OSError."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).chmod(_READABLE)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
