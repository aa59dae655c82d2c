"""Servers of Nova: openstacksdk over HTTP, with the answers that the API references of Keystone and Nova publish."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.core.identity import HostIdentity, NodeIdentity
from chaos.core.ports import MachineIdentity, MachineRisks
from chaos.core.power_identity import bind_power
from chaos.machines.driver import power_control_of
from chaos.machines.power.openstack import OpenstackControl
from tests.kit.clouds import host_context

ID, OTHER, PROJECT = "9168b536-cd40-4630-b43f-b259807c6e87", "22222222-cd40-4630-b43f-b259807c6e87", "6f70656e"


@dataclass
class Cloud:
    """Keystone and Nova on loopback: one server, and the actions that were sent to it."""

    url: str = ""
    status: str = "ACTIVE"
    task: str | None = None
    locked: bool = False
    action_status: int = 202
    actions: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, method: str, path: str) -> tuple[int, Any]:
        if path.endswith("/v3/auth/tokens"):
            endpoint = {
                "interface": "public",
                "region_id": "r",
                "region": "r",
                "url": f"{self.url}/compute/v2.1",
                "id": "e",
            }
            catalog = [{"type": "compute", "name": "nova", "id": "c", "endpoints": [endpoint]}]
            token: dict[str, Any] = {"methods": ["password"], "expires_at": "2099-01-01T00:00:00Z", "catalog": catalog}
            token |= {"project": {"id": PROJECT, "name": "p", "domain": {"id": "default", "name": "Default"}}}
            return 201, {"token": token}
        if path.rstrip("/").endswith("/v3"):
            links = [{"rel": "self", "href": f"{self.url}/v3/"}]
            return 200, {"version": {"id": "v3.14", "status": "stable", "links": links}}
        if path.rstrip("/").endswith("/compute/v2.1"):
            links = [{"rel": "self", "href": f"{self.url}/compute/v2.1/"}]
            version = {"id": "v2.1", "status": "CURRENT", "version": "2.96", "min_version": "2.1", "links": links}
            return 200, {"version": version}
        if path.endswith(f"/servers/{ID}"):
            return 200, {"server": self.server()}
        if path.endswith(f"/servers/{ID}/action"):
            return self.action_status, {"conflictingRequest": {"code": self.action_status, "message": "in task state"}}
        return 404, {"itemNotFound": {"code": 404, "message": f"{method} {path}: not found"}}

    def server(self) -> dict[str, Any]:
        address = {"addr": "10.0.0.1", "version": 4, "OS-EXT-IPS:type": "fixed", "OS-EXT-IPS-MAC:mac_addr": "aa:bb"}
        return {
            "id": ID,
            "name": "n1",
            "status": self.status,
            "OS-EXT-STS:task_state": self.task,
            "tenant_id": PROJECT,
            "locked": self.locked,
            "addresses": {"private": [address]},
        }


def handler(cloud: Cloud) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.respond("GET")

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path.endswith("/action"):
                assert self.headers["X-Auth-Token"] == "token"
                cloud.actions.append(body)
            self.respond("POST")

        def respond(self, method: str) -> None:
            status, body = cloud.answer(method, self.path)
            text = b"" if status == 202 else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("X-Subject-Token", "token")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Quiet."""

    return Handler


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    pytest.importorskip("openstack", reason="openstacksdk is not installed")
    found = Cloud()
    with ThreadingHTTPServer(("127.0.0.1", 0), handler(found)) as server:
        found.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        names = {"AUTH_URL": f"{found.url}/v3", "USERNAME": "ops", "PASSWORD": "secret", "PROJECT_NAME": "p"}
        names |= {"USER_DOMAIN_ID": "default", "PROJECT_DOMAIN_ID": "default", "REGION_NAME": "r"}
        for name, value in names.items():
            monkeypatch.setenv(f"OS_{name}", value)
        yield found
        server.shutdown()
        thread.join()


def control(**settings: Any) -> OpenstackControl:
    made = power_control_of(host_context({"kind": "openstack"} | settings, f"openstack:///{ID}"))
    assert isinstance(made, OpenstackControl)
    return made


