"""Power of an instance of Google Compute Engine; needs the extra ``gcp``.

Calls and states: Compute Engine API v1 (instances.get, stop, start, resume, testIamPermissions; Scheduling). A stop
shuts the guest down first, unless the instance has ``skipGuestOsShutdown``: only then is it a power cut.

What replaces instances that are down: Compute Engine API v1 (InstanceGroupManagerInstanceLifecyclePolicy;
``created-by`` in an instance's metadata); GKE API v1 (NodeManagement) and its page on node auto-repair; GKE sets the
labels ``goog-k8s-*`` of its instances.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from chaos.core.command import PowerCapability, PowerState
from chaos.core.driver import PowerSettings
from chaos.core.errors import Refused
from chaos.core.field_types import full_match
from chaos.core.ports import ALL_CAPABILITIES
from chaos.core.power_identity import PowerIdentity, PowerRisk
from chaos.machines.driver import HostContext, PowerDriver
from chaos.machines.power.cloud import READ_TIMEOUT, Failures, ProviderControl, load_sdk, machine_parts, not_carried_out

CONTAINER_API = "https://container.googleapis.com/v1"
_GROUP = re.compile(r"projects/[^/]+/(zones|regions)/([^/]+)/instanceGroupManagers/([^/]+)$")
_CLUSTER, _LOCATION, _POOL = "goog-k8s-cluster-name", "goog-k8s-cluster-location", "goog-k8s-node-pool-name"
# In a transition the former state counts, and a suspended instance keeps its memory: neither is proven off.
_STATES = {
    "PENDING": PowerState.OFF,
    "PROVISIONING": PowerState.OFF,
    "STAGING": PowerState.OFF,
    "RUNNING": PowerState.ON,
    "PENDING_STOP": PowerState.ON,
    "STOPPING": PowerState.ON,
    "SUSPENDING": PowerState.ON,
    "SUSPENDED": PowerState.ON,
    "STOPPED": PowerState.OFF,
    "TERMINATED": PowerState.OFF,
}
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_PERMISSIONS = ("compute.instances.start", "compute.instances.stop")


@dataclass(frozen=True, slots=True)
class GroupClients:
    """Clients of the SDK for groups of a zone and of a region, and a session with the same credentials for GKE."""

    zonal: Any
    regional: Any
    session: Any


def group_risks(
    clients: GroupClients, project: str, metadata: Mapping[str, str], labels: Mapping[str, str]
) -> Iterator[PowerRisk]:
    """Why an instance with this metadata and these labels would be replaced. Raises the SDK's errors."""
    if group := _GROUP.search(metadata.get("created-by", "")):
        yield from _repair_by_group(clients, project, *group.groups())
    if labels.get(_CLUSTER) and labels.get(_LOCATION) and labels.get(_POOL):
        yield from _repair_by_gke(clients.session, project, labels)


def _repair_by_group(clients: GroupClients, project: str, scope: str, place: str, name: str) -> Iterator[PowerRisk]:
    client = clients.zonal if scope == "zones" else clients.regional
    where = scope.removesuffix("s")
    found = client.get(
        **{"project": project, where: place, "instance_group_manager": name}, retry=None, timeout=READ_TIMEOUT
    )
    policy = found.instance_lifecycle_policy
    checked = bool(found.auto_healing_policies) and policy.on_failed_health_check == "REPAIR"
    if policy.default_action_on_failure != "DO_NOTHING" or checked:
        command = f"gcloud compute instance-groups managed update {name} --{where} {place}"
        options = "--default-action-on-vm-failure=do-nothing" + (" --clear-autohealing" if checked else "")
        yield PowerRisk(
            f"its managed instance group {name} recreates it when it is not running",
            f"turn repairs off during the run: {command} {options}",
        )


def _repair_by_gke(session: Any, project: str, labels: Mapping[str, str]) -> Iterator[PowerRisk]:
    place, cluster, pool = labels[_LOCATION], labels[_CLUSTER], labels[_POOL]
    url = f"{CONTAINER_API}/projects/{project}/locations/{place}/clusters/{cluster}/nodePools/{pool}"
    answer = session.get(url, timeout=READ_TIMEOUT)
    if answer.status_code == 403:
        what = f"whether GKE repairs the nodes of pool {pool} is unknown: container.clusters.get is not permitted"
        yield PowerRisk(what, "grant the credentials container.clusters.get", when_not_ready=True)
        return
    answer.raise_for_status()
    if answer.json().get("management", {}).get("autoRepair"):
        command = f"gcloud container node-pools update {pool} --cluster {cluster} --location {place}"
        yield PowerRisk(
            f"node auto-repair of its GKE node pool {pool} recreates it when its Node is not Ready for 10 minutes",
            f"disable it during the run: {command} --no-enable-autorepair",
            when_not_ready=True,
        )


