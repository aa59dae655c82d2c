"""Client of a Prometheus server, over prometheus-api-client: queries, and alerting rules.

Rules (``GET /api/v1/rules``), and not ``/api/v1/alerts``: a server without rules, or whose rules fail, has no alert,
either. Format: https://prometheus.io/docs/prometheus/latest/querying/api/#rules
"""

# ruff: noqa: PLC0415 - requests is slow to import

from __future__ import annotations

import ast
import math
import re
import time
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct, field

from chaos.cluster.observers.http_client import HttpFailed, read_bounded, server_of
from chaos.cluster.watch_codec import DECODE_ERRORS
from chaos.core.errors import NodefallError
from chaos.core.metrics import AlertingRule
from chaos.core.recording import Series

_TIMEOUT = 5  # wall seconds
_MAX_SERIES = 500  # series of one answer
_MAX_POINTS = 10000  # Prometheus gives at most 11000 of one series
MAX_BYTES = 256_000_000  # of one answer: all points of all series
_MAX_SECONDS = 60.0  # wall seconds until the end of an answer
_BAD_QUERY = (400, 422)
_FAILURE_PATTERN = re.compile(r"HTTP Status Code (\d+) \((.*)\)", re.DOTALL)
_FIRING, _HEALTHY, _ALERTING = "firing", "ok", "alerting"


class PrometheusUnavailable(NodefallError):
    """No response, or an invalid one."""


class QueryRefused(NodefallError):
    """Prometheus rejects the query."""


class PrometheusClient:
    """One server. ``token`` is a bearer token, or the password of ``user``. ``max_bytes``: of one answer."""

    def __init__(self, url: str, token: str = "", user: str = "", max_bytes: int = MAX_BYTES) -> None:
        self._url, self._token, self._user = url.rstrip("/"), token, user
        self._max_bytes = max_bytes
        self._connection: Any = None

    def query(self, query: str) -> list[Series]:
        """Series with their current value. Raises PrometheusUnavailable, QueryRefused."""
        return _series(self._call("custom_query", query), query)

    def query_range(self, query: str, start: float, end: float, step: float) -> list[Series]:
        """Series with their values between two times of the server's clock. Raises as :meth:`query`."""
        begin, until = (datetime.fromtimestamp(t, UTC) for t in (start, end))
        step = max(step, (end - start) / _MAX_POINTS)
        return _series(self._call("custom_query_range", query, begin, until, f"{step:g}"), query)

    def alerting_rules(self) -> list[AlertingRule]:
        """All alerting rules, with the alerts that fire. Raises PrometheusUnavailable."""
        try:
            response = self._session().get(
                f"{self._url}/api/v1/rules", params={"type": "alert"}, timeout=_TIMEOUT, allow_redirects=False
            )
            if response.status_code != 200:
                raise _status_error(f"HTTP Status Code {response.status_code} ({response.content!r})", "rules")
            return decode_rules(response.content)
        except HttpFailed as error:
            raise PrometheusUnavailable(f"Prometheus at {error.message}") from error
        except (OSError, ValueError) as error:  # OSError: of requests
            raise PrometheusUnavailable(f"Prometheus at {self._url}: {_short(error)}") from error

    def _call(self, method: str, query: str, *arguments: object) -> Any:
        from prometheus_api_client.exceptions import PrometheusApiClientException

        try:
            return getattr(self._connect(), method)(query, *arguments)
        except PrometheusApiClientException as error:
            raise _status_error(str(error), query) from error
        except HttpFailed as error:
            raise PrometheusUnavailable(f"Prometheus at {error.message}") from error
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
        ) as error:  # OSError: of requests; the others: no JSON of Prometheus
            raise PrometheusUnavailable(f"Prometheus at {self._url}: {_short(error)}") from error

    def _connect(self) -> Any:
        from prometheus_api_client import PrometheusConnect
        from urllib3.util import Retry

        if self._connection is None:
            self._connection = PrometheusConnect(
                self._url,
                headers=self._bearer() or None,
                auth=(self._user, self._token) if self._user else None,
                retry=Retry(0),
                session=self._session(),
                timeout=_TIMEOUT,
            )
        return self._connection

    def _bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"} if self._token and not self._user else {}

    def _session(self) -> Any:
        """A session whose answers are bounded in size and time."""
        import requests

        limit, where = self._max_bytes, server_of(self._url)

        class Session(requests.Session):
            def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
                deadline = time.monotonic() + _MAX_SECONDS
                response = super().send(request, **{**options, "stream": True})
                response._content = read_bounded(response, limit, deadline, where)
                return response

        session = Session()
        session.headers.update(self._bearer())
        session.auth = (self._user, self._token) if self._user else None
        return session


