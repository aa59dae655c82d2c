"""Access to an API server and kubelets over real TLS on loopback."""

from __future__ import annotations

import datetime
import logging
import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from chaos.cluster.client import connect
from chaos.cluster.cluster_state import cluster_uid, server_is_loopback, server_version
from chaos.cluster.errors import KubeRejected, KubeUnreachable
from chaos.cluster.observers.http_client import http_request
from chaos.cluster.observers.promql import PrometheusClient, Tls
from chaos.core.errors import BadInput, Exit, NodefallError
from chaos.core.redaction import redact
from tests.kit.misbehaving import KubeServer, kubeconfig, plain_api, serving
from tests.kit.tls_authority import DAY, NOW, Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "cluster")


def test_requests_carry_the_token_and_return_every_status(tmp_path: Path, authority: Authority) -> None:
    state = KubeServer()
    state.answers["/version"] = (200, b'{"gitVersion":"v1.36.2"}')
    state.answers["/api/v1/namespaces/kube-system"] = (200, b'{"metadata":{"uid":"6f0c"}}')
    state.answers["/full"] = (503, b"busy")
    with serving(state, authority.server()) as port:
        file = kubeconfig(
            tmp_path,
            f"https://127.0.0.1:{port}",
            {"token": "secret"},
            **{"certificate-authority": str(authority.file)},
        )
        api = connect(str(file), "test")
        assert (server_version(api), cluster_uid(api), server_is_loopback(api)) == ("v1.36.2", "6f0c", True)
        assert api.request("GET", "/full", {"a": "x y"}).status == 503
        assert api.request("POST", "/nowhere", body={"a": 1}, content_type="application/merge-patch+json").status == 404
        assert api.request("POST", "/nowhere?labelSelector=a%3D1", body={"a": 1}).status == 404
        state.answers["/readyz"] = (503, b"")
        with pytest.raises(KubeRejected, match="503"):
            api.probe(5)
    assert all(headers["authorization"] == "Bearer secret" for headers in state.headers)
    assert redact("token: secret") == "token: ***"
    assert ("/full", {"a": "x y"}) in state.requests
    assert ("/nowhere", {"fieldManager": "nodefall"}) in state.requests
    assert ("/nowhere", {"labelSelector": "a=1", "fieldManager": "nodefall"}) in state.requests
    assert state.headers[-3]["content-type"] == "application/merge-patch+json"


@pytest.mark.parametrize(
    ("ends", "address", "known", "kind", "part", "hint"),
    [
        (NOW - DAY, "127.0.0.1", True, "tls", "expired", "renew"),
        (NOW + DAY, "127.0.0.9", True, "tls", "mismatch", "tls-server-name"),
        (NOW + DAY, "127.0.0.1", False, "tls", "issuer", "certificate-authority"),
    ],
)
def test_certificates_that_are_not_accepted(
    tmp_path: Path,
    authority: Authority,
    ends: datetime.datetime,
    address: str,
    known: bool,
    kind: str,
    part: str,
    hint: str,
) -> None:
    state = KubeServer()
    trusted = authority if known else Authority(tmp_path, "stranger")
    with serving(state, authority.server(ends, address)) as port:
        file = kubeconfig(
            tmp_path, f"https://127.0.0.1:{port}", {"token": "secret"}, **{"certificate-authority": str(trusted.file)}
        )
        with pytest.raises(KubeUnreachable, match=part) as caught:
            connect(str(file)).request("GET", "/version")
    assert (caught.value.kind, caught.value.sent, hint in caught.value.hint) == (kind, False, True)
    assert state.headers == [], "nothing was sent to an unverified peer"


def test_a_kubelet_must_prove_its_identity(tmp_path: Path, authority: Authority) -> None:
    state = KubeServer()
    state.answers["/metrics"] = (200, b"x 1\n")
    own = Authority(tmp_path, "kubelet")
    user = {"token": "secret"}
    file = str(kubeconfig(tmp_path, "https://127.0.0.1:1", user, **{"certificate-authority": str(authority.file)}))
    with serving(state, own.server()) as port:
        with pytest.raises(KubeUnreachable) as caught:
            connect(file).kubelet("127.0.0.1", port, "/metrics")
        assert caught.value.kind == "tls"
        assert state.headers == []
        assert connect(file, kubelet_ca=str(own.file)).kubelet("127.0.0.1", port, "/metrics").body == b"x 1\n"
        assert state.headers[0]["authorization"] == "Bearer secret"


