"""Client of a Prometheus, or of another server with its API, over prometheus-api-client: queries, alerting rules."""

# ruff: noqa: PLC0415 - requests is slow to import

from __future__ import annotations

import math
import re
import time
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

import msgspec
from msgspec import Struct

from chaos.cluster.connections import bounded_session
from chaos.cluster.observers.alerting_rules import decode_rules
from chaos.cluster.observers.http_client import HttpFailed, describe_failure, read_bounded, server_of
from chaos.cluster.watch_codec import DECODE_ERRORS
from chaos.core.errors import NodefallError
from chaos.core.metrics import AlertingRule
from chaos.core.recording import Series
from chaos.core.text import printable

_TIMEOUT = 5  # wall seconds
_MAX_SERIES = 500  # series of one answer
_MAX_POINTS = 10000  # Prometheus gives at most 11000 of one series
MAX_BYTES = 256_000_000  # of one answer: all points of all series
_MAX_SECONDS = 60.0  # wall seconds until the end of an answer
_BAD_QUERY = (400, 422)
_MAX_REDIRECTS = 3
_QUOTED_BYTES, _QUOTED = 2000, 200  # of an answer that is not understood


class PrometheusUnavailable(NodefallError):
    """No response, or an invalid one."""


class QueryRefused(NodefallError):
    """Prometheus rejects the query."""


class Tls(Struct, frozen=True):
    """Paths of files. An empty ``ca`` means the usual CAs."""

    ca: str = ""
    certificate: str = ""
    key: str = ""
    verifies: bool = True


class PrometheusClient:
    """One server. ``token`` is a bearer token, or the password of ``user``. ``max_bytes``: of one answer."""

    def __init__(
        self,
        url: str,
        token: str = "",
        user: str = "",
        max_bytes: int = MAX_BYTES,
        *,
        headers: Mapping[str, str] | None = None,
        tls: Tls = Tls(),  # noqa: B008 - immutable
    ) -> None:
        self._url, self._token, self._user, self._tls = url.rstrip("/"), token, user, tls
        self._headers = dict(headers or {})
        self._max_bytes = max_bytes
        self._connection: Any = None

    def query(self, query: str) -> list[Series]:
        """Series with their current value. Raises PrometheusUnavailable, QueryRefused."""
        return _series(self._ask("custom_query", query), query)

    def query_range(self, query: str, start: float, end: float, step: float) -> list[Series]:
        """Series with their values between two times of the server's clock. Raises as :meth:`query`."""
        begin, until = (datetime.fromtimestamp(t, UTC) for t in (start, end))
        step = max(step, (end - start) / _MAX_POINTS)
        return _series(self._ask("custom_query_range", query, begin, until, f"{step:g}"), query)

    def alerting_rules(self) -> list[AlertingRule]:
        """All alerting rules, with the alerts that fire. Raises PrometheusUnavailable."""
        try:
            answer = self.get(f"{self._url}/api/v1/rules", {"type": "alert"}, "rules")
            return decode_rules(bytes(answer.content))
        except ValueError as error:
            raise PrometheusUnavailable(f"Prometheus at {server_of(self._url)}: {error}") from error

    def _ask(self, method: str, query: str, *arguments: object) -> Any:
        """The result of a query. Raises PrometheusUnavailable, QueryRefused."""
        from prometheus_api_client import PrometheusConnect
        from urllib3.util import Retry

        asking = _Asking(self, query)
        client = PrometheusConnect(self._url, retry=Retry(0), session=asking, timeout=_TIMEOUT)
        try:
            return getattr(client, method)(query, *arguments)
        except (ValueError, KeyError, TypeError, RecursionError) as error:  # the last one: nested without end
            raise PrometheusUnavailable(
                f"Prometheus at {server_of(self._url)}: its response is not JSON of Prometheus{_quoted(asking.body)}",
                hint="check prometheus.url in the inventory, and whether a login page is in front of it",
            ) from error

    def get(self, url: str, parameters: Mapping[str, str], query: str) -> Any:
        """An answer with status 200. Raises PrometheusUnavailable, QueryRefused."""
        where = server_of(self._url)
        try:
            for _ in range(_MAX_REDIRECTS):
                response = self._session().get(
                    url,
                    params=parameters,
                    timeout=_TIMEOUT,
                    allow_redirects=False,
                    verify=self._tls.verifies and (self._tls.ca or None),
                )
                target = urljoin(response.url, response.headers.get("Location", "")).partition("?")[0]
                if not (response.is_redirect and _is_same_api(url, target)):
                    break
                url = target
        except HttpFailed as error:
            raise PrometheusUnavailable(f"Prometheus at {error.message}") from error
        except (OSError, ValueError) as error:  # OSError: of requests; ValueError: of invalid addresses and headers
            raise PrometheusUnavailable(f"Prometheus at {describe_failure(error, where)}") from error
        if response.is_redirect:
            raise PrometheusUnavailable(
                f"Prometheus at {where}: it redirects to {server_of(target)}, as to a login page",
                hint="check prometheus.url and prometheus.credentials in the inventory",
            )
        if response.status_code != 200:
            raise _status_error(response.status_code, response.content, query)
        return response

    def _authorization(self) -> dict[str, str]:
        if self._user:
            pair = b64encode(f"{self._user}:{self._token}".encode()).decode()
            return {"Authorization": f"Basic {pair}"}
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    def _session(self) -> Any:
        """A session whose answers are bounded in size and time."""
        if self._connection is None:
            self._connection = self._make_session()
        return self._connection

    def _make_session(self) -> Any:
        import requests

        limit, where = self._max_bytes, server_of(self._url)

        session = bounded_session()
        send = session.send

        def send_bounded(request: requests.PreparedRequest, **options: Any) -> requests.Response:
            deadline = time.monotonic() + _MAX_SECONDS
            response: requests.Response = send(request, **{**options, "stream": True})
            response._content = read_bounded(response, limit, deadline, where)
            return response

        session.send = send_bounded
        session.headers.update(self._authorization() | self._headers)
        session.auth = lambda request: request  # without any, a password of ~/.netrc would replace the token
        session.cert = (self._tls.certificate, self._tls.key) if self._tls.certificate else None
        return session


