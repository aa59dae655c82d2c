"""Kubeconfigs that are not trusted, connections that are not verified, and keys that never become files."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chaos.cluster.client import connect
from chaos.core.errors import BadInput
from tests.kit.misbehaving import KubeServer, kubeconfig, serving
from tests.kit.tls_authority import Authority

TOKEN = {"token": "secret"}


def data(text: bytes) -> str:
    return base64.b64encode(text).decode()


@pytest.mark.parametrize(("mode", "why"), [(0o602, "any user may write"), (0o646, "any user may write")])
def test_a_kubeconfig_that_others_may_write_is_refused(tmp_path: Path, mode: int, why: str) -> None:
    """It may name an exec plugin, which would be run."""
    ran = tmp_path / "ran"
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "args": [str(ran)]}
    file = kubeconfig(tmp_path, "https://127.0.0.1:1", {"exec": plugin})
    file.chmod(mode)
    with pytest.raises(BadInput, match=why) as caught:
        connect(str(file))
    assert caught.value.problems[0].hint == f"chmod go-w {file}"
    assert not ran.exists()


def test_a_connection_that_is_not_verified_is_a_risk(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, "https://10.0.0.1", TOKEN, **{"insecure-skip-tls-verify": True})
    assert "insecure-skip-tls-verify" in connect(str(file)).risks[0]
    assert connect(str(kubeconfig(tmp_path, "https://10.0.0.1", TOKEN))).risks == ()


def test_a_proxy_of_the_environment_is_a_risk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://user:hidden@proxy.example:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    (risk,) = connect(str(kubeconfig(tmp_path, "https://10.0.0.1", TOKEN))).risks
    assert "proxy proxy.example of the environment" in risk
    assert "hidden" not in risk
    assert connect(str(kubeconfig(tmp_path, "https://127.0.0.1", TOKEN))).risks == (), "as kubectl"


REQUESTS = """
import sys
from chaos.cli.app import silence_urllib3
silence_urllib3()
from chaos.cluster.client import connect
api = connect(sys.argv[1], "test")
print([api.request("GET", "/version").status for _ in range(3)])
"""


def test_requests_without_verification_do_not_flood_the_terminal(tmp_path: Path) -> None:
    state = KubeServer()
    state.answers["/version"] = (200, b"{}")
    with serving(state, Authority(tmp_path, "unknown").server()) as port:
        file = kubeconfig(tmp_path, f"https://127.0.0.1:{port}", TOKEN, **{"insecure-skip-tls-verify": True})
        done = subprocess.run(
            [sys.executable, "-c", REQUESTS, str(file)], capture_output=True, text=True, timeout=60, check=False
        )
    assert (done.stdout, done.stderr) == ("[200, 200, 200]\n", "")


USE = """
import sys, tempfile, os
from chaos.cluster.client import connect
api = connect(sys.argv[1], "test")
print(api.request("GET", "/version").status, flush=True)
os.kill(os.getpid(), 9)
"""


def client_pair(authority: Authority) -> tuple[bytes, bytes]:
    """Certificate and key that the authority has signed."""
    authority.server()
    pem = (authority.folder / "server.pem").read_bytes()
    certificate, mark, key = pem.partition(b"-----BEGIN PRIVATE KEY-----")
    return certificate, mark + key


def test_a_killed_process_leaves_no_key(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "cluster")
    certificate, key = client_pair(authority)
    user = {"client-certificate-data": data(certificate), "client-key-data": data(key)}
    cluster: dict[str, Any] = {"certificate-authority-data": data(authority.file.read_bytes())}
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    state = KubeServer()
    state.answers["/version"] = (200, b"{}")
    with serving(state, authority.server()) as port:
        file = kubeconfig(tmp_path, f"https://127.0.0.1:{port}", user, **cluster)
        done = subprocess.run(
            [sys.executable, "-c", USE, str(file)],
            env=os.environ | {"TMPDIR": str(temporary)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.stdout, done.returncode) == ("200\n", -9), done.stderr
    assert list(temporary.iterdir()) == []