def test_a_component_must_prove_its_identity(tmp_path: Path, authority: Authority) -> None:
    state = KubeServer()
    state.answers["/metrics"] = (200, b"x 1\n")
    own = Authority(tmp_path, "component")
    trusted = {"certificate-authority": str(authority.file)}
    file = str(kubeconfig(tmp_path, "https://127.0.0.1:1", {"token": "secret"}, **trusted))
    with serving(state, own.server()) as port:
        url = f"https://127.0.0.1:{port}/metrics"
        with pytest.raises(KubeUnreachable) as caught:
            connect(file).component(url)
        assert caught.value.kind == "tls"
        assert "controllerManager.ca" in caught.value.hint
        assert state.headers == []
        assert connect(file, component_ca=str(own.file)).component(url).body == b"x 1\n"
        assert state.headers[0]["authorization"] == "Bearer secret"
    with serving(state, authority.server()) as port:
        assert connect(file).component(f"https://127.0.0.1:{port}/metrics").status == 200


def test_a_self_signed_kubelet_certificate_is_verified_by_its_host(tmp_path: Path, authority: Authority) -> None:
    """As kind's: the certificate names the host, and not the address that it is reached at."""
    state = KubeServer()
    state.answers["/configz"] = (200, b"{}")
    own, other = Authority(tmp_path, "kubelet"), Authority(tmp_path, "other")
    certificates: list[str | NodefallError] = [
        NodefallError("no session"),
        other.file.read_text(),
        own.file.read_text(),
    ]
    requested: list[str] = []

    def certificate(address: str) -> str:
        requested.append(address)
        answer = certificates.pop(0)
        if isinstance(answer, NodefallError):
            raise answer
        return answer

    user = {"token": "secret"}
    file = str(kubeconfig(tmp_path, "https://127.0.0.1:1", user, **{"certificate-authority": str(authority.file)}))
    with serving(state, own.server(address="192.0.2.7")) as port:
        api = connect(file)
        api.set_kubelet_certificate_source(certificate)
        for why in ("cannot be read on its host: no session", "certificate is not accepted"):
            with pytest.raises(KubeUnreachable, match=why) as caught:
                api.kubelet("127.0.0.1", port, "/configz")
            assert (caught.value.kind, state.headers) == ("tls", [])
        for _ in range(2):
            assert api.kubelet("127.0.0.1", port, "/configz").body == b"{}"
    assert (requested, certificates) == (["127.0.0.1"] * 3, []), "a known certificate is not read again"
    assert state.headers[0]["authorization"] == "Bearer secret"


def test_causes_of_no_response(tmp_path: Path) -> None:
    state = KubeServer()
    with serving(state) as port:
        api = plain_api(tmp_path, port)
        state.closing = True
        with pytest.raises(KubeUnreachable) as reset:
            api.request("POST", "/x", body={})
        state.closing = False
        state.flowing.clear()
        with pytest.raises(KubeUnreachable) as late:
            api.request("GET", "/x", timeout=0.2)
    with pytest.raises(KubeUnreachable) as refused:
        plain_api(tmp_path, port).request("GET", "/x")
    with pytest.raises(KubeUnreachable) as dns:
        connect(str(kubeconfig(tmp_path, "http://nowhere.invalid:1"))).request("GET", "/x")
    found = [(e.value.kind, e.value.sent) for e in (reset, late, refused, dns)]
    assert found == [("reset", True), ("timeout", True), ("refused", False), ("dns", False)]
    assert [path for path, _ in state.requests].count("/x") == 2, "a write is never sent twice"


def test_a_port_that_does_not_speak_tls(tmp_path: Path) -> None:
    with serving(KubeServer()) as port:
        api = connect(str(kubeconfig(tmp_path, f"https://127.0.0.1:{port}", {"token": "x"})))
        with pytest.raises(KubeUnreachable) as caught:
            api.request("GET", "/version")
    assert caught.value.kind == "tls"
    assert "port serves https" in caught.value.hint


def test_a_401_reloads_the_token_file(tmp_path: Path, authority: Authority) -> None:
    state = KubeServer()
    trusted = {"certificate-authority": str(authority.file)}
    token = tmp_path / "token"
    token.write_text("old")
    with serving(state, authority.server()) as port:
        api = connect(str(kubeconfig(tmp_path, f"https://127.0.0.1:{port}", {"tokenFile": str(token)}, **trusted)))
        state.answers["/x"] = (401, b"{}")
        token.write_text("new")
        api._loaded_at = float("-inf")  # as if it had been read long ago
        assert api.request("GET", "/x").status == 401
        api.request("GET", "/x")
    assert [h["authorization"] for h in state.headers] == ["Bearer old", "Bearer new", "Bearer new"]


@pytest.mark.parametrize(
    ("text", "context", "part"),
    [
        ("", None, "it is empty"),
        ("[1, 2", None, "cannot be read as a kubeconfig"),
        ("just text", None, "it is not a mapping"),
        ("clusters: []\ncontexts: [{name: a}]\n", None, "current-context"),
        (None, "tost", "did you mean 'test'"),
        (None, "quite-another", "it has test"),
    ],
)
def test_bad_kubeconfigs(tmp_path: Path, text: str | None, context: str | None, part: str) -> None:
    file = kubeconfig(tmp_path, "http://127.0.0.1:1")
    if text is not None:
        file.write_text(text)
    with pytest.raises(BadInput) as caught:
        connect(str(file), context)
    assert caught.value.code is Exit.USAGE
    assert part in str(caught.value)
    assert str(file) in str(caught.value)


