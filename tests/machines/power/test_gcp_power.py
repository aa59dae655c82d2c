"""Instances of Compute Engine: the SDK over HTTP, with answers as the API references of Google publish them."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.core.identity import HostIdentity, NodeIdentity
from chaos.core.ports import MachineIdentity, MachineRisks
from chaos.core.power_identity import bind_power
from chaos.machines.driver import power_control_of
from chaos.machines.power import gcp
from chaos.machines.power.gcp import GcpControl
from tests.kit.clouds import host_context
from tests.kit.local_http import Reply, Request, local_http

PROVIDER_ID = "gce://shop/europe-west1-b/n1"
INSTANCE = "/compute/v1/projects/shop/zones/europe-west1-b/instances/n1"
GROUP = "projects/123/zones/europe-west1-b/instanceGroupManagers/pool-grp"
POOL = {"goog-k8s-cluster-name": "c", "goog-k8s-cluster-location": "europe-west1", "goog-k8s-node-pool-name": "p"}
STOP = ("stop", {"discardLocalSsd": ["false"], "noGracefulShutdown": ["true"]})


@dataclass
class Google:
    """Compute Engine, GKE and the token endpoint on loopback: one instance, and the changes that were sent to it."""

    instance: dict[str, Any] = field(default_factory=dict)
    group: dict[str, Any] = field(default_factory=dict)
    pool: dict[str, Any] = field(default_factory=dict)
    permissions: list[str] = field(default_factory=lambda: ["compute.instances.start", "compute.instances.stop"])
    change_status: int = 200
    operation: dict[str, Any] = field(default_factory=lambda: {"name": "operation-1", "status": "RUNNING"})
    denied: str = "nothing"
    changes: list[tuple[str, dict[str, list[str]]]] = field(default_factory=list)

    def answer(self, request: Request) -> Reply:
        path = urlsplit(request.path).path
        if path == "/token":
            return reply(200, {"access_token": "token", "expires_in": 3600, "token_type": "Bearer"})
        assert request.headers["Authorization"] == "Bearer token"
        if self.denied in path:
            return failure(403, "Required 'compute.instanceGroupManagers.get' permission")
        if request.method == "POST" and path.startswith(INSTANCE + "/"):
            return self.change(path.removeprefix(INSTANCE + "/"), parse_qs(urlsplit(request.path).query))
        found = {
            INSTANCE: self.described(),
            "/compute/v1/projects/shop/zones/europe-west1-b/instanceGroupManagers/pool-grp": self.group,
            "/compute/v1/projects/shop/regions/europe-west1/instanceGroupManagers/pool-grp": self.group,
            "/v1/projects/shop/locations/europe-west1/clusters/c/nodePools/p": self.pool,
        }
        return reply(200, found[path]) if path in found else failure(404, f"The resource {path} was not found")

    def change(self, verb: str, query: dict[str, list[str]]) -> Reply:
        if verb == "testIamPermissions":
            return reply(200, {"permissions": self.permissions})
        self.changes.append((verb, {name: value for name, value in query.items() if name != "$alt"}))
        if self.change_status != 200:
            return failure(self.change_status, "The resource is not ready")
        return reply(200, {"kind": "compute#operation", **self.operation})

    def described(self) -> dict[str, Any]:
        network = {"networkIP": "10.0.0.1", "accessConfigs": [{"natIP": "203.0.113.9"}]}
        usual = {"id": "4242", "name": "n1", "status": "RUNNING", "networkInterfaces": [network]}
        return {"kind": "compute#instance", **usual, **self.instance}


def reply(status: int, body: Any) -> Reply:
    return Reply(status, json.dumps(body).encode())


def failure(status: int, message: str) -> Reply:
    return reply(status, {"error": {"code": status, "message": message, "errors": [{"message": message}]}})


@pytest.fixture
def google(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Google]:
    """The credentials are those of gcloud's login, whose tokens the local server issues."""
    compute = pytest.importorskip("google.cloud.compute_v1", reason="google-cloud-compute is not installed")
    found = Google()
    with local_http(found.answer) as port:
        url = f"http://127.0.0.1:{port}"
        login = {"type": "authorized_user", "client_id": "i", "client_secret": "s", "refresh_token": "r"}
        file = tmp_path / "login.json"
        file.write_text(json.dumps(login), encoding="utf-8")
        monkeypatch.setattr("google.oauth2.credentials._GOOGLE_OAUTH2_TOKEN_ENDPOINT", f"{url}/token")
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
        for client in ("InstancesClient", "InstanceGroupManagersClient", "RegionInstanceGroupManagersClient"):
            monkeypatch.setattr(getattr(compute, client), "_DEFAULT_ENDPOINT_TEMPLATE", url)
        monkeypatch.setattr(gcp, "CONTAINER_API", f"{url}/v1")
        yield found


