"""Power of an instance of Amazon EC2; needs the extra ``aws``.

Calls, states and errors: Amazon EC2 API Reference (StopInstances, StartInstances, InstanceState). StopInstances shuts
the operating system down first, also with Force; only SkipOsShutdown is a power cut.

What replaces instances that are down: Amazon EC2 Auto Scaling User Guide (health checks, suspending processes,
Standby); Amazon EKS API (NodeRepairConfig). A group terminates an instance that is not running, unless one of
``_ENOUGH`` is suspended.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from chaos.core.command import PowerState
from chaos.core.driver import PowerSettings
from chaos.core.errors import Refused
from chaos.core.field_types import full_match
from chaos.core.power_identity import PowerIdentity, PowerRisk
from chaos.machines.driver import HostContext, PowerDriver
from chaos.machines.power.cloud import (
    CONNECT_TIMEOUT,
    READ_TIMEOUT,
    Failures,
    ProviderControl,
    load_sdk,
    machine_parts,
    not_carried_out,
)

_ENOUGH = frozenset({"HealthCheck", "ReplaceUnhealthy", "Terminate"})
_CLUSTER_TAG, _NODE_GROUP_TAG = "eks:cluster-name", "eks:nodegroup-name"
_REGION_OF_ZONE = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d+")  # of us-east-1a, and of the local zone us-west-2-lax-1a
# In a transition the former state counts: a machine is off only when it is proven off.
_STATES = {
    "pending": PowerState.OFF,
    "running": PowerState.ON,
    "stopping": PowerState.ON,
    "shutting-down": PowerState.ON,
    "stopped": PowerState.OFF,
}
_DENIED = frozenset({"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"})
_OFF = {"Force": True, "SkipOsShutdown": True}


@dataclass(frozen=True, slots=True)
class GroupClients:
    """Clients of the SDK for auto-scaling groups and EKS."""

    autoscaling: Any
    eks: Any


def group_risks(clients: GroupClients, instance: str, tags: Mapping[str, str]) -> Iterator[PowerRisk]:
    """Why an instance with these tags would be replaced. Raises the SDK's errors."""
    members = clients.autoscaling.describe_auto_scaling_instances(InstanceIds=[instance])["AutoScalingInstances"]
    for member in members:
        name = member["AutoScalingGroupName"]
        answer = clients.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])
        suspended = {
            each["ProcessName"] for group in answer["AutoScalingGroups"] for each in group.get("SuspendedProcesses", ())
        }
        if member.get("LifecycleState") != "Standby" and not suspended & _ENOUGH:
            command = f"aws autoscaling suspend-processes --auto-scaling-group-name {name}"
            yield PowerRisk(
                f"its auto-scaling group {name} terminates it when it is not running",
                f"during the run suspend ReplaceUnhealthy: {command} --scaling-processes ReplaceUnhealthy",
            )
    if tags.get(_NODE_GROUP_TAG) and tags.get(_CLUSTER_TAG):
        yield from _repair_risks(clients.eks, tags[_CLUSTER_TAG], tags[_NODE_GROUP_TAG])


def _repair_risks(eks: Any, cluster: str, group: str) -> Iterator[PowerRisk]:
    answer = eks.describe_nodegroup(clusterName=cluster, nodegroupName=group)
    if answer["nodegroup"].get("nodeRepairConfig", {}).get("enabled"):
        command = f"aws eks update-nodegroup-config --cluster-name {cluster} --nodegroup-name {group}"
        yield PowerRisk(
            f"node auto-repair of its EKS node group {group} replaces it when its Node stays not Ready",
            f"disable it during the run: {command} --node-repair-config enabled=false",
            when_not_ready=True,
        )


class AwsPower(PowerSettings):
    """Uses the credentials of the SDK: its environment variables, profiles, or the role of the machine."""

    kind: Literal["aws"] = Field(description="An instance of Amazon EC2.")
    instance: Annotated[str, full_match("i-[0-9a-f]{8,17}", "is not an instance ID")] | None = Field(
        None, description="The ID of the instance. By default, it is taken from the Node's provider ID."
    )
    region: Annotated[str, full_match("[a-z0-9-]+", "is not a region")] | None = Field(
        None, description="The region. By default, it is taken from the Node's provider ID."
    )
    profile: str | None = Field(None, description="The profile in the configuration files of the SDK.")
    account: Annotated[str, full_match("[0-9]{12}", "is not an account ID: write 12 digits, in quotes")] | None = Field(
        None, description="The account that must own the instance."
    )

    @property
    def names_machine(self) -> bool:
        return bool(self.instance or self.identity)