def test_files_that_are_missing(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such kubeconfig"):
        connect(str(tmp_path / "none"))
    file = kubeconfig(tmp_path, "https://127.0.0.1:1", {"token": "x"}, **{"certificate-authority": "gone.crt"})
    with pytest.raises(BadInput, match=r"gone\.crt"):
        connect(str(file))
    with pytest.raises(BadInput, match="no such file"):
        connect(str(kubeconfig(tmp_path, "http://127.0.0.1:1")), kubelet_ca=str(tmp_path / "none.crt"))
    with pytest.raises(BadInput, match="there is no such file"):
        connect(str(kubeconfig(tmp_path, "http://127.0.0.1:1")), component_ca=str(tmp_path / "none.crt"))


def test_a_user_without_credentials(tmp_path: Path) -> None:
    with pytest.raises(NodefallError, match="no credentials"):
        connect(str(kubeconfig(tmp_path, "https://127.0.0.1:1")))


def test_an_answer_that_cannot_be_used(tmp_path: Path) -> None:
    state = KubeServer()
    state.answers["/version"] = (200, b"<html>")
    state.answers["/api/v1/namespaces/kube-system"] = (403, b'{"message":"not you"}')
    with serving(state) as port:
        api = plain_api(tmp_path, port)
        with pytest.raises(NodefallError, match="invalid response"):
            server_version(api)
        with pytest.raises(KubeRejected, match="403 not you") as caught:
            cluster_uid(api)
    assert "rbac" in caught.value.hint


def test_an_endless_response_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaos.cluster.api._MAX_BODY_BYTES", 1 << 20)
    state = KubeServer()
    state.answers["/version"] = (200, b" " * (3 << 20))
    with serving(state) as port, pytest.raises(KubeRejected, match="longer than 1 MiB"):
        server_version(plain_api(tmp_path, port))


def test_what_is_not_loopback(tmp_path: Path) -> None:
    for server in ("http://192.0.2.1:6443", "http://nowhere.invalid"):
        assert not server_is_loopback(connect(str(kubeconfig(tmp_path, server))))
    file = kubeconfig(tmp_path, "http://127.0.0.1:1", None, **{"proxy-url": "http://192.0.2.1:3128"})
    assert not server_is_loopback(connect(str(file)))


def test_every_request_is_logged_with_its_outcome(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    state = KubeServer()
    state.answers["/version"] = (200, b"{}")
    caplog.set_level(logging.DEBUG, "chaos.cluster")
    with serving(state) as port:
        api = plain_api(tmp_path, port)
        api.request("GET", "/version")
        with pytest.raises(KubeUnreachable):
            plain_api(tmp_path, 1).request("GET", "/version")
    good, bad = [record.getMessage() for record in caplog.records if record.name == "chaos.cluster.api"]
    assert re.fullmatch(rf"GET http://127.0.0.1:{port}/version: 200 in \d\.\d+ s", good)
    assert re.fullmatch(r"GET http://127.0.0.1:1/version failed after \d\.\d+ s: .*connection refused", bad)


# What arrives before the bytes of which each takes its time.
SLOW_PLACES = {
    "headers": b"HTTP/1.1 200 OK\r\nX: ",
    "body": b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n",
    "chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8000\r\n",
    "size of a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;",
}


def ask_api(folder: Path, port: int) -> None:
    ca = {"certificate-authority": str(folder / "cluster.crt")}
    file = kubeconfig(folder, f"https://127.0.0.1:{port}", {"token": "t"}, **ca)
    connect(str(file)).request("GET", "/a", timeout=1)


def ask_kubelet(folder: Path, port: int) -> None:
    file = kubeconfig(folder, "https://127.0.0.1:1", {"token": "t"})
    connect(str(file), kubelet_ca=str(folder / "cluster.crt")).kubelet("127.0.0.1", port, "/metrics")


def ask_gate(folder: Path, port: int) -> None:
    http_request("GET", f"https://127.0.0.1:{port}/", seconds=1)


def ask_prometheus(folder: Path, port: int) -> None:
    PrometheusClient(f"https://127.0.0.1:{port}", tls=Tls(ca=str(folder / "cluster.crt"))).query("up")


@pytest.mark.parametrize("place", SLOW_PLACES)
@pytest.mark.parametrize("ask", [ask_api, ask_kubelet, ask_gate, ask_prometheus])
def test_an_answer_that_comes_byte_by_byte_is_not_awaited(
    ask: Callable[[Path, int], None],
    place: str,
    tmp_path: Path,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("chaos.cluster.client._KUBELET_TIMEOUTS", (1.0, 1.0))
    monkeypatch.setattr("chaos.cluster.observers.promql._TIMEOUT", 1)
    monkeypatch.setattr("chaos.cluster.observers.promql._MAX_SECONDS", 1.0)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority.file))
    over = threading.Event()

    def dribble() -> None:
        connection, _ = listener.accept()
        with suppress(OSError), authority.server().wrap_socket(connection, server_side=True) as stream:
            stream.recv(4096)
            stream.sendall(SLOW_PLACES[place])
            while not over.wait(0.1):
                stream.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=dribble)
        thread.start()
        begin = time.monotonic()
        try:
            with pytest.raises(NodefallError):
                ask(tmp_path, listener.getsockname()[1])
            assert 0.9 < time.monotonic() - begin < 5
        finally:
            over.set()
            thread.join()


