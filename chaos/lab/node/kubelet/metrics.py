"""Shutdown metrics of the kubelet, their state file, and the Prometheus text format. Facts 4."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal

import msgspec

from chaos.lab.rules import NodeShutdownRules
from chaos.lab.spec import LabSpec

STATE_FILE = "/var/lib/kubelet/graceful_node_shutdown_state"


_ZERO = "0001-01-01T00:00:00Z"


@dataclass(slots=True)
class Metrics:
    """Metrics of one kubelet process. Times in whole Unix seconds, 0 for none."""

    shutdown_start: int = 0
    shutdown_end: int = 0
    rejections: dict[str, int] = field(default_factory=dict)
    process_start: float = 0.0

    def reject(self, reason: str) -> None:
        self.rejections[reason] = self.rejections.get(reason, 0) + 1


def state_file(start: float, end: float | None) -> str:
    """Format the only line of the state file, as STO does."""
    return msgspec.json.encode({"startTime": _nanos(start), "endTime": _ZERO if end is None else _nanos(end)}).decode()


def read_state_file(text: str) -> tuple[int, int]:
    """Parse start and end; zero times give 0. Raises msgspec.DecodeError, KeyError, ValueError."""
    data = msgspec.json.decode(text, type=dict[str, str])
    return _seconds(data["startTime"]), _seconds(data["endTime"])


def go_float(value: float) -> str:
    """Format a float as Go's strconv.FormatFloat(v, 'g', -1, 64), which the Prometheus text format uses."""
    digits = Decimal(repr(float(value))).normalize()
    exponent = digits.adjusted()
    if value == 0:
        return "0"
    if -4 <= exponent < 6:  # strconv: precision 6 decides for the shortest format
        return f"{digits:f}"
    return _scientific(digits, exponent)


def family(name: str, kind: str, values: Mapping[str, float]) -> list[str]:
    """Format the lines of a metric. ``values`` by labels; no lines without values."""
    lines = [f"{name}{labels} {go_float(value)}" for labels, value in values.items()]
    return [f"# TYPE {name} {kind}", *lines] if lines else []


def format_metrics(metrics: Metrics, node: str, spec: LabSpec, running_pods: int, rules: NodeShutdownRules) -> str:
    """Format the response to ``/metrics``."""
    has_rejections = spec.has_feature("admission-rejections")
    by_reason = {f'{{reason="{key}"}}': n for key, n in sorted(metrics.rejections.items()) if has_rejections}
    lines = [
        *_shutdown_gauge(1, metrics.shutdown_end, rules),
        *_shutdown_gauge(0, metrics.shutdown_start, rules),
        *family("kubelet_node_name", "gauge", {f'{{node="{node}"}}': 1}),
        *family("kubelet_running_pods", "gauge", {"": running_pods}),
        *family("kubernetes_build_info", "gauge", {f'{{git_version="{spec.git_version}"}}': 1}),
        *family("process_start_time_seconds", "gauge", {"": metrics.process_start}),
        *family("kubelet_admission_rejections_total", "counter", by_reason),
    ]
    return "\n".join(lines) + "\n"


def _shutdown_gauge(index: int, seconds: int, rules: NodeShutdownRules) -> list[str]:
    value = (seconds + rules.gauge_offset[index]) * rules.gauge_factor if seconds else 0
    return family(f"kubelet_{rules.gauge_names[index]}", "gauge", {"": value})


def _scientific(digits: Decimal, exponent: int) -> str:
    mantissa = digits.scaleb(-exponent)
    return f"{mantissa:f}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _nanos(when: float) -> str:
    moment = datetime.fromtimestamp(when, UTC)
    fraction = f"{moment.microsecond:06d}".rstrip("0")
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + (f".{fraction}" if fraction else "") + "Z"


def _seconds(stamp: str) -> int:
    if stamp == _ZERO:
        return 0
    whole = stamp.removesuffix("Z").split(".")[0]
    return int(datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC).timestamp())