def control(**settings: Any) -> GcpControl:
    made = power_control_of(host_context({"kind": "gcp"} | settings, PROVIDER_ID))
    assert isinstance(made, GcpControl)
    return made


def test_it_is_bound_to_the_node_and_not_to_another(google: Google) -> None:
    found = control()
    assert isinstance(found, MachineIdentity)
    assert isinstance(found, MachineRisks)
    identity = found.identity()
    assert identity.key == "4242"  # another instance of the same name has another one
    node = NodeIdentity("n1", "m", "u", addresses=("10.0.0.1", "203.0.113.9"), provider_id=PROVIDER_ID)
    assert bind_power(node, HostIdentity(), identity, {"n1": node}).is_bound
    for other in (
        NodeIdentity("n1", "m", "u", addresses=("10.0.0.1",), provider_id="gce://shop/europe-west1-b/n2"),
        NodeIdentity("n1", "m", "u", addresses=("10.0.0.1",), provider_id="gce://other/europe-west1-b/n1"),
        NodeIdentity("n2", "m", "u", addresses=("192.0.2.1",), provider_id=PROVIDER_ID),
    ):
        assert bind_power(other, HostIdentity(), identity, {other.name: other}).contradictions
    google.instance = {"id": "4243"}
    assert control().identity().key == "4243"


@pytest.mark.parametrize(
    ("status", "state", "on", "off"),
    [
        ("RUNNING", "on", [], [STOP]),
        ("STAGING", "off", [], []),
        ("STOPPING", "on", "refused", [STOP]),
        ("PENDING_STOP", "on", "refused", [STOP]),
        ("SUSPENDED", "on", [("resume", {})], [STOP]),
        ("TERMINATED", "off", [("start", {})], []),
    ],
)
def test_the_state_machine(google: Google, status: str, state: str, on: Any, off: list[Any]) -> None:
    google.instance = {"status": status, "scheduling": {"skipGuestOsShutdown": True}}
    made = control()
    assert made.state() == state
    assert made.is_stopping() == (on == "refused")
    if on == "refused":
        with pytest.raises(Refused, match=f"cannot be started now: it is {status}"):
            made.on()
    else:
        made.on()
        assert google.changes == on
    google.changes.clear()
    made.off()
    assert google.changes == off


def test_a_stop_is_a_power_cut_only_without_a_shutdown_of_the_guest(google: Google) -> None:
    made = control()
    assert made.capabilities == {"on", "soft-off", "state"}
    with pytest.raises(Refused, match="cannot be cut off: Compute Engine shuts its guest down first"):
        made.off()
    assert google.changes == []
    made.soft_off()
    assert google.changes == [("stop", {"discardLocalSsd": ["false"]})]
    google.instance = {"scheduling": {"skipGuestOsShutdown": True}}
    assert made.capabilities == {"on", "off", "state"}
    with pytest.raises(Refused, match="is never shut down: skipGuestOsShutdown is set"):
        made.soft_off()


@pytest.mark.parametrize(
    ("instance", "message"),
    [
        ({}, None),
        ({"scheduling": {"provisioningModel": "SPOT"}}, "it is a Spot instance"),
        ({"scheduling": {"preemptible": True}}, "it is a Spot instance"),
        ({"startRestricted": True}, "does not start it again"),
    ],
)
def test_instances_that_may_be_lost(google: Google, instance: dict[str, Any], message: str | None) -> None:
    google.instance = instance
    found = [risk.message for risk in control().risks()]
    assert (not found) if message is None else message in found[0]