def test_it_is_bound_to_the_node_and_not_to_another(cloud: Cloud) -> None:
    found = control()
    assert isinstance(found, MachineIdentity)
    assert isinstance(found, MachineRisks)
    identity = found.identity()
    assert identity.key == ID
    for provider_id in (f"openstack:///{ID}", f"openstack://r/{ID}"):
        node = NodeIdentity("n1", "m", ID, addresses=("10.0.0.1",), provider_id=provider_id)
        assert bind_power(node, HostIdentity(), identity, {"n1": node}).is_bound
    for other in (
        NodeIdentity("n1", "m", ID, provider_id=f"openstack:///{OTHER}"),
        NodeIdentity("n1", "m", OTHER, provider_id=f"openstack:///{ID}"),
        NodeIdentity("n1", "m", ID, addresses=("192.0.2.1",), provider_id=f"openstack:///{ID}"),
    ):
        names = {"other": other}
        if other.addresses:
            identity = type(identity)(ID, (), identity.addresses, provider_id=identity.provider_id)
        assert bind_power(other, HostIdentity(), identity, names).contradictions


@pytest.mark.parametrize(
    ("status", "task", "state", "sent"),
    [
        ("ACTIVE", None, "on", False),
        ("ACTIVE", "powering-off", "on", False),
        ("SHUTOFF", None, "off", True),
        ("SHUTOFF", "powering-on", "off", False),
        ("PAUSED", None, "on", "refused"),
        ("SHUTOFF", "deleting", "off", "refused"),
    ],
)
def test_the_state_machine(cloud: Cloud, status: str, task: str | None, state: str, sent: bool | str) -> None:
    cloud.status, cloud.task = status, task
    made = control()
    assert made.state() == state
    assert made.is_stopping() == (task in ("powering-off", "deleting"))
    if sent == "refused":
        with pytest.raises(Refused, match=f"cannot be started now: it is {status}"):
            made.on()
    else:
        made.on()
    assert cloud.actions == ([{"os-start": None}] if sent is True else [])


def test_nova_has_no_power_cut(cloud: Cloud) -> None:
    made = control()
    assert made.capabilities == {"on", "soft-off", "state"}
    with pytest.raises(Refused, match="cannot be cut off: Nova shuts it down first"):
        made.off()
    assert cloud.actions == []
    made.soft_off()
    assert cloud.actions == [{"os-stop": None}]


def test_a_server_of_another_project_is_refused(cloud: Cloud) -> None:
    cloud.status = "SHUTOFF"
    assert control(project=PROJECT).state() == "off"
    with pytest.raises(Refused, match=f"belongs to project {PROJECT}, and the inventory expects 77"):
        control(project="77").on()
    assert cloud.actions == []


def test_a_locked_server(cloud: Cloud) -> None:
    assert control().risks() == ()
    cloud.locked = True
    assert [risk.message for risk in control().risks()] == ["it is locked, so that it could not be started again"]


def test_errors_of_nova(cloud: Cloud) -> None:
    cloud.status = "ERROR"
    with pytest.raises(NodefallError, match="has no power state: it is ERROR"):
        control().state()
    with pytest.raises(Refused, match=r"reading it failed: .*not found"):
        control(server=OTHER).state()
    cloud.status, cloud.action_status = "SHUTOFF", 409
    with pytest.raises(Refused, match=r"os-start failed: .*409.*in task state"):
        control().on()
    cloud.action_status = 500
    with pytest.raises(NodefallError, match="os-start failed") as caught:
        control().on()
    assert not isinstance(caught.value, Refused | Unreachable)


def test_a_keystone_that_does_not_answer(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_AUTH_URL", "http://127.0.0.1:1/v3")
    with pytest.raises(NodefallError, match=r"Unable to establish connection|Could not find") as caught:
        control().on()
    assert isinstance(caught.value, Refused | Unreachable)


def test_without_the_extra_it_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openstack", None)
    with pytest.raises(
        Refused, match=r"^power control openstack cannot be used: openstack is not installed$"
    ) as caught:
        control()
    assert caught.value.hint == "run pip install 'nodefall[openstack]'"
