"""Servers with the API of Prometheus that are not a plain Prometheus: what is sent, and what is said of them."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.cluster.observers.prometheus import make_client
from chaos.cluster.observers.selectors import newest_of, selectors
from chaos.core.errors import BadInput, NodefallError, Refused
from chaos.core.field_types import Secret
from chaos.core.prometheus import Prometheus
from chaos.machines.local import resolve_secret
from tests.kit.prometheus_stub import QUERY, TOKEN, Handler, Stub, check, serving
from tests.kit.recording_server import NAMES, issue
from tests.kit.tls_authority import Authority

BEARER = {"credentials": {"env": "PROM_TOKEN"}}
MODES: list[tuple[str, str, dict[str, Any], str]] = [
    # mode, path, settings, what is said
    ("", "", {}, ""),
    ("tenant", "", {}, "answers 401: no org id"),
    ("bearer", "", BEARER, ""),
    ("bearer", "", {"user": "ada", **BEARER}, "answers 401"),
    ("bearer", "", {"headers": {"Authorization": {"env": "PROM_HEADER"}}}, ""),
    ("html", "", {}, "its response is not JSON of Prometheus: Please sign in"),
    ("agent", "", {}, "unavailable with Prometheus Agent"),
    ("prefix", "", {}, "answers 404: 404 page not found"),
    ("prefix", "/prometheus", {}, ""),
    ("prefix", "/prometheus/", {}, ""),
    ("moved", "", {}, ""),
]


@pytest.mark.parametrize(("mode", "path", "settings", "said"), MODES)
def test_each_mode_works_or_says_what_was_answered(
    mode: str, path: str, settings: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROM_TOKEN", TOKEN)
    monkeypatch.setenv("PROM_HEADER", f"Bearer {TOKEN}")
    with serving(Stub(mode)) as url:
        if not said:
            check(url + path, **settings)
            return
        with pytest.raises(NodefallError) as caught:
            check(url + path, **settings)
    assert said in caught.value.message
    assert caught.value.hint


def test_a_login_page_is_named_and_nothing_is_sent_there() -> None:
    with serving(Stub("login")) as url, pytest.raises(NodefallError) as caught:
        check(url)
    assert caught.value.message == f"Prometheus at {url}: it redirects to https://sso.example, as to a login page"


def test_the_header_of_a_tenant_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    stub = Stub("tenant")
    monkeypatch.setenv("ORG", "team-a")
    with serving(stub) as url:
        check(url, headers={"X-Scope-OrgID": "team-a"})
        check(url, headers={"X-Scope-OrgID": {"env": "ORG"}})
    assert {headers["x-scope-orgid"] for headers in stub.headers} == {"team-a"}


def test_a_password_of_netrc_does_not_replace_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("default login ada password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("PROM_TOKEN", TOKEN)
    with serving(Stub("bearer")) as url:
        check(url, credentials={"env": "PROM_TOKEN"})


@pytest.mark.parametrize(
    ("known", "age", "settings", "said"),
    [
        (("http_requests_total",), 5.0, {}, ""),
        ((), 5.0, {}, "no sample of up"),
        ((), 5.0, {"freshness": "max(push_time_seconds)"}, ""),
        (("up",), 420.0, {}, "newest sample of Prometheus is 420 s old"),
        (("up",), 420.0, {"staleAfter": "10m"}, ""),
        (("http_requests_total",), 420.0, {}, "newest sample of Prometheus is 420 s old"),
        ((), 420.0, {"freshness": "max(push_time_seconds)"}, "420 s old"),
        ((), 5.0, {"freshness": "max(up)"}, "has no answer to max(up)"),
        (("up",), 5.0, {"freshness": "max(up)"}, "gives 1, which is not a time"),
    ],
)
def test_freshness(known: tuple[str, ...], age: float, settings: dict[str, Any], said: str) -> None:
    with serving(Stub(known=known, age=age)) as url:
        if not said:
            check(url, **settings)
            return
        with pytest.raises(NodefallError) as caught:
            check(url, **settings)
    assert said in caught.value.message
    assert "prometheus." in caught.value.hint or "gives" in said


def test_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path, "cluster")
    issue(authority, "server", NAMES)
    issue(authority, "ada")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    tls.load_verify_locations(authority.file)
    tls.verify_mode = ssl.CERT_REQUIRED
    own = {"clientCertificate": str(tmp_path / "ada.crt"), "clientKey": str(tmp_path / "ada.key")}
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "")
    with serving(Stub(), tls) as url:
        check(url, ca=str(authority.file), **own)
        check(url, insecureSkipVerify=True, **own)
        with pytest.raises(NodefallError, match="certificate is not accepted"):
            check(url, **own)
        with pytest.raises(NodefallError):
            check(url, ca=str(authority.file))
        with pytest.raises(BadInput, match="no such file"):
            check(url, ca=str(tmp_path / "none.crt"), **own)
    assert "not verified" in Prometheus(url=url, insecureSkipVerify=True).risks[0]  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"headers": {"X-Api-Key": "literal"}}, "may be a secret; refer to it"),
        ({"headers": {"Authorization": "Bearer x"}}, "may be a secret; refer to it"),
        ({"headers": {"Host": "x"}}, "cannot be set"),
        ({"headers": {"a b": "x"}}, "is not a name of a header"),
        ({"headers": {"X-Scope-OrgID": "a\nb"}}, "no line breaks"),
        ({"headers": {"Authorization": {"env": "A"}}, "credentials": {"env": "A"}}, "either credentials or the header"),
        ({"clientKey": "k"}, "give both"),
        ({"ca": "c", "insecureSkipVerify": True}, "give either ca or"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Prometheus.model_validate({"url": "http://x", **settings})


def test_secrets_are_in_no_message(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The server repeats the token, as a proxy in front of it may."""
    caplog.set_level("DEBUG")
    monkeypatch.setenv("PROM_TOKEN", TOKEN)
    stub = Stub()
    echo: Callable[..., Any] = lambda _self, _mode: (403, f"bad token {TOKEN}".encode(), {})  # noqa: E731
    monkeypatch.setattr(Handler, "_by_mode", echo)
    with serving(stub) as url, pytest.raises(NodefallError) as caught:
        check(url, credentials={"env": "PROM_TOKEN"}, headers={"X-Other-Token": {"env": "PROM_TOKEN"}})
    assert "bad token ***" in caught.value.message
    assert TOKEN not in caught.value.message + caught.value.hint + caplog.text
    monkeypatch.setenv("PROM_TOKEN", f"{TOKEN}\nx")
    with pytest.raises(Refused, match="line break"):
        make_client(Prometheus(url=url, credentials=Secret(env="PROM_TOKEN")), resolve_secret)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("up", ["up"]),
        (QUERY, ['http_requests_total{code="500"}']),
        ("sum by (code) (rate(a[5m])) / on(code) group_left(x) b offset 5m", ["a", "b"]),
        ('a{x="}"} and b unless c > bool 5e3', ['a{x="}"}', "b", "c"]),
        ('{__name__=~"job:.*"}[1h:5m] # up', ['{__name__=~"job:.*"}']),
        ("histogram_quantile(0.9, sum(rate(d_bucket[5m])) without (le))", ["d_bucket"]),
        ("max_over_time(rate(x[1m])[10m:])", ["x"]),
        ("time() - 5", []),
        ("sum(a) by (b)", ["a"]),
        ("vector(1)", []),
    ],
)
def test_selectors(query: str, found: list[str]) -> None:
    assert selectors(query) == found
    assert bool(newest_of([query])) is (bool(found) and not found[0].startswith("{"))