class GcpPower(PowerSettings):
    """Uses the application default credentials of the SDK."""

    kind: Literal["gcp"] = Field(description="An instance of Google Compute Engine.")
    instance: Annotated[str, full_match("[^/ ]+/[^/ ]+/[^/ ]+", "is no instance: write PROJECT/ZONE/NAME")] | None = (
        Field(
            None, description="The instance as PROJECT/ZONE/NAME. By default, it is taken from the Node's provider ID."
        )
    )

    @property
    def names_machine(self) -> bool:
        return bool(self.instance or self.identity)


@dataclass(frozen=True, slots=True)
class GcpClients:
    """Clients of the SDK, and the errors that they raise; ``rejected``: with an HTTP status."""

    instances: Any
    groups: GroupClients
    rejected: type[Exception]
    failures: Failures


def make_gcp_control(power: GcpPower, host: HostContext) -> GcpControl:
    """Power control of one instance. Raises Refused without the SDK, its credentials or an instance."""
    compute = load_sdk("google.cloud.compute_v1", "gcp")
    auth = load_sdk("google.auth", "gcp")
    parts = tuple(power.instance.split("/")) if power.instance else machine_parts(host, "gcp", "gce")
    if len(parts) != 3:
        raise Refused(f"power control gcp of {host.node} has no instance: {'/'.join(parts)}", hint="write instance")
    try:
        clients = host.shared.get(("gcp",), lambda: _connect(compute, auth))
    except auth.exceptions.GoogleAuthError as error:
        hint = "run gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS"
        raise Refused(f"power control gcp of {host.node} cannot be used: {error}", hint=hint) from error
    return GcpControl(clients, *parts)


def _connect(compute: Any, auth: Any) -> GcpClients:
    requests = load_sdk("google.auth.transport.requests", "gcp")
    credentials, _ = auth.default(scopes=[_SCOPE])
    groups = GroupClients(
        compute.InstanceGroupManagersClient(credentials=credentials),
        compute.RegionInstanceGroupManagersClient(credentials=credentials),
        requests.AuthorizedSession(credentials),
    )
    rejected = load_sdk("google.api_core.exceptions", "gcp").GoogleAPICallError
    failures = Failures(
        (rejected, auth.exceptions.GoogleAuthError, load_sdk("requests", "gcp").RequestException),
        lambda error: (getattr(error, "code", None) or 500) if isinstance(error, rejected) else None,
        lambda _: "check instance in power, and the rights of the user",
        "check the network and the credentials",
    )
    return GcpClients(compute.InstancesClient(credentials=credentials), groups, rejected, failures)