@pytest.mark.parametrize("scope", ["zones/europe-west1-b", "regions/europe-west1"])
@pytest.mark.parametrize(
    ("group", "hint"),
    [
        ({}, "--default-action-on-vm-failure=do-nothing"),
        ({"instanceLifecyclePolicy": {"defaultActionOnFailure": "REPAIR"}}, "do-nothing"),
        ({"instanceLifecyclePolicy": {"defaultActionOnFailure": "DO_NOTHING"}}, None),
        (
            {
                "instanceLifecyclePolicy": {"defaultActionOnFailure": "DO_NOTHING", "onFailedHealthCheck": "REPAIR"},
                "autoHealingPolicies": [{"initialDelaySec": 300}],
            },
            "--clear-autohealing",
        ),
    ],
)
def test_a_managed_instance_group(google: Google, scope: str, group: dict[str, Any], hint: str | None) -> None:
    created_by = f"projects/123/{scope}/instanceGroupManagers/pool-grp"
    google.instance = {"metadata": {"items": [{"key": "created-by", "value": created_by}]}}
    google.group = group
    found = control().risks()
    if hint is None:
        assert found == ()
    else:
        assert "its managed instance group pool-grp recreates it" in found[0].message
        assert hint in found[0].hint
        assert f"--{scope.replace('s/', ' ')} " in found[0].hint


def test_node_auto_repair_of_gke(google: Google) -> None:
    google.instance = {"labels": POOL}
    assert control().risks() == ()
    google.pool = {"management": {"autoRepair": True}}
    (risk,) = control().risks()
    assert "node auto-repair of its GKE node pool p" in risk.message
    assert risk.when_not_ready
    assert "--cluster c --location europe-west1 --no-enable-autorepair" in risk.hint
    google.denied = "/nodePools/"
    assert "container.clusters.get is not permitted" in control().risks()[0].message


def test_missing_rights(google: Google) -> None:
    google.permissions = ["compute.instances.stop"]
    assert [risk.message for risk in control().risks()] == ["the credentials do not permit compute.instances.start"]
    google.permissions.append("compute.instances.start")
    google.instance = {"metadata": {"items": [{"key": "created-by", "value": GROUP}]}}
    google.denied = "instanceGroupManagers"
    assert "whether its group would replace it is unknown" in control().risks()[0].message


def test_errors_of_compute_engine(google: Google) -> None:
    with pytest.raises(Refused, match=r"reading it failed: .*was not found"):
        control(instance="shop/europe-west1-b/n2").state()
    google.instance = {"status": "REPAIRING"}
    with pytest.raises(NodefallError, match="has no power state: it is REPAIRING"):
        control().state()
    google.instance = {"status": "TERMINATED"}
    for status in (400, 503):
        google.change_status = status
        with pytest.raises(NodefallError, match=r"start failed: .*is not ready") as caught:
            control().on()
        assert isinstance(caught.value, Refused) is (status == 400)
        assert not isinstance(caught.value, Unreachable)
    google.change_status = 200
    google.operation = {"name": "o", "status": "DONE", "error": {"errors": [{"code": "X", "message": "no capacity"}]}}
    with pytest.raises(Refused, match="start failed: no capacity"):
        control().on()


def test_a_cloud_that_does_not_answer(google: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    compute = importlib.import_module("google.cloud.compute_v1")
    monkeypatch.setattr(compute.InstancesClient, "_DEFAULT_ENDPOINT_TEMPLATE", "http://127.0.0.1:1")
    with pytest.raises(Unreachable, match="reading it failed"):
        control().on()


def test_without_credentials_or_an_instance_it_is_refused(google: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/login.json")
    with pytest.raises(Refused, match=r"power control gcp of n1 cannot be used: .*login.json") as caught:
        control()
    assert "gcloud auth application-default login" in str(caught.value.hint)
    with pytest.raises(Refused, match="has no machine: its Node has the provider ID aws:///a/i-1"):
        power_control_of(host_context({"kind": "gcp"}, "aws:///a/i-1"))


def test_without_the_extra_it_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.cloud.compute_v1", None)
    with pytest.raises(
        Refused, match=r"^power control gcp cannot be used: google\.cloud\.compute_v1 is not installed$"
    ) as caught:
        control()
    assert caught.value.hint == "run pip install 'nodefall[gcp]'"
