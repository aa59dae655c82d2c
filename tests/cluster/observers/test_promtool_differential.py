"""Where promtool works with a server and settings, nodefall does with the same identity; else neither does.

Until version 2.43 promtool has no --http.config.file: then only what a URL can say is compared.
"""

from __future__ import annotations

import json
import re
import shutil
import ssl
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from chaos.core.errors import NodefallError
from tests.kit.prometheus_stub import QUERY, TOKEN, Stub, check, serving
from tests.kit.recording_server import NAMES, issue
from tests.kit.tls_authority import Authority

PROMTOOL = shutil.which("promtool")
pytestmark = pytest.mark.skipif(not PROMTOOL, reason="promtool (prometheus) is not installed")
MODES = ("", "tenant", "bearer", "basic", "login", "html", "agent", "prefix", "moved")
PATHS = ("", "/prometheus", "/prometheus/")
# nodefall's settings, the configuration of promtool's HTTP client, the modes that they suffice for
BEARER = ({"credentials": {"env": "PW"}}, {"authorization": {"credentials": TOKEN}}, {"bearer"})
BASIC = (
    {"user": "ada", "credentials": {"env": "PW"}},
    {"basic_auth": {"username": "ada", "password": TOKEN}},
    {"basic"},
)
TENANT = (
    {"headers": {"X-Scope-OrgID": "team-a"}},
    {"http_headers": {"X-Scope-OrgID": {"values": ["team-a"]}}},
    {"tenant"},
)
Identity = tuple[dict[str, Any], dict[str, Any], set[str]]


def by_promtool(url: str, folder: Path, config: dict[str, Any] | None = None) -> bool:
    """Whether it works. Skips where this version has no option, or no key, for that."""
    argv = [str(PROMTOOL), "query", "instant", url, QUERY]
    if config is not None:
        (folder / "http.yaml").write_text(json.dumps(config), encoding="utf-8")
        argv.insert(3, f"--http.config.file={folder}/http.yaml")
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    said = done.stdout + done.stderr
    if "unknown long flag '--http.config.file'" in said:
        pytest.skip(f"promtool {version()} has no --http.config.file")
    if config and re.search(r"field \w+ not found", said):
        pytest.skip(f"promtool {version()} does not know {', '.join(config)}")
    return done.returncode == 0


def version() -> str:
    said = subprocess.run([str(PROMTOOL), "--version"], capture_output=True, text=True, check=True)
    return (said.stdout + said.stderr).split()[2]


def by_nodefall(url: str, settings: dict[str, Any]) -> bool:
    try:
        check(url, **settings)
    except NodefallError:
        return False
    return True


def identities(stub: Stub) -> set[tuple[str, ...]]:
    """Who has sent, and forget it."""
    names = ("authorization", "x-scope-orgid", "x-certificate")
    found = {tuple(each.get(name, "") for name in names) for each in stub.headers}
    stub.headers.clear()
    return found


def compare(mode: str, path: str, settings: dict[str, Any], config: dict[str, Any] | None, folder: Path) -> bool:
    stub = Stub(mode)
    with serving(stub) as url:
        expected = by_promtool(url + path, folder, config)
        sent = identities(stub)
        assert by_nodefall(url + path, settings) is expected, (mode, path, settings)
        assert identities(stub) == sent, (mode, path, settings)
    return expected


def test_without_an_identity(tmp_path: Path) -> None:
    worked = {(mode, path) for mode, path in product(MODES, PATHS) if compare(mode, path, {}, None, tmp_path)}
    assert worked >= {("", ""), ("prefix", "/prometheus"), ("moved", "")}
    assert not {mode for mode, _ in worked} & {"tenant", "bearer", "basic", "login", "html", "agent"}


def test_a_password_in_the_url_of_promtool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PW", TOKEN)
    for mode, path in product(MODES, PATHS):
        stub = Stub(mode)
        with serving(stub) as url:
            expected = by_promtool(url.replace("://", f"://ada:{TOKEN}@") + path, tmp_path)
            sent = identities(stub)
            assert by_nodefall(url + path, BASIC[0]) is expected, (mode, path)
            assert expected is (mode in ("", "basic", "moved") or (mode == "prefix" and path != "")), (mode, path)
            assert mode == "moved" or identities(stub) == sent, (mode, path)


@pytest.mark.parametrize("identity", [BEARER, BASIC, TENANT], ids=["bearer", "basic", "tenant"])
def test_each_identity(identity: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PW", TOKEN)
    settings, config, enough = identity
    worked = {mode for mode, path in product(MODES, PATHS[:2]) if compare(mode, path, settings, config, tmp_path)}
    assert worked == {"", "prefix", "moved"} | enough


@pytest.mark.parametrize(
    ("given", "works"),
    [(("ca", "own"), True), (("insecure", "own"), True), (("own",), False), (("ca",), False)],
    ids=["known authority", "not verified", "unknown authority", "no client certificate"],
)
def test_certificates(given: tuple[str, ...], works: bool, tmp_path: Path) -> None:
    authority = Authority(tmp_path, "cluster")
    issue(authority, "server", NAMES)
    issue(authority, "ada")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    tls.load_verify_locations(authority.file)
    tls.verify_mode = ssl.CERT_REQUIRED
    ca, certificate, key = (str(tmp_path / name) for name in ("cluster.crt", "ada.crt", "ada.key"))
    keys: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "ca": ({"ca": ca}, {"ca_file": ca}),
        "insecure": ({"insecureSkipVerify": True}, {"insecure_skip_verify": True}),
        "own": ({"clientCertificate": certificate, "clientKey": key}, {"cert_file": certificate, "key_file": key}),
    }
    settings: dict[str, Any] = {}
    config: dict[str, Any] = {}
    for name in given:
        settings |= keys[name][0]
        config |= keys[name][1]
    with serving(Stub(), tls) as url:
        assert by_nodefall(url, settings) is works
        assert by_promtool(url, tmp_path, {"tls_config": config}) is works