Instance = Mapping[str, Any]  # as DescribeInstances has it


def make_aws_control(power: AwsPower, host: HostContext) -> AwsControl:
    """Power control of one instance. Raises Refused without the SDK, its credentials, an instance or a region."""
    boto3 = load_sdk("boto3", "aws")
    zone = ""
    if not (power.instance and power.region):
        zone, *_ = machine_parts(host, "aws", "aws")
    instance = power.instance or machine_parts(host, "aws", "aws")[-1]
    region = power.region or _region(zone)

    def client(service: str) -> Any:
        config = load_sdk("botocore.config", "aws").Config(
            connect_timeout=CONNECT_TIMEOUT, read_timeout=READ_TIMEOUT, retries={"mode": "standard", "max_attempts": 3}
        )
        session = boto3.session.Session(profile_name=power.profile, region_name=region)
        return session.client(service, config=config)

    def shared(service: str) -> Any:  # clients are thread-safe, and slow to make
        return host.shared.get(("aws", service, power.profile, region), lambda: client(service))

    errors = load_sdk("botocore.exceptions", "aws")
    try:
        return AwsControl(shared("ec2"), GroupClients(shared("autoscaling"), shared("eks")), errors, instance, power)
    except errors.BotoCoreError as error:
        raise Refused(f"power control aws of {host.node} cannot be used: {error}", hint="correct profile") from error


def _region(zone: str) -> str:
    match = _REGION_OF_ZONE.match(zone)
    if not match:
        raise Refused(f"power control aws has no region: {zone!r} is not a zone", hint="write region in power")
    return match[0]