OK = b"HTTP/1.1 200 OK\r\n"


def whole(body: bytes, *headers: bytes) -> bytes:
    return b"\r\n".join([b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *headers, b"", body])


ODD_ANSWERS = {
    "none": b"",
    "no HTTP": b"\0" * 100,
    "HTTP 0.9": b"hello",
    "status": b"HTTP/1.1 99999 OK\r\n\r\n",
    "long status": b"HTTP/1.1 200 " + b"x" * 70_000 + b"\r\n\r\n",
    "many headers": OK + b"X: 1\r\n" * 300 + b"\r\n",
    "no header": OK + b"X:\n y\r\n z\r\nBad Header\r\n\r\n",
    "negative length": OK + b"Content-Length: -5\r\n\r\nabc",
    "two lengths": OK + b"Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde",
    "huge length": OK + b"Content-Length: 99999999999999999999999\r\n\r\nabc",
    "no chunk": OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc",
    "negative chunk": OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\nabc",
    "huge chunk": OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc",
    "no gzip": whole(b"no", b"Content-Encoding: gzip"),
    "many encodings": whole(b"{}", b"Content-Encoding: " + b"gzip, " * 50 + b"gzip"),
    "deep list": whole(b"[" * 200_000),
    "deep object": whole(b'{"a":' * 100_000),
    "list": whole(b"[]"),
    "null": whole(b"null"),
    "no UTF-8": whole(b'{"a":"\xff"}'),
    "surrogate": whole(b'{"gitVersion":"\\ud800","metadata":{"uid":"\\ud800"},"status":"success","data":"\\ud800"}'),
    "no URL": b"HTTP/1.1 302 Found\r\nLocation: http://[::bad\r\nContent-Length: 0\r\n\r\n",
    "loop": b"HTTP/1.1 308 P\r\nLocation: /api/v1/query\r\nContent-Length: 0\r\n\r\n",
    "continue": b"HTTP/1.1 100 Continue\r\n\r\n" * 5000,
    "switch": b"HTTP/1.1 101 Sw\r\nUpgrade: x\r\n\r\n",
    "retry": b"HTTP/1.1 429 U\r\nRetry-After: 1e999999\r\nContent-Length: 2\r\n\r\n{}",
    "message": b"HTTP/1.1 403 U\r\nContent-Length: 25\r\n\r\n" + b'{"message":{},"reason":5}',
    "late": whole(b"{}", b"Date: Thu, 01 Jan 999999999999999999 00:00:00 GMT"),
    "early": whole(b"{}", b"Date: Thu, 01 Jan 0001 00:00:00 GMT"),
    "no numbers": whole(
        b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":["x",1]}]}}'
    ),
}


@pytest.mark.parametrize("answer", ODD_ANSWERS)
def test_no_answer_ends_as_a_bug(answer: str, tmp_path: Path) -> None:
    def respond() -> None:
        while not over.is_set():
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                if connection.recv(65536):
                    connection.sendall(ODD_ANSWERS[answer])

    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=respond)
        thread.start()
        api, prometheus = plain_api(tmp_path, port), PrometheusClient(f"http://127.0.0.1:{port}")
        for ask in (
            lambda: server_version(api),
            lambda: cluster_uid(api),
            lambda: api.probe(5),
            lambda: list(iter(api.stream("/api/v1/pods", {"watch": "true"}).__enter__())),
            lambda: api.exec("/api/v1/namespaces/d/pods/p", ["true"], "c", 5),
            lambda: http_request("GET", f"http://127.0.0.1:{port}/", seconds=5),
            lambda: prometheus.query("up"),
            lambda: prometheus.query_range("up", 0, 10, 1),
            prometheus.alerting_rules,
        ):
            with suppress(NodefallError):
                ask()
        over.set()
        socket.create_connection(("127.0.0.1", port)).close()
        thread.join(10)
