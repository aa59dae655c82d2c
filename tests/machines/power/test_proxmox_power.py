"""Machines of Proxmox VE: proxmoxer over HTTPS, with answers as its API viewer documents them."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.core.identity import HostIdentity, NodeIdentity
from chaos.core.ports import ALL_CAPABILITIES, MachineIdentity, MachineRisks
from chaos.core.power_identity import bind_power
from chaos.machines.driver import power_control_of
from chaos.machines.power.proxmox import ProxmoxControl
from tests.kit.clouds import host_context
from tests.kit.tls_authority import Authority

UUID, OTHER = "11111111-2222-4333-8444-555555555555", "99999999-2222-4333-8444-555555555555"
SECRET = "hunter2-secret"
BASE = "/api2/json"


@dataclass
class Proxmox:
    """A server of Proxmox VE with the machine 101 on the node pve2, and what was sent to it."""

    port: int = 0
    ca: Path = Path()
    status: dict[str, Any] = field(default_factory=lambda: {"status": "running", "qmpstatus": "running"})
    config: dict[str, Any] = field(default_factory=lambda: {"smbios1": f"manufacturer=x,uuid={UUID}"})
    post_status: int = 200
    posts: list[str] = field(default_factory=list)
    forms: list[str] = field(default_factory=list)

    def answer(self, path: str) -> tuple[int, Any]:
        machine = f"{BASE}/nodes/pve2/qemu/101"
        machines = [{"vmid": 100, "type": "qemu", "node": "pve1"}, {"vmid": 101, "type": "qemu", "node": "pve2"}]
        found = {
            f"{BASE}/cluster/resources?type=vm": machines,
            f"{machine}/status/current": self.status,
            f"{machine}/config": self.config,
        }
        return (200, found[path]) if path in found else (501, None)

    def control(self, **settings: Any) -> ProxmoxControl:
        power = {"kind": "proxmox", "address": "127.0.0.1", "port": self.port, "vmid": 101, "caFile": str(self.ca)}
        power |= {"user": "ops@pve", "token": "nodefall", "secret": {"env": "PVE"}}
        made = power_control_of(host_context(power | settings, environ={"PVE": SECRET}))
        assert isinstance(made, ProxmoxControl)
        return made


def handler(proxmox: Proxmox) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.respond(*proxmox.answer(self.path))

        def do_POST(self) -> None:
            proxmox.forms.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            proxmox.posts.append(self.path.removeprefix(f"{BASE}/nodes/pve2/qemu/101/status/"))
            self.respond(proxmox.post_status, "UPID:pve2:0001")

        def respond(self, status: int, data: Any) -> None:
            if self.headers["Authorization"] != f"PVEAPIToken=ops@pve!nodefall={SECRET}":
                status, data = 401, None
            text = json.dumps({"data": data}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Quiet."""

    return Handler


@pytest.fixture
def proxmox(tmp_path: Path) -> Iterator[Proxmox]:
    pytest.importorskip("proxmoxer", reason="proxmoxer is not installed")
    authority = Authority(tmp_path, "pve")
    found = Proxmox(ca=authority.file)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler(found)) as server:
        server.socket = authority.server().wrap_socket(server.socket, server_side=True)
        found.port = server.server_port
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield found
        server.shutdown()
        thread.join()


def test_it_is_bound_by_its_uuid_and_not_to_another(proxmox: Proxmox) -> None:
    found = proxmox.control()
    assert isinstance(found, MachineIdentity)
    assert isinstance(found, MachineRisks)
    assert found.capabilities == ALL_CAPABILITIES
    assert found.identity().key == UUID
    node, other = NodeIdentity("n1", "m", UUID), NodeIdentity("n1", "m", OTHER)
    assert bind_power(node, HostIdentity(), found.identity(), {"n1": node}).is_bound
    assert bind_power(other, HostIdentity(), found.identity(), {"n1": other}).contradictions
    proxmox.config = {}
    assert found.identity().key == ""


@pytest.mark.parametrize(
    ("status", "state", "on", "off"),
    [
        ({"status": "running", "qmpstatus": "running"}, "on", [], ["stop"]),
        ({"status": "running", "qmpstatus": "paused"}, "on", ["resume"], ["stop"]),
        ({"status": "stopped", "qmpstatus": "stopped"}, "off", ["start"], []),
    ],
)
def test_the_state_machine(proxmox: Proxmox, status: dict[str, Any], state: str, on: list[str], off: list[str]) -> None:
    proxmox.status = status
    assert proxmox.control().state() == state
    proxmox.control().on()
    assert proxmox.posts == on
    proxmox.posts.clear()
    proxmox.control().off()
    assert proxmox.posts == off


def test_soft_off_is_never_by_force(proxmox: Proxmox) -> None:
    proxmox.control().soft_off()
    assert (proxmox.posts, proxmox.forms) == (["shutdown"], ["forceStop=0"])


@pytest.mark.parametrize(
    ("more", "risks"),
    [
        ({}, []),
        ({"ha": {"managed": 0}}, []),
        ({"ha": {"managed": 1}}, ["the HA manager starts it again, or on another node"]),
        ({"lock": "backup"}, ["it is locked (backup), and can be neither stopped nor started"]),
    ],
)
def test_what_proxmox_would_do(proxmox: Proxmox, more: dict[str, Any], risks: list[str]) -> None:
    proxmox.status |= more
    assert [risk.message for risk in proxmox.control().risks()] == risks


def test_errors(proxmox: Proxmox, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"machine 102 of Proxmox VE at 127.0.0.1 is not found"):
        proxmox.control(vmid=102).off()
    with pytest.raises(Refused, match="reading its status failed: 401"):
        proxmox.control(token="stranger").off()
    with pytest.raises(Unreachable, match=r"reading its status failed: .*certificate verify failed"):
        proxmox.control(caFile=None).off()
    assert proxmox.posts == []
    proxmox.status = {"status": "unknown"}
    with pytest.raises(NodefallError, match="has no power state: it is unknown"):
        proxmox.control().off()
    proxmox.status = {"status": "running"}
    for status, error in ((403, Refused), (500, NodefallError)):
        proxmox.post_status = status
        with pytest.raises(NodefallError, match=f"stop failed: {status}") as caught:
            proxmox.control().off()
        assert type(caught.value) is error
        assert SECRET not in str(caught.value)


def test_without_the_extra_it_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "proxmoxer", None)
    with pytest.raises(Refused, match=r"^power control proxmox cannot be used: proxmoxer is not installed$") as caught:
        Proxmox(port=1).control()
    assert caught.value.hint == "run pip install 'nodefall[proxmox]'"