def _status_error(text: str, query: str) -> NodefallError:
    """The error for a status other than 200, with the message of Prometheus."""
    found = _FAILURE_PATTERN.fullmatch(text)
    status, message = (int(found[1]), _error_field(found[2])) if found else (0, text)
    if status in _BAD_QUERY and message:
        return QueryRefused(
            f"Prometheus rejects {query!r}: {message}", hint="try the query in the web UI of Prometheus"
        )
    hint = "check prometheus.credentials in the inventory" if status in (401, 403) else ""
    return PrometheusUnavailable(f"Prometheus answers {status} {message}".rstrip(), hint=hint)


def _error_field(body: str) -> str:
    """The ``error`` in the body, which the client formats as a bytes literal; "" for anything else."""
    try:
        answer = msgspec.json.decode(ast.literal_eval(body))
    except (*DECODE_ERRORS, ValueError, SyntaxError, TypeError):
        return ""
    return str(answer.get("error", "")) if isinstance(answer, dict) else ""


def _series(result: Any, query: str) -> list[Series]:
    """The series of a vector, a matrix or a scalar."""
    try:
        if len(result) == 2 and not isinstance(result[0], dict):  # a scalar is a pair without labels
            return [Series({}, [_sample(result)])]
        if len(result) > _MAX_SERIES:
            raise QueryRefused(
                f"{query!r} has {len(result)} series, at most {_MAX_SERIES} are recorded", hint="aggregate the query"
            )
        return [Series(dict(item["metric"]), [_sample(pair) for pair in _pairs(item)]) for item in result]
    except (ValueError, LookupError, TypeError, ArithmeticError) as error:
        raise PrometheusUnavailable(f"invalid response of Prometheus: {_short(error)}") from error


def _pairs(item: dict[str, Any]) -> list[Any]:
    return list(item["values"]) if "values" in item else [item["value"]]


def _sample(pair: Any) -> tuple[float, float | None]:
    value = float(pair[1])
    return float(pair[0]), value if math.isfinite(value) else None


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]


class _Alert(Struct):
    labels: dict[str, str]
    state: str


class _Rule(Struct, rename="camel"):
    name: str
    type: str = _ALERTING
    labels: dict[str, str] = {}
    health: str = "unknown"
    last_error: str = ""
    alerts: list[_Alert] = []


class _Group(Struct):
    rules: list[_Rule]


class _Data(Struct):
    groups: list[_Group]


class _Answer(Struct):
    status: str
    data: _Data = field(default_factory=lambda: _Data([]))


_DECODER = msgspec.json.Decoder(_Answer)


def decode_rules(body: bytes) -> list[AlertingRule]:
    """The alerting rules in an answer. Raises ValueError for anything else."""
    try:
        answer = _DECODER.decode(body)
    except DECODE_ERRORS as error:
        raise ValueError(f"no rules of Prometheus: {error}") from error
    if answer.status != "success":
        raise ValueError(f"no rules of Prometheus: status {answer.status!r}")
    rules = [rule for group in answer.data.groups for rule in group.rules]
    return [_rule(rule) for rule in rules if rule.type == _ALERTING]


def _rule(rule: _Rule) -> AlertingRule:
    error = "" if rule.health == _HEALTHY else rule.last_error or f"its health is {rule.health}"
    firing = tuple(alert.labels for alert in rule.alerts if alert.state == _FIRING)
    return AlertingRule(rule.name, {**rule.labels, "alertname": rule.name}, error, firing)