class AwsControl(ProviderControl):
    """Implements ``PowerControl``, ``MachineIdentity`` and ``MachineRisks`` of the ports."""

    def __init__(self, ec2: Any, groups: GroupClients, errors: Any, instance: str, power: AwsPower) -> None:
        network = "check the network, region and credentials"
        rejected = errors.ClientError
        super().__init__(
            Failures(
                (rejected, errors.BotoCoreError),
                lambda error: _status(error) if isinstance(error, rejected) else None,
                lambda error: _hint(_code(error)),
                network,
            )
        )
        self._ec2, self._groups, self._errors, self._instance, self._power = ec2, groups, errors, instance, power

    def state(self) -> PowerState:
        """``on`` or ``off``; ``off`` while it is pending, ``on`` while it is stopping."""
        return self._state(self._describe())

    def is_stopping(self) -> bool:
        """Whether a stop that EC2 has accepted is still in progress."""
        return _state_name(self._describe()) in ("stopping", "shutting-down")

    def identity(self) -> PowerIdentity:
        """The provider ID as the cloud's controller writes it, the private DNS name and the private addresses."""
        found = self._describe()
        interfaces = found.get("NetworkInterfaces", ())
        addresses = [each["PrivateIpAddress"] for one in interfaces for each in one.get("PrivateIpAddresses", ())]
        provider_id = f"aws:///{found.get('Placement', {}).get('AvailabilityZone', '')}/{self._instance}"  # words: keep
        names = tuple(filter(None, [found.get("PrivateDnsName")]))
        return PowerIdentity("", names, tuple(addresses), provider_id=provider_id)

    def on(self) -> None:
        """Start; returns when EC2 has accepted it. Raises Refused while the instance is still stopping."""
        name = _state_name(self._describe())
        if name == "stopped":
            with self._calls("StartInstances", changes=True):
                self._ec2.start_instances(InstanceIds=[self._instance])
        elif name not in ("pending", "running"):
            raise not_carried_out(f"{self._label} cannot be started now", f"it is {name}", "wait until it is stopped")

    def off(self) -> None:
        """Stop without a shutdown of the operating system; returns when EC2 has accepted it."""
        if self.state() is PowerState.ON:
            with self._calls("StopInstances", changes=True):
                self._ec2.stop_instances(InstanceIds=[self._instance], **_OFF)

    def soft_off(self) -> None:
        """Stop with a shutdown of the operating system, which EC2 ends after some minutes."""
        with self._calls("StopInstances", changes=True):
            self._ec2.stop_instances(InstanceIds=[self._instance])

    def risks(self) -> tuple[PowerRisk, ...]:
        """Risks: what EC2, an auto-scaling group or EKS would do with an instance that is down."""
        found = self._describe()
        with self._calls("reading what may replace it"):
            return (*self._own_risks(found), *self._rights(), *self._group_risks(found))

    def _own_risks(self, found: Instance) -> Iterator[PowerRisk]:
        if found.get("RootDeviceType") == "instance-store":
            hint = "choose a node whose root volume is on EBS"
            yield PowerRisk("its root volume is an instance store, which is lost when it stops", hint)
        if found.get("InstanceLifecycle") == "spot":
            hint = "choose an on-demand instance"
            yield PowerRisk("it is a spot instance, which may never be started again", hint)
        if (operator := found.get("Operator", {})).get("Managed"):
            hint = "choose a node that is not managed"
            yield PowerRisk(f"it is managed by {operator.get('Principal', '')}, which alone may stop it", hint)
        if self._attribute("disableApiStop", "DisableApiStop"):
            yield PowerRisk("stop protection is on", "disable its stop protection during the run")
        if self._attribute("instanceInitiatedShutdownBehavior", "InstanceInitiatedShutdownBehavior") == "terminate":
            hint = "set its instanceInitiatedShutdownBehavior to stop"
            yield PowerRisk("EC2 terminates it when its operating system shuts down", hint)

    def _attribute(self, name: str, key: str) -> Any:
        answer = self._ec2.describe_instance_attribute(InstanceId=self._instance, Attribute=name)
        return answer.get(key, {}).get("Value")

    def _rights(self) -> Iterator[PowerRisk]:
        """Check permissions by dry runs: EC2 reports whether the credentials may do it, and does nothing."""
        calls = (("StopInstances", self._ec2.stop_instances), ("StartInstances", self._ec2.start_instances))
        for name, call in calls:
            try:
                call(InstanceIds=[self._instance], DryRun=True)
            except self._errors.ClientError as error:
                if _code(error) in _DENIED:
                    yield PowerRisk(
                        f"the credentials do not permit ec2:{name}", f"grant ec2:{name} for {self._instance}"
                    )
                elif _code(error) != "DryRunOperation":
                    raise

    def _group_risks(self, found: Instance) -> Iterator[PowerRisk]:
        tags = {tag["Key"]: tag["Value"] for tag in found.get("Tags", ())}
        try:
            yield from group_risks(self._groups, self._instance, tags)
        except self._errors.ClientError as error:
            if _code(error) not in _DENIED:
                raise
            what = f"{error.operation_name} is not permitted: whether a group would replace it is unknown"
            yield PowerRisk(what, f"grant the credentials {error.operation_name}; see docs/power.md")

    @property
    def _label(self) -> str:
        return f"instance {self._instance} in {self._ec2.meta.region_name}"

    def _state(self, found: Instance) -> PowerState:
        return self._known_state(_STATES, _state_name(found), "replace the node")

    def _describe(self) -> Instance:
        """The instance. Raises Refused if it does not exist or belongs to another account."""
        with self._calls("DescribeInstances"):
            answer = self._ec2.describe_instances(InstanceIds=[self._instance])
        reservations = answer.get("Reservations", ())
        found: list[tuple[Any, Instance]] = [
            (each.get("OwnerId"), instance) for each in reservations for instance in each.get("Instances", ())
        ]
        if len(found) != 1:
            raise Refused(f"{self._label} is not found: {len(found)} instances", hint="correct instance in power")
        owner, instance = found[0]
        if self._power.account and owner != self._power.account:
            raise Refused(
                f"{self._label} belongs to account {owner}, and the inventory expects {self._power.account}",
                hint="use the credentials of the right account, or correct account in power",
            )
        return instance


def _status(error: Any) -> int:
    """The HTTP status of an EC2 error. Every status below 500 means that the request was rejected."""
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500))
    return status if status >= 500 else 400


def _state_name(found: Instance) -> str:
    return str(found.get("State", {}).get("Name", ""))


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _hint(code: str) -> str:
    if code in _DENIED:
        return "grant the credentials what docs/power.md lists"
    if code.startswith("InvalidInstanceID"):
        return "correct instance and region in power, or use the credentials of its account"
    return "check the instance, and the credentials of the SDK"


DRIVER = PowerDriver("aws", AwsPower, make_aws_control)