class _Asking:
    """The session passed to prometheus-api-client: it sends one query with this module's client.

    ``body``: the body of the answer.
    """

    verify, cert = True, None  # the client here has its own

    def __init__(self, client: PrometheusClient, query: str) -> None:
        self._client, self._query = client, query
        self.body = b""

    def mount(self, prefix: str, adapter: object) -> None:
        """Retries are not wanted."""

    def close(self) -> None:
        """Does nothing: the other client owns the connections."""

    def request(self, *, url: str, params: Mapping[str, str], **_: object) -> Any:
        """Raises PrometheusUnavailable, QueryRefused."""
        answer = self._client.get(url, params, self._query)
        self.body = bytes(answer.content)
        return answer


def _is_same_api(url: str, target: str) -> bool:
    """Whether a redirect leads to the same path on the same host, as from http to https, or to a prefix."""
    old, new = urlsplit(url), urlsplit(target)
    is_safe = new.scheme in ("https", old.scheme)
    api = old.path[old.path.rindex("/api/v1/") :]
    return is_safe and old.hostname == new.hostname and new.path.endswith(api)


def _status_error(status: int, body: bytes, query: str) -> NodefallError:
    """The error for a status other than 200, with the message of Prometheus."""
    message = _error_field(body)
    if status in _BAD_QUERY and message:
        return QueryRefused(
            f"Prometheus rejects {query!r}: {message}", hint="try the query in the web UI of Prometheus"
        )
    hint = {
        401: "check prometheus.credentials and prometheus.headers (as X-Scope-OrgID) in the inventory",
        403: "check prometheus.credentials and prometheus.headers (as X-Scope-OrgID) in the inventory",
        404: "check the path of prometheus.url in the inventory",
    }.get(status, "")
    said = f" {message}" if message else _quoted(body)
    return PrometheusUnavailable(f"Prometheus answers {status}{said}", hint=hint)


def _error_field(body: bytes) -> str:
    """The ``error`` in the body; "" for anything else."""
    try:
        answer = msgspec.json.decode(body)
    except DECODE_ERRORS:
        return ""
    return str(answer.get("error", "")) if isinstance(answer, dict) else ""


def _quoted(body: bytes) -> str:
    """The text of a body that is no JSON, without its markup."""
    text = printable(re.sub(r"<[^>]*>", " ", body[:_QUOTED_BYTES].decode("utf-8", "replace")).strip(), _QUOTED)
    return f": {text}" if text else ""


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
