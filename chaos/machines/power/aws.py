"""Power of an instance of Amazon EC2; needs the extra ``aws``.

Calls, states and errors: Amazon EC2 API Reference (StopInstances, StartInstances, InstanceState). StopInstances shuts
the operating system down first, also with Force; only SkipOsShutdown is a power cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Struct, field
from pydantic import Field

from chaos.core.command import PowerState
from chaos.core.driver import PowerSettings
from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.core.field_types import full_match
from chaos.core.ports import ALL_CAPABILITIES
from chaos.core.power_identity import PowerIdentity
from chaos.core.power_risk import PowerRisk
from chaos.machines.driver import HostContext, PowerDriver
from chaos.machines.power.aws_groups import GroupClients, group_risks
from chaos.machines.power.cloud import (
    CONNECT_TIMEOUT,
    READ_TIMEOUT,
    load_sdk,
    machine_parts,
    maybe_carried_out,
    not_carried_out,
)

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


class AwsPower(PowerSettings):
    """Credentials are those of the SDK: its environment variables, profiles, or the role of the machine."""

    kind: Literal["aws"]
    instance: Annotated[str, full_match("i-[0-9a-f]{8,17}", "is no ID of an instance")] | None = Field(
        None, description="default: that of the Node's provider ID"
    )
    region: Annotated[str, full_match("[a-z0-9-]+", "is no region")] | None = Field(
        None, description="default: that of the Node's provider ID"
    )
    profile: str | None = Field(None, description="of the SDK's configuration files")
    account: Annotated[str, full_match("[0-9]{12}", "is no account: write 12 digits, in quotes")] | None = Field(
        None, description="that must own the instance"
    )

    @property
    def names_machine(self) -> bool:
        return bool(self.instance or self.identity)


class _State(Struct):
    name: str = field(default="", name="Name")


class _Where(Struct):
    zone: str = field(default="", name="AvailabilityZone")


class _Tag(Struct):
    key: str = field(default="", name="Key")
    value: str = field(default="", name="Value")


class _Operator(Struct):
    managed: bool = field(default=False, name="Managed")
    principal: str = field(default="", name="Principal")


class _Address(Struct):
    address: str = field(default="", name="PrivateIpAddress")


class _Interface(Struct):
    addresses: list[_Address] = field(default_factory=list, name="PrivateIpAddresses")


class Instance(Struct):
    """The fields of DescribeInstances that are used."""

    state: _State = field(default_factory=_State, name="State")
    where: _Where = field(default_factory=_Where, name="Placement")  # words: keep
    dns: str = field(default="", name="PrivateDnsName")
    interfaces: list[_Interface] = field(default_factory=list, name="NetworkInterfaces")
    root: str = field(default="", name="RootDeviceType")
    lifecycle: str = field(default="", name="InstanceLifecycle")
    operator: _Operator = field(default_factory=_Operator, name="Operator")
    tags: list[_Tag] = field(default_factory=list, name="Tags")


class _Reservation(Struct):
    owner: str = field(default="", name="OwnerId")
    instances: list[Instance] = field(default_factory=list, name="Instances")


class _Described(Struct):
    reservations: list[_Reservation] = field(default_factory=list, name="Reservations")


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
        raise Refused(f"power control aws has no region: {zone!r} is no zone", hint="write region in power")
    return match[0]


class AwsControl:
    """Implements ``PowerControl``, ``MachineIdentity`` and ``MachineRisks`` of the ports."""

    capabilities = ALL_CAPABILITIES

    def __init__(self, ec2: Any, groups: GroupClients, errors: Any, instance: str, power: AwsPower) -> None:
        self._ec2, self._groups, self._errors, self._instance, self._power = ec2, groups, errors, instance, power

    def state(self) -> PowerState:
        """``on`` or ``off``; ``off`` while it is pending, ``on`` while it is stopping."""
        return self._state(self._describe())

    def is_stopping(self) -> bool:
        """Whether a stop that EC2 has accepted is not over."""
        return self._describe().state.name in ("stopping", "shutting-down")

    def identity(self) -> PowerIdentity:
        """The provider ID as the cloud's controller writes it, the private DNS name and the private addresses."""
        found = self._describe()
        addresses = [each.address for interface in found.interfaces for each in interface.addresses]
        provider_id = f"aws:///{found.where.zone}/{self._instance}"
        return PowerIdentity("", tuple(filter(None, [found.dns])), tuple(addresses), provider_id=provider_id)

    def on(self) -> None:
        """Start; returns when EC2 has accepted it. Raises Refused while the instance is still stopping."""
        name = self._describe().state.name
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
        """What EC2, an auto-scaling group or EKS would do with an instance that is down."""
        found = self._describe()
        with self._calls("reading what may replace it"):
            return (*self._own_risks(found), *self._rights(), *self._group_risks(found))

    def _own_risks(self, found: Instance) -> Iterator[PowerRisk]:
        if found.root == "instance-store":
            hint = "choose a node whose root volume is on EBS"
            yield PowerRisk("its root volume is an instance store, which is lost when it stops", hint)
        if found.lifecycle == "spot":
            hint = "choose an on-demand instance"
            yield PowerRisk("it is a spot instance, which may never be started again", hint)
        if found.operator.managed:
            hint = "choose a node that is not managed"
            yield PowerRisk(f"it is managed by {found.operator.principal}, which alone may stop it", hint)
        if self._attribute("disableApiStop", "DisableApiStop"):
            yield PowerRisk("stop protection is on", "disable its stop protection during the run")
        if self._attribute("instanceInitiatedShutdownBehavior", "InstanceInitiatedShutdownBehavior") == "terminate":
            hint = "set its instanceInitiatedShutdownBehavior to stop"
            yield PowerRisk("EC2 terminates it when its operating system shuts down", hint)

    def _attribute(self, name: str, key: str) -> Any:
        answer = self._ec2.describe_instance_attribute(InstanceId=self._instance, Attribute=name)
        return answer.get(key, {}).get("Value")

    def _rights(self) -> Iterator[PowerRisk]:
        """Dry runs: EC2 reports whether the credentials may do it, and does nothing."""
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
        tags = {tag.key: tag.value for tag in found.tags}
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
        if found.state.name not in _STATES:
            raise NodefallError(f"{self._label} has no power state: it is {found.state.name}", hint="replace the node")
        return _STATES[found.state.name]

    def _describe(self) -> Instance:
        """The instance. Raises Refused if there is none, or if another account owns it."""
        with self._calls("DescribeInstances"):
            answer = self._ec2.describe_instances(InstanceIds=[self._instance])
        reservations = msgspec.convert(answer, type=_Described).reservations
        found = [(each.owner, instance) for each in reservations for instance in each.instances]
        if len(found) != 1:
            raise Refused(f"{self._label} is not found: {len(found)} instances", hint="correct instance in power")
        owner, instance = found[0]
        if self._power.account and owner != self._power.account:
            raise Refused(
                f"{self._label} belongs to account {owner}, and the inventory expects {self._power.account}",
                hint="use the credentials of the right account, or correct account in power",
            )
        return instance

    @contextmanager
    def _calls(self, what: str, *, changes: bool = False) -> Iterator[None]:
        """Raises Unreachable or Refused if nothing has happened, NodefallError if it may have."""
        what = f"{self._label}: {what} failed"
        try:
            yield
        except self._errors.ClientError as error:
            if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500) >= 500:
                raise maybe_carried_out(what, error) from error
            raise not_carried_out(what, error, _hint(_code(error))) from error
        except self._errors.BotoCoreError as error:
            if changes:
                raise maybe_carried_out(what, error) from error
            raise Unreachable(f"{what}: {error}", hint="check the network, region and credentials") from error


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _hint(code: str) -> str:
    if code in _DENIED:
        return "grant the credentials what docs/power.md lists"
    if code.startswith("InvalidInstanceID"):
        return "correct instance and region in power, or use the credentials of its account"
    return "check the instance, and the credentials of the SDK"


DRIVER = PowerDriver("aws", AwsPower, make_aws_control)
