"""As whom requests are sent: impersonation, tokens and certificates that rotate, exec plug-ins, and proxies."""

from __future__ import annotations

import base64
import json
import logging
import shutil
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from chaos.cluster import access, exec_plugin
from chaos.cluster.client import ApiClient, connect
from chaos.cluster.errors import KubeRejected, KubeUnreachable
from chaos.cluster.proxies import find_proxy
from chaos.core.errors import BadInput, Exit, NodefallError
from tests.kit.kubeconfigs import PLUGIN, VERSION
from tests.kit.misbehaving import kubeconfig
from tests.kit.recording_server import Recorder, issue, recording
from tests.kit.tls_authority import Authority
from tests.kit.tls_front import tls_front

SECRET = "tok-en-that-is-secret"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Recorder]:
    with recording(tmp_path) as recorder:
        yield recorder


def client(folder: Path, recorder: Recorder, user: dict[str, Any], **cluster: Any) -> ApiClient:
    trusted = {"certificate-authority": "cluster.crt"} | cluster
    server = trusted.pop("server", f"https://127.0.0.1:{recorder.port}")
    return connect(str(kubeconfig(folder, server, user, **trusted)))


def plugin(folder: Path, answers: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """An exec plug-in that gives one answer after another, the last one again and again; calls are in ``calls``."""
    for number, status in enumerate(answers):
        document = {"apiVersion": VERSION, "kind": "ExecCredential", "status": status}
        (folder / f"answer{number}").write_text(json.dumps(document))
    program = folder / "plugin"
    last = len(answers) - 1
    program.write_text(
        f"#!/bin/sh\ncd {folder}\necho >> calls\n"
        f"n=$(($(wc -l < calls) - 1))\n[ $n -gt {last} ] && n={last}\ncat answer$n\n"
    )
    program.chmod(0o700)
    return {"exec": {"apiVersion": VERSION, "command": "./plugin", "interactiveMode": "Never", **more}}


def calls(folder: Path) -> int:
    return len((folder / "calls").read_text().splitlines())


def authorizations(recorder: Recorder) -> list[str]:
    return [dict(seen.identity)["authorization"].removeprefix("Bearer ") for seen in recorder.seen]


AS = {
    "as": "system:serviceaccount:chaos:bot",
    "as-groups": ["viewers", "b"],
    "as-uid": "u1",
    "as-user-extra": {"Re a": ["x"]},
}
IMPERSONATED = (
    ("authorization", f"Bearer {SECRET}"),
    ("impersonate-extra-re%20a", "x"),
    ("impersonate-group", "b"),
    ("impersonate-group", "viewers"),
    ("impersonate-uid", "u1"),
    ("impersonate-user", "system:serviceaccount:chaos:bot"),
)


def test_impersonation_is_on_every_request_watch_and_exec_and_nothing_goes_past_the_api_server(
    tmp_path: Path, server: Recorder
) -> None:
    api = client(tmp_path, server, {"token": SECRET, **AS})
    api.request("GET", "/version")
    api.metadata("/api/v1/pods", {})
    with api.stream("/api/v1/pods", {"watch": "true"}):
        pass
    with pytest.raises(KubeRejected, match="exec: 200"):
        api.exec("/api/v1/namespaces/d/pods/p", ["true"], "c", 5)
    assert api.probe(5) is not None
    assert [seen.identity for seen in server.seen] == [IMPERSONATED] * 5
    server.clear()
    with pytest.raises(KubeUnreachable, match="only the API server impersonates"):
        api.kubelet("127.0.0.1", server.port, "/metrics")
    with pytest.raises(KubeUnreachable, match="only the API server impersonates"):
        api.component(f"https://127.0.0.1:{server.port}/metrics")
    assert server.seen == []


def test_a_token_file_is_trimmed_read_again_and_comes_before_the_token(
    tmp_path: Path, server: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chaos.cluster.credentials._TOKEN_PERIOD", 0.0)
    (tmp_path / "token").write_text("  one\r\n")
    api = client(tmp_path, server, {"tokenFile": "token", "token": "stale"})
    api.request("GET", "/a")
    (tmp_path / "token").write_text("two\n\n")
    api.request("GET", "/a")
    (tmp_path / "token").unlink()
    api.request("GET", "/a")
    assert authorizations(server) == ["one", "two", "two"]
    assert authorizations_of_fallback(tmp_path, server) == ["stale"]


def authorizations_of_fallback(folder: Path, recorder: Recorder) -> list[str]:
    recorder.clear()
    client(folder, recorder, {"tokenFile": "gone", "token": "stale"}).request("GET", "/a")
    return authorizations(recorder)


def test_a_client_certificate_that_rotates_on_disk_is_used(
    tmp_path: Path, server: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chaos.cluster.pools._FILES_PERIOD", 0.0)
    for end in ("crt", "key"):
        shutil.copy(tmp_path / f"ada.{end}", tmp_path / f"client.{end}")
    api = client(tmp_path, server, {"client-certificate": "client.crt", "client-key": "client.key"})
    api.request("GET", "/a")
    shutil.copy(tmp_path / "grace.key", tmp_path / "client.key")
    api.request("GET", "/a")  # of another key: half of the change
    shutil.copy(tmp_path / "grace.crt", tmp_path / "client.crt")
    api.request("GET", "/a")
    assert [seen.certificate for seen in server.seen] == ["ada", "ada", "grace"]


def test_a_plugin_runs_once_until_its_credentials_expire(tmp_path: Path, server: Recorder) -> None:
    soon = {"expirationTimestamp": "2099-01-01T00:00:00+02:00"}
    past = {"expirationTimestamp": "2020-01-01T00:00:00Z"}
    user = plugin(tmp_path, [{"token": "t1", **past}, {"token": "t2", **soon}])
    api = client(tmp_path, server, user)
    for _ in range(4):
        api.request("GET", "/a")
    assert authorizations(server) == ["t1", "t2", "t2", "t2"]
    assert calls(tmp_path) == 2


def test_a_refused_token_makes_the_plugin_run_once_more_and_then_not_again_at_once(
    tmp_path: Path, server: Recorder
) -> None:
    user = plugin(tmp_path, [{"token": "stale"}, {"token": "fresh"}])
    server.refused = {"stale"}
    api = client(tmp_path, server, user)
    assert [api.request("GET", "/a").status for _ in range(2)] == [200, 200]
    assert authorizations(server) == ["stale", "fresh", "fresh"]
    server.refused = {"fresh"}
    assert [api.request("GET", "/a").status for _ in range(3)] == [401, 401, 401]
    assert calls(tmp_path) == 2


def test_certificates_of_a_plugin_are_presented_and_replaced(tmp_path: Path, server: Recorder) -> None:
    pairs = [
        {
            "clientCertificateData": (tmp_path / f"{name}.crt").read_text(),
            "clientKeyData": (tmp_path / f"{name}.key").read_text(),
        }
        for name in ("ada", "grace")
    ]
    user = plugin(tmp_path, [pairs[0] | {"expirationTimestamp": "2020-01-01T00:00:00Z"}, pairs[1]])
    api = client(tmp_path, server, user)
    for _ in range(3):
        api.request("GET", "/a")
    assert [seen.certificate for seen in server.seen] == ["ada", "grace", "grace"]


def test_a_plugin_that_fails_is_named_once_with_its_words_and_not_run_for_every_request(
    tmp_path: Path, server: Recorder, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)
    user = plugin(tmp_path, [{}], env=[{"name": "X", "value": "y"}])
    (tmp_path / "plugin").write_text(f"#!/bin/sh\necho >> {tmp_path}/calls\necho 'token expired, log in' >&2\nexit 3\n")
    api = client(tmp_path, server, user)
    for _ in range(3):
        with pytest.raises(KubeUnreachable, match=r"exit code 3: token expired, log in$"):
            api.request("GET", "/a")
    assert (calls(tmp_path), caplog.text, capfd.readouterr()) == (1, "", ("", ""))


@pytest.mark.parametrize(
    ("change", "why", "hint"),
    [
        (
            {"command": "no-such-program-x", "installHint": "get it from \x1b[1mhere"},
            "no such program",
            "get it from \\x1b[1mhere",
        ),
        ({"interactiveMode": "Always"}, "standard input is not a terminal", ""),
    ],
)
def test_plugins_that_cannot_run(
    change: dict[str, Any], why: str, hint: str, tmp_path: Path, server: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    user = plugin(tmp_path, [{"token": "t"}], **change)
    with pytest.raises(KubeUnreachable, match=why) as caught:
        client(tmp_path, server, user).request("GET", "/a")
    assert caught.value.hint == hint


def test_a_plugin_that_prints_without_end_is_ended(tmp_path: Path, server: Recorder) -> None:
    user = plugin(tmp_path, [{"token": "t"}])
    (tmp_path / "plugin").write_text("#!/bin/sh\nyes\n")
    with pytest.raises(KubeUnreachable, match="it printed more than 4096 KiB"):
        client(tmp_path, server, user).request("GET", "/a")


def test_a_plugin_that_hangs_is_ended(tmp_path: Path, server: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exec_plugin, "_TIMEOUT", 0.3)
    user = plugin(tmp_path, [{"token": "t"}])
    (tmp_path / "plugin").write_text("#!/bin/sh\nsleep 60 & sleep 60\n")
    with pytest.raises(KubeUnreachable, match="has not ended after 0 s"):
        client(tmp_path, server, user).request("GET", "/a")


@pytest.mark.parametrize(
    ("user", "key"),
    [
        ({"auth-provider": {"name": "gcp"}}, "auth-provider 'gcp'.*gke-gcloud-auth-plugin"),
        ({"auth-provider": {"name": "oidc"}, "token": "t"}, "auth-provider 'oidc'"),
        ({"token": "a\nb"}, "the token"),
        ({"token": "t", "as": "a\rb"}, "the as "),
        ({"token": "t", "as": "a", "as-groups": ["b\x00"]}, "as-groups"),
        ({"token": "t", "as": "a", "as-user-extra": {"k": ["v\n"]}}, "as-user-extra"),
        ({"token": "t", "as-groups": ["g"]}, "as-groups or as-user-extra without as"),
        ({"token": "t", "as-user-extra": {"k": "v"}}, r"as-user-extra"),
        ({"token": 5}, "users\\[0\\].user.token"),
        ({"tokenFile": "a\0b"}, "tokenFile .* does not exist"),
        ({"exec": {"command": "x"}}, "apiVersion"),
    ],
)
def test_bad_values_of_a_user_are_bad_input(user: dict[str, Any], key: str, tmp_path: Path, server: Recorder) -> None:
    with pytest.raises(BadInput, match=f"(?s){key}") as caught:
        client(tmp_path, server, user)
    assert caught.value.code is Exit.USAGE


@pytest.mark.parametrize(
    ("cluster", "key"),
    [
        ({"server": "https://127.0.0.1:99999"}, "is not a URL"),
        ({"server": "https://127.0.0.1:x"}, "is not a URL"),
        ({"server": "127.0.0.1:6443"}, "is not a URL"),
        ({"server": "https://ada:hidden@127.0.0.1"}, "credentials in its URL"),
        ({"proxy-url": "127.0.0.1:3128"}, "proxy-url has"),
        ({"proxy-url": "ftp://127.0.0.1"}, "proxy-url has the scheme 'ftp'"),
        ({"proxy-url": "http://127.0.0.1:x"}, "proxy-url is not a URL"),
        ({"proxy-url": "socks5://"}, "proxy-url names no host"),
        ({"insecure-skip-tls-verify": True}, "both insecure-skip-tls-verify and certificate-authority"),
        ({"certificate-authority": "plugin"}, "certificate-authority .*plugin has no certificate"),
        ({"tls-server-name": "a..b"}, "tls-server-name of the cluster 'c' is not the name of a host"),
    ],
)
def test_bad_values_of_a_cluster_are_bad_input(
    cluster: dict[str, Any], key: str, tmp_path: Path, server: Recorder
) -> None:
    (tmp_path / "plugin").write_text(PLUGIN)
    with pytest.raises(BadInput, match=key) as caught:
        client(tmp_path, server, {"token": SECRET}, **cluster)
    assert caught.value.code is Exit.USAGE
    assert "hidden" not in str(caught.value)


ALIASES = "\n".join(f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 9)}]" for n in range(1, 9))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: &a [*a]\n", "too deep, or has too many aliases"),
        (f"k0: &k0 [1]\n{ALIASES}\n", "too deep, or has too many aliases"),
        ("[" * 100_000, "too deep"),
        ("a: !!python/object/apply:os.abort []\n", "could not determine a constructor"),
        ("users: [{name: u, user: {exec: 5}}]\n", "user.exec"),
        ("clusters: [{name: c}, {name: c}]\n", "two entries of the cluster 'c'"),
        ("kind: List\n", "its kind is List"),
        ("? [a]\n: b\n", "unhashable"),
    ],
)
def test_files_that_are_no_kubeconfigs_are_bad_input(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(text)
    (tmp_path / "config").chmod(0o600)
    with pytest.raises(BadInput, match=why):
        connect(str(tmp_path / "config"))


def test_many_threads_run_the_plugin_once(tmp_path: Path, server: Recorder) -> None:
    api = client(tmp_path, server, plugin(tmp_path, [{"token": "t"}]))
    threads = [threading.Thread(target=api.request, args=("GET", "/a")) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (len(server.seen), calls(tmp_path)) == (12, 1)


def test_keys_that_nothing_reads_are_reported(tmp_path: Path, server: Recorder) -> None:
    api = client(tmp_path, server, {"token": SECRET, "as_user": "ada"}, **{"certificate-autority": "x"})
    report = " ".join(api.risks)
    assert "keys that have no effect: as_user" in report
    assert "certificate-autority (did you mean certificate-authority?)" in report


def test_an_encrypted_key_is_refused_without_a_question(tmp_path: Path, server: Recorder) -> None:
    key = serialization.load_pem_private_key((tmp_path / "ada.key").read_bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    )
    user = {"client-certificate": "ada.crt", "client-key-data": base64.b64encode(locked).decode()}
    with pytest.raises(BadInput, match="client-key-data cannot be used"):
        client(tmp_path, server, user)


def test_the_access_of_a_pod(tmp_path: Path, server: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    with pytest.raises(BadInput, match="there is no such kubeconfig, or it is empty"):
        connect("")
    shutil.copy(tmp_path / "cluster.crt", tmp_path / "ca.crt")
    (tmp_path / "token").write_text(f"{SECRET}\n")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
    connect("").request("GET", "/a")
    assert authorizations(server) == [SECRET]


def test_exec_goes_through_every_kind_of_proxy(tmp_path: Path, server: Recorder) -> None:
    for scheme in ("http", "socks5", "socks5h"):
        url = {"proxy-url": f"{scheme}://ada:p%40ss@127.0.0.1:{server.proxy_port}"}
        api = client(tmp_path, server, {"token": SECRET}, server=f"https://api.internal:{server.port}", **url)
        assert api.request("GET", "/a").status == 200
        with pytest.raises(KubeRejected, match="exec: 200"):
            api.exec("/api/v1/namespaces/d/pods/p", ["true"], "c", 5)
        assert api.uses_proxy
    assert server.proxied == ["ada:p@ss"] * 6
    assert [seen.path.partition("?")[0] for seen in server.seen] == ["/a", "/api/v1/namespaces/d/pods/p/exec"] * 3


@pytest.mark.parametrize("scheme", ["http", "socks5", "https"])
def test_a_watch_through_a_proxy_ends_when_it_is_to(scheme: str, tmp_path: Path, server: Recorder) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    with tls_front(server.proxy_port, tls) as front:
        url = f"{scheme}://ada:p%40ss@127.0.0.1:{front if scheme == 'https' else server.proxy_port}"
        api = client(tmp_path, server, {"token": SECRET}, **{"proxy-url": url})
        stream = api.stream("/api/v1/pods", {"watch": "true"})
        timer = threading.Timer(0.2, stream.abort)
        with stream as chunks:
            timer.start()
            begin = time.monotonic()
            with pytest.raises(KubeUnreachable, match="aborted"):
                next(chunks)
            assert time.monotonic() - begin < 5
        timer.join()


def test_an_answer_to_exec_that_comes_byte_by_byte_is_not_awaited(tmp_path: Path, server: Recorder) -> None:
    """A kubelet writes the headers of the answer."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")

    def dribble(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with suppress(OSError), tls.wrap_socket(connection, server_side=True) as stream:
            stream.recv(4096)
            stream.sendall(b"HTTP/1.1 101 Switching Protocols\r\nX: ")
            while not over.wait(0.2):
                stream.sendall(b"x")

    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=dribble, args=(listener,))
        thread.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        api, begin = client(tmp_path, server, {"token": SECRET}, server=url), time.monotonic()
        try:
            with pytest.raises(KubeUnreachable, match=r"no answer in time|no connection for exec|timed out"):
                api.exec("/api/v1/namespaces/d/pods/p", ["true"], "c", 1.5)
            assert time.monotonic() - begin < 8
        finally:
            over.set()
            thread.join()


@pytest.mark.parametrize("scheme", ["http", "socks5", "https"])
def test_a_dead_proxy_is_named(scheme: str, tmp_path: Path, server: Recorder) -> None:
    api = client(tmp_path, server, {"token": SECRET}, **{"proxy-url": f"{scheme}://ada:p%40ss@127.0.0.1:1"})
    for ask in (lambda: api.request("GET", "/a"), lambda: api.exec("/api/v1/x", ["true"], "c", 5)):
        with pytest.raises(KubeUnreachable) as caught:
            ask()
        assert f"proxy {scheme}://127.0.0.1:1 (proxy-url): connection refused" in caught.value.message
        assert "proxy-url" in caught.value.hint
        assert "p@ss" not in caught.value.message


def test_a_proxy_that_refuses_is_quoted(tmp_path: Path, server: Recorder) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        api = client(
            tmp_path, server, {"token": SECRET}, **{"proxy-url": f"http://127.0.0.1:{listener.getsockname()[1]}"}
        )
        with pytest.raises(KubeUnreachable) as caught:
            _refuse_first(listener, lambda: api.request("GET", "/a"))
    assert "does not connect to it: 407 Proxy Authentication Required" in caught.value.message


def _refuse_first(listener: socket.socket, ask: Any) -> None:
    def answer() -> None:
        connection, _ = listener.accept()
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        connection.close()

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    try:
        ask()
    finally:
        thread.join(10)


@pytest.mark.parametrize(
    ("server", "no_proxy", "is_used"),
    [
        ("https://10.0.0.1:6443", "", True),
        ("https://10.0.0.1:6443", "10.0.0.0/8", False),
        ("https://10.0.0.1:6443", "10.0.0.1", False),
        ("https://10.0.0.1:6443", "10.0.0.1:6443", False),
        ("https://10.0.0.1:6443", "10.0.0.1:443", True),
        ("https://10.0.0.1:6443", "::ffff:10.0.0.1", False),
        ("https://10.0.0.1:6443", ".0.1,1", True),
        ("https://[fd00::1]:6443", "fd00::/8", False),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", False),
        ("https://api.example.org", "example.org", False),
        ("https://api.example.org", ".example.org", False),
        ("https://example.org", ".example.org", True),
        ("https://api.example.org", "*.example.org", False),
        ("https://api.example.org", "*example.org", True),
        ("https://api.example.org", "EXAMPLE.org:443 ,x", False),
        ("https://badexample.org", "example.org", True),
        ("https://api.example.org", "*", False),
        ("https://127.0.0.7:6443", "", False),
        ("https://localhost:6443", "", False),
        ("http://10.0.0.1:6443", "", False),
    ],
)
def test_the_proxy_of_the_environment(
    server: str, no_proxy: str, is_used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    found = find_proxy(server, "", "kubeconfig")
    assert (found is not None) is is_used
    assert find_proxy(server, "socks5://other:1", "kubeconfig") is not None, "the kubeconfig's own is always used"
    if found:
        assert (found.address, found.source) == ("http://proxy.example:3128", "HTTPS_PROXY")


def test_nothing_secret_is_said_of_connections_that_fail(
    tmp_path: Path, server: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    """Planted as token, password, login of a proxy and key, and printed by a plug-in that fails."""
    caplog.set_level(logging.DEBUG)
    other = Authority(tmp_path, "stranger")
    issue(other, "stranger-client")
    plugin_user = plugin(tmp_path, [{"token": SECRET}], env=[{"name": "T", "value": SECRET}])
    (tmp_path / "plugin").write_text(f'#!/bin/sh\necho \'{{"status": {{"token": "{SECRET}"}}}}\'\n')
    users: list[dict[str, Any]] = [
        {"token": SECRET},
        {"username": "ada", "password": SECRET},
        {"token": f"{SECRET}\n"},
        plugin_user,
    ]
    clusters: list[dict[str, Any]] = [
        {"certificate-authority": "stranger.crt"},
        {"proxy-url": f"http://ada:{SECRET}@127.0.0.1:1"},
        {"proxy-url": f"ftp://ada:{SECRET}@127.0.0.1:1"},
        {"server": f"https://ada:{SECRET}@127.0.0.1:1"},
        {"server": f"https://ada:{SECRET}@127.0.0.1:x"},
    ]
    said = []
    for user in users:
        for cluster in clusters:
            with pytest.raises(NodefallError) as caught:
                client(tmp_path, server, user, **cluster).request("GET", "/a")
            said.append(f"{caught.value} {caught.value.hint}")
    assert SECRET not in " ".join(said) + caplog.text


def test_a_rejected_exec_with_a_refused_token_renews_it(tmp_path: Path, server: Recorder) -> None:
    server.refused = {"stale", "fresh"}
    api = client(tmp_path, server, plugin(tmp_path, [{"token": "stale"}, {"token": "fresh"}]))
    with pytest.raises(KubeRejected, match="401"):
        api.exec("/api/v1/x", ["true"], "c", 5)
    assert authorizations(server) == ["stale", "fresh"]
