"""The transport winrm in an inventory: its options, the endpoint that they make, and inventories that are refused."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from chaos.core.command import HostCommand
from chaos.core.driver import file_keys
from chaos.core.errors import BadInput, Refused
from chaos.core.inventory import Inventory
from chaos.core.redaction import redact
from chaos.documents.inventory import load_inventory
from chaos.machines.driver import HostContext, transport_of
from chaos.machines.local import SecretContext
from chaos.machines.sessions.host_keys import HostKeyPin
from chaos.machines.sessions.settings import LocalUser
from chaos.machines.transports.winrm import WinRmOptions, WinRmTransport
from chaos.machines.winrm.endpoint import Endpoint
from chaos.machines.winrm.session import WinRmSession
from tests.kit.tls_authority import Authority
from tests.kit.wsman_server import PASSWORD, USER, serving_wsman

SECRET = {"env": "WIN_PASSWORD"}
PIN = "ab" * 32


def context(host: dict[str, Any], find_address: str = "", pin: HostKeyPin | None = None, **more: Any) -> HostContext:
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Inventory", "metadata": {"name": "i"}}
    hosts = {"hosts": {"win-1": {"os": "windows", "transport": "winrm"} | host}}
    inventory = Inventory.model_validate(head | {"cluster": {"kubeconfig": "k"}} | hosts | more)
    secrets = SecretContext({"WIN_PASSWORD": PASSWORD}, Path("/home/ops"), Path("/inventory"))
    local = LocalUser("ops", Path("/home/ops"))
    return HostContext(inventory, "win-1", "node-a", local, secrets, lambda: find_address, pin=pin or HostKeyPin())


def endpoint(host: dict[str, Any], **more: Any) -> Endpoint:
    return WinRmTransport().endpoint(context(host, **more))


def test_the_defaults_are_ntlm_over_https_with_a_verified_certificate() -> None:
    found = endpoint({"address": "10.0.0.7", "user": r"CORP\ops", "options": {"password": SECRET}})
    assert found == Endpoint("win-1", "10.0.0.7", 5986, "ntlm", r"CORP\ops", PASSWORD)
    assert found.url == "https://10.0.0.7:5986/wsman"
    assert found.label == r"win-1 (CORP\ops@10.0.0.7:5986)"


def test_all_options() -> None:
    options = {
        "auth": "certificate", "hostname": "win.example", "caFile": "ca.pem", "certificate": "~/c.pem", "key": "/k.pem",
        "fingerprint": ":".join(["AB"] * 32),
    }  # fmt: skip
    found = endpoint({"address": "fd00::7", "port": 443, "connectTimeout": "3s", "options": options})
    assert found == Endpoint(
        "win-1", "fd00::7", 443, "certificate", hostname="win.example", ca_file=Path("/inventory/ca.pem"),
        fingerprint=PIN, certificate=Path("/home/ops/c.pem"), key=Path("/k.pem"), connect_timeout=3.0,
    )  # fmt: skip
    assert (found.url, found.label) == ("https://[fd00::7]:443/wsman", "win-1 ([fd00::7]:443)")


@pytest.mark.parametrize(
    ("defaults", "port"), [({"transport": "ssh", "port": 2222}, 5986), ({"transport": "winrm", "port": 7000}, 7000)]
)
def test_a_default_port_is_that_of_the_default_transport(defaults: dict[str, Any], port: int) -> None:
    assert endpoint({"user": "u", "options": {"password": SECRET}}, defaults=defaults).port == port


def test_plain_http_encrypts_its_messages() -> None:
    found = endpoint({"user": "u", "options": {"scheme": "http", "password": SECRET}}, find_address="10.0.0.8")
    assert found.url == "http://10.0.0.8:5985/wsman"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, "auth ntlm needs a password"),
        ({"auth": "basic"}, "auth basic needs a password"),
        ({"auth": "credssp"}, "auth credssp needs a password"),
        ({"auth": "certificate", "certificate": "c"}, "auth certificate needs certificate and key"),
        ({"auth": "digest"}, "Input should be 'ntlm'"),
        (
            {"auth": "basic", "scheme": "http", "password": SECRET},
            "auth basic over http would send messages unencrypted",
        ),
        (
            {"auth": "certificate", "scheme": "http", "certificate": "c", "key": "k"},
            "auth certificate over http would send",
        ),
        ({"scheme": "http", "password": SECRET, "caFile": "x"}, "caFile and fingerprint need scheme https"),
        ({"password": "hunter22"}, "a secret must not be in this file"),
        ({"password": SECRET, "fingerprint": "SHA1:00"}, "it is not the SHA-256 of a certificate"),
        ({"password": SECRET, "verify": False}, "Extra inputs are not permitted"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], error: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(error)):
        WinRmOptions.model_validate(options)
    with pytest.raises(Refused, match=re.escape(error)):
        endpoint({"user": "u", "options": options})


def test_kerberos_needs_neither_user_nor_password() -> None:
    assert endpoint({"address": "w", "options": {"auth": "kerberos", "scheme": "http"}}).user == ""


def test_a_password_needs_a_user() -> None:
    with pytest.raises(Refused, match="win-1 has no user for auth ntlm") as refused:
        endpoint({"options": {"password": SECRET}})
    assert refused.value.hint


def test_there_are_no_jump_hosts() -> None:
    with pytest.raises(Refused, match="win-1 has proxyJump, but WinRM has no jump hosts"):
        endpoint({"user": "u", "proxyJump": ["b@bastion"], "options": {"password": SECRET}})


def test_secrets_are_registered_and_never_shown() -> None:
    found = endpoint({"user": "u", "options": {"password": SECRET}})
    assert PASSWORD not in repr(found)
    assert PASSWORD not in f"{found}"
    assert redact(f"a {PASSWORD} b") == "a *** b"


def test_known_keys_are_the_pinned_certificate() -> None:
    host = context({"options": {"password": SECRET, "fingerprint": PIN}})
    assert transport_of(host).known_keys(host) == {f"certificate SHA256:{PIN}"}
    without = context({"options": {"password": SECRET}})
    assert transport_of(without).known_keys(without) == frozenset()


def test_the_driver_opens_a_session_and_pins_the_host(authority: Authority, tmp_path: Path) -> None:
    with serving_wsman(authority.server(), authority.file) as service:
        pin = HostKeyPin()
        options = {"auth": "basic", "password": SECRET, "caFile": str(authority.file)}
        host = context({"address": "127.0.0.1", "port": service.port, "user": USER, "options": options}, pin=pin)
        session = transport_of(host).open_session(host)
        assert pin.type == "certificate"
        assert session.run(HostCommand((r"C:\Windows\System32\hostname.exe",))).exit == 0
        session.close()
        service.accepts_login = False
        with pytest.raises(Refused, match="rejected the login"):
            transport_of(host).open_session(host)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "authority")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"caFile": "/nowhere.pem"}, "caFile /nowhere.pem of win-1 cannot be used: No such file"),
        (
            {"auth": "certificate", "certificate": "/c.pem", "key": "/k.pem"},
            "certificate /c.pem and key /k.pem of win-1",
        ),
    ],
)
def test_files_that_cannot_be_used(options: dict[str, Any], error: str) -> None:
    session = WinRmSession(endpoint({"address": "127.0.0.1", "user": "u", "options": {"password": SECRET} | options}))
    with pytest.raises(Refused, match=re.escape(error)):
        session.connect()
    session.close()


def test_winrm_works_without_the_extra_credssp() -> None:
    code = "import sys; sys.modules['requests_credssp'] = None; import chaos.machines.winrm.client"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("auth", ["kerberos", "credssp"])
def test_an_extra_that_is_not_installed_is_named(auth: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("winrm.transport", "chaos.machines.winrm.faults"):
        monkeypatch.setattr(f"{module}.HAVE_{auth.upper()}", False, raising=False)
    session = WinRmSession(
        endpoint({"address": "127.0.0.1", "user": "u", "options": {"auth": auth, "password": SECRET}})
    )
    outcome = session.run(HostCommand((r"C:\Windows\System32\hostname.exe",)))
    assert outcome.delivery == "not-sent"
    assert f"install nodefall[{auth}]" in outcome.error
    session.close()


INVENTORY = """\
apiVersion: nodefall.dev/v1alpha1
kind: Inventory
metadata: {name: i}
cluster: {kubeconfig: k}
hosts:
  win-1:
    os: windows
    transport: winrm
    user: ops
    options: {password: {file: secret}, caFile: ca.pem}
  win-2: {os: windows, shell: powershell, user: ops}