class GcpControl(ProviderControl):
    """Implements ``PowerControl``, ``MachineIdentity`` and ``MachineRisks`` of the ports."""

    def __init__(self, clients: GcpClients, project: str, zone: str, name: str) -> None:
        super().__init__(clients.failures)
        self._clients, self._project, self._zone, self._name = clients, project, zone, name

    @property
    def capabilities(self) -> frozenset[PowerCapability]:
        """Compute Engine shuts the guest down first, or never does: ``soft-off`` or ``off``. Raises NodefallError."""
        missing = PowerCapability.SOFT_OFF if _skips_shutdown(self._describe()) else PowerCapability.OFF
        return ALL_CAPABILITIES - {missing}

    def state(self) -> PowerState:
        """``on`` or ``off``; ``off`` while it is staging, ``on`` while it is stopping or suspended."""
        return self._state(self._describe())

    def is_stopping(self) -> bool:
        """Whether an accepted stop is still in progress."""
        return self._describe().status in ("PENDING_STOP", "STOPPING")

    def identity(self) -> PowerIdentity:
        """The provider ID, names and addresses, and the unique ID, which another instance of that name lacks."""
        found = self._describe()
        addresses = [
            address
            for interface in found.network_interfaces
            for address in (interface.network_i_p, interface.ipv6_address)
            if address
        ]
        names = tuple(filter(None, (self._name, found.hostname)))
        provider_id = f"gce://{self._project}/{self._zone}/{self._name}"
        return PowerIdentity("", names, tuple(addresses), container_id=str(found.id), provider_id=provider_id)

    def on(self) -> None:
        """Start, or resume; returns when it is accepted. Raises Refused while the instance is still stopping."""
        status = self._describe().status
        if status in ("TERMINATED", "STOPPED"):
            self._change("start", {})
        elif status == "SUSPENDED":
            self._change("resume", {})
        elif status not in ("PENDING", "PROVISIONING", "STAGING", "RUNNING"):
            hint = "wait until it is TERMINATED"
            raise not_carried_out(f"{self._label} cannot be started now", f"it is {status}", hint)

    def off(self) -> None:
        """Stop without a guest shutdown; returns when it is accepted. Raises Refused if the guest would shut down."""
        found = self._describe()
        if self._state(found) is PowerState.OFF:
            return
        if not _skips_shutdown(found):
            raise Refused(
                f"{self._label} cannot be cut off: Compute Engine shuts its guest down first",
                hint="set skipGuestOsShutdown of its scheduling, or use how: sysrq, or poweroff",
            )
        self._change("stop", {"discard_local_ssd": False, "no_graceful_shutdown": True})

    def soft_off(self) -> None:
        """Stop with a shutdown of the guest, which Compute Engine ends after two minutes. Raises Refused."""
        if _skips_shutdown(self._describe()):
            raise Refused(f"{self._label} is never shut down: skipGuestOsShutdown is set", hint="use poweroff")
        self._change("stop", {"discard_local_ssd": False})

    def risks(self) -> tuple[PowerRisk, ...]:
        """Risks: what Compute Engine, a managed instance group or GKE would do with an instance that is down."""
        found = self._describe()
        with self._calls("reading what may replace it"):
            return (*_own_risks(found), *self._rights(), *self._group_risks(found))

    def _rights(self) -> Iterator[PowerRisk]:
        answer = self._clients.instances.test_iam_permissions(
            project=self._project,
            zone=self._zone,
            resource=self._name,
            test_permissions_request_resource={"permissions": list(_PERMISSIONS)},
            retry=None,
            timeout=READ_TIMEOUT,
        )
        for missing in sorted(set(_PERMISSIONS) - set(answer.permissions)):
            yield PowerRisk(f"the credentials do not permit {missing}", f"grant {missing} for {self._name}")

    def _group_risks(self, found: Any) -> Iterator[PowerRisk]:
        metadata: Mapping[str, str] = {item.key: item.value for item in found.metadata.items}
        try:
            yield from group_risks(self._clients.groups, self._project, metadata, dict(found.labels))
        except self._clients.rejected as error:
            if getattr(error, "code", 0) != 403:
                raise
            what = f"whether its group would replace it is unknown: {str(error)[:200]}"
            yield PowerRisk(what, "grant the credentials what docs/power.md lists")

    @property
    def _label(self) -> str:
        return f"instance {self._name} in {self._zone} of project {self._project}"

    def _state(self, found: Any) -> PowerState:
        return self._known_state(_STATES, found.status, "check the instance")

    def _describe(self) -> Any:
        with self._calls("reading it"):
            return self._clients.instances.get(**self._address(), retry=None, timeout=READ_TIMEOUT)

    def _change(self, verb: str, options: Mapping[str, Any]) -> None:
        with self._calls(verb, changes=True):
            call = getattr(self._clients.instances, f"{verb}_unary")
            operation = call({**self._address(), **options}, retry=None, timeout=READ_TIMEOUT)
        if errors := operation.error.errors:
            raise not_carried_out(f"{self._label}: {verb} failed", errors[0].message, "check the instance")

    def _address(self) -> dict[str, str]:
        return {"project": self._project, "zone": self._zone, "instance": self._name}


def _skips_shutdown(found: Any) -> bool:
    return bool(found.scheduling.skip_guest_os_shutdown)


def _own_risks(found: Any) -> Iterator[PowerRisk]:
    if found.scheduling.provisioning_model == "SPOT" or found.scheduling.preemptible:
        hint = "choose an instance of the standard provisioning model"
        yield PowerRisk("it is a Spot instance, which may be reclaimed and not be started again", hint)
    if found.start_restricted:
        yield PowerRisk("Compute Engine does not start it again (startRestricted)", "choose another node")


DRIVER = PowerDriver("gcp", GcpPower, make_gcp_control)