"""


def load(tmp_path: Path, old: str = "", new: str = "") -> Inventory:
    path = tmp_path / "inventory.yaml"
    path.write_text(INVENTORY.replace(old, new) if old else INVENTORY)
    path.chmod(0o644)
    return load_inventory(path)


def test_paths_are_relative_to_the_inventory(tmp_path: Path) -> None:
    inventory = load(tmp_path)
    options = WinRmOptions.model_validate(inventory.hosts["win-1"].options)
    assert (options.ca_file, options.password and options.password.file) == (
        f"{tmp_path}/ca.pem",
        f"{tmp_path}/secret",
    )
    assert sorted(file_keys(WinRmOptions)) == [("caFile",), ("certificate",), ("key",), ("password", "file")]
    assert inventory.hosts["win-2"].shell == "powershell"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("    os: windows\n", "", "7:16: transport winrm is for hosts with os windows, this one has linux"),
        ("transport: winrm", "transport: docker", "8:16: transport docker is for hosts with os linux, this one has"),
        ("win-2: {os: windows", "win-2: {os: linux", "11:10: shell needs os: windows"),
        ("shell: powershell", "shell: zsh", "11:31: expected 'cmd' or 'powershell', got the text 'zsh'"),
        ("{file: secret}", "hunter22", "10:25: a secret must not be in this file"),
        ("password: {file: secret}, ", "", "10:14: auth ntlm needs a password"),
        ("user: ops}", "user: ops, options: {auth: ntlm}}", "11:54: transport ssh has no options"),
    ],
)
def test_inventories_that_are_refused(tmp_path: Path, old: str, new: str, problem: str) -> None:
    with pytest.raises(BadInput) as refused:
        load(tmp_path, old, new)
    assert problem in str(refused.value)


def test_nothing_of_pywinrm_logs_the_password(caplog: pytest.LogCaptureFixture, authority: Authority) -> None:
    with caplog.at_level(logging.DEBUG), serving_wsman(authority.server(), authority.file) as service:
        session = WinRmSession(service.endpoint())
        session.connect()
        session.close()
    assert PASSWORD not in caplog.text
