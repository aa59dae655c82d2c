"""Instances of EC2 on moto's server, over the SDK's own HTTP; states that moto does not have by botocore's Stubber."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore import exceptions
from botocore.config import Config
from botocore.stub import Stubber

from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.core.identity import HostIdentity, NodeIdentity
from chaos.core.ports import MachineIdentity, MachineRisks
from chaos.core.power_identity import bind_power
from chaos.machines.driver import power_control_of
from chaos.machines.power.aws import AwsControl, AwsPower, GroupClients
from tests.kit.clouds import aws, forget, host_context

REGION, ZONE, OWNER = "eu-west-1", "eu-west-1a", "123456789012"  # the account is moto's
I1 = "i-0123456789abcdef0"


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with aws(tmp_path_factory.mktemp("moto")) as environ:
        yield environ


@pytest.fixture(autouse=True)
def _environment(moto: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    forget(moto)
    for name, value in moto.items():
        monkeypatch.setenv(name, value)


def client(service: str) -> Any:
    return boto3.client(service, region_name=REGION)


def launch(**options: Any) -> str:
    where = {"Placement": {"AvailabilityZone": ZONE}}  # words: keep
    started = client("ec2").run_instances(ImageId="ami-12c6146b", MinCount=1, MaxCount=1, **where, **options)
    return str(started["Instances"][0]["InstanceId"])


def control(of_node: str, **settings: Any) -> AwsControl:
    made = power_control_of(host_context({"kind": "aws"} | settings, f"aws:///{ZONE}/{of_node}"))
    assert isinstance(made, AwsControl)
    return made


def risks(instance: str) -> list[str]:
    return [risk.message for risk in control(instance).risks()]


def test_it_is_bound_to_the_node_by_provider_id_and_not_to_another() -> None:
    one, two = launch(), launch()
    found = control(one)
    assert isinstance(found, MachineIdentity)
    assert isinstance(found, MachineRisks)
    identity = found.identity()
    assert identity.provider_id == identity.key == f"aws:///{ZONE}/{one}"
    nodes = {
        "n1": NodeIdentity("n1", provider_id=f"aws:///{ZONE}/{one}", addresses=identity.addresses),
        "n2": NodeIdentity("n2", provider_id=f"aws:///{ZONE}/{two}"),
    }
    assert bind_power(nodes["n1"], HostIdentity(), identity, nodes).is_bound
    other = control(one, instance=two, region=REGION).identity()
    binding = bind_power(nodes["n1"], HostIdentity(), other, nodes)
    assert (
        f"is aws:///{ZONE}/{one}, but the power control is that of aws:///{ZONE}/{two} (that of n2)"
        in (binding.contradictions[0])
    )


def test_an_instance_with_other_addresses_than_the_node_is_that_of_another_cluster() -> None:
    """As with a Node whose provider ID was copied from another one."""
    one = launch()
    node = NodeIdentity("n1", provider_id=f"aws:///{ZONE}/{one}", addresses=("192.0.2.1",))
    assert "the Node has 192.0.2.1" in bind_power(node, HostIdentity(), control(one).identity(), {}).contradictions[-1]


def test_an_instance_of_another_account_is_refused() -> None:
    one = launch()
    assert control(one, account=OWNER).state() == "on"
    other = control(one, account="999999999999")
    for verb in (other.on, other.off, other.state, other.identity, other.risks):
        with pytest.raises(Refused, match=f"belongs to account {OWNER}, and the inventory expects 999999999999"):
            verb()
    assert control(one).state() == "on"


def test_an_instance_of_another_region_is_not_found() -> None:
    with pytest.raises(Refused, match=r"instance i-\w+ in us-east-1: DescribeInstances failed: .*NotFound") as caught:
        control(launch(), region="us-east-1").off()
    assert "correct instance and region" in caught.value.hint


def test_a_terminated_instance_has_no_power_state() -> None:
    one = launch()
    client("ec2").terminate_instances(InstanceIds=[one])
    with pytest.raises(NodefallError, match="has no power state: it is terminated"):
        control(one).state()
    with pytest.raises(Refused, match="cannot be started now: it is terminated"):
        control(one).on()


def group(instance: str, name: str = "workers") -> Any:
    scaling = client("autoscaling")
    scaling.create_launch_configuration(LaunchConfigurationName=name, ImageId="ami-12c6146b", InstanceType="t3.micro")
    scaling.create_auto_scaling_group(
        AutoScalingGroupName=name, LaunchConfigurationName=name, MinSize=0, MaxSize=2, AvailabilityZones=[ZONE]
    )
    scaling.attach_instances(AutoScalingGroupName=name, InstanceIds=[instance])
    return scaling


@pytest.mark.parametrize(
    ("suspended", "is_safe"),
    [
        ([], False),
        (["AZRebalance"], False),
        (["ReplaceUnhealthy"], True),
        (["HealthCheck"], True),
        (["Terminate"], True),
    ],
)
def test_an_auto_scaling_group_would_terminate_it(suspended: list[str], is_safe: bool) -> None:
    one = launch()
    scaling = group(one)
    if suspended:
        scaling.suspend_processes(AutoScalingGroupName="workers", ScalingProcesses=suspended)
    expected = [] if is_safe else ["its auto-scaling group workers terminates it when it is not running"]
    assert risks(one) == expected
    if not is_safe:
        assert "suspend-processes --auto-scaling-group-name workers" in control(one).risks()[0].hint


def test_an_instance_in_standby_is_left_alone_by_its_group() -> None:
    one = launch()
    group(one).enter_standby(AutoScalingGroupName="workers", InstanceIds=[one], ShouldDecrementDesiredCapacity=True)
    assert risks(one) == []


@pytest.mark.parametrize(
    ("options", "risk"),
    [
        ({}, ""),
        ({"DisableApiStop": True}, "stop protection is on"),
        ({"InstanceInitiatedShutdownBehavior": "terminate"}, "EC2 terminates it when its operating system shuts down"),
        ({"InstanceMarketOptions": {"MarketType": "spot"}}, "it is a spot instance, which may never be started again"),
    ],
)
def test_what_ec2_itself_would_do(options: dict[str, Any], risk: str) -> None:
    assert risks(launch(**options)) == ([risk] if risk else [])


@pytest.mark.parametrize(("config", "is_safe"), [({"enabled": True}, False), ({"enabled": False}, True)])
def test_node_auto_repair_of_eks(config: dict[str, bool], is_safe: bool) -> None:
    tags = {"eks:cluster-name": "prod", "eks:nodegroup-name": "workers"}
    found = list(stubbed_groups({"nodegroup": {"nodeRepairConfig": config}}, tags))
    assert [risk.when_not_ready for risk in found] == ([] if is_safe else [True])
    if not is_safe:
        assert "--nodegroup-name workers --node-repair-config enabled=false" in found[0].hint


def stubbed_groups(answer: dict[str, Any], tags: Mapping[str, str]) -> Any:
    scaling, eks = client("autoscaling"), client("eks")
    ec2 = client("ec2")
    described = instance_answer("running", Tags=[{"Key": key, "Value": value} for key, value in tags.items()])
    with Stubber(eks) as stub, Stubber(ec2) as ec2_stub:
        stub.add_response("describe_nodegroup", answer, {"clusterName": "prod", "nodegroupName": "workers"})
        ec2_stub.add_response("describe_instances", described)
        for _ in range(2):
            ec2_stub.add_response("describe_instance_attribute", {})
        for name in ("stop_instances", "start_instances"):
            ec2_stub.add_client_error(name, "DryRunOperation", http_status_code=412)
        return AwsControl(ec2, GroupClients(scaling, eks), exceptions, I1, POWER).risks()


POWER = AwsPower.model_validate({"kind": "aws"})


def instance_answer(state: str, **fields: Any) -> dict[str, Any]:
    described = {"InstanceId": I1, "State": {"Name": state}, "Placement": {"AvailabilityZone": ZONE}}  # words: keep
    return {"Reservations": [{"OwnerId": OWNER, "Instances": [described | fields]}]}


@pytest.mark.parametrize(
    ("name", "state", "sent_by_on", "sent_by_off"),
    [
        ("pending", "off", "", ""),
        ("running", "on", "", "stop_instances"),
        ("stopping", "on", "refused", "stop_instances"),
        ("stopped", "off", "start_instances", ""),
    ],
)
def test_the_state_machine(name: str, state: str, sent_by_on: str, sent_by_off: str) -> None:
    """A power cut skips the shutdown of the operating system, which Force alone does not."""
    requests = {
        "start_instances": {"InstanceIds": [I1]},
        "stop_instances": {"InstanceIds": [I1], "Force": True, "SkipOsShutdown": True},
    }
    for verb, sent in (("state", ""), ("stopping", ""), ("on", sent_by_on), ("off", sent_by_off)):
        ec2 = client("ec2")
        with Stubber(ec2) as stub:
            stub.add_response("describe_instances", instance_answer(name), {"InstanceIds": [I1]})
            if sent in requests:
                stub.add_response(sent, {}, requests[sent])
            made = AwsControl(ec2, GroupClients(None, None), exceptions, I1, POWER)
            if sent == "refused":
                with pytest.raises(Refused, match="cannot be started now: it is stopping"):
                    made.on()
            elif verb == "state":
                assert made.state() == state
            elif verb == "stopping":
                assert made.is_stopping() == (name == "stopping")
            else:
                getattr(made, verb)()
            stub.assert_no_pending_responses()


def test_soft_off_lets_the_system_shut_down() -> None:
    ec2 = client("ec2")
    with Stubber(ec2) as stub:
        stub.add_response("stop_instances", {}, {"InstanceIds": [I1]})
        AwsControl(ec2, GroupClients(None, None), exceptions, I1, POWER).soft_off()
        stub.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("UnauthorizedOperation", 403, Refused),
        ("IncorrectInstanceState", 400, Refused),
        ("Unavailable", 503, NodefallError),
    ],
)
def test_a_rejected_request_was_not_carried_out(code: str, status: int, error: type[NodefallError]) -> None:
    ec2 = client("ec2")
    with Stubber(ec2) as stub:
        stub.add_response("describe_instances", instance_answer("running"))
        stub.add_client_error("stop_instances", code, "why", http_status_code=status)
        with pytest.raises(NodefallError, match=f"StopInstances failed: .*{code}.*why") as caught:
            AwsControl(ec2, GroupClients(None, None), exceptions, I1, POWER).off()
    assert type(caught.value) is error
    assert caught.value.hint


@pytest.mark.parametrize("denied", ["stop_instances", "start_instances", "describe_auto_scaling_instances"])
def test_missing_rights_are_found_before_the_fault(denied: str) -> None:
    ec2, scaling = client("ec2"), client("autoscaling")
    with Stubber(ec2) as stub, Stubber(scaling) as scaling_stub:
        stub.add_response("describe_instances", instance_answer("running"))
        for _ in range(2):
            stub.add_response("describe_instance_attribute", {})
        for name in ("stop_instances", "start_instances"):
            code = "UnauthorizedOperation" if name == denied else "DryRunOperation"
            stub.add_client_error(
                name, code, http_status_code=403, expected_params={"InstanceIds": [I1], "DryRun": True}
            )
        if denied.startswith("describe"):
            scaling_stub.add_client_error(denied, "AccessDenied", http_status_code=403)
        else:
            scaling_stub.add_response("describe_auto_scaling_instances", {"AutoScalingInstances": []})
        (risk,) = AwsControl(ec2, GroupClients(scaling, None), exceptions, I1, POWER).risks()
    assert "permit" in risk.message
    assert risk.hint.startswith("grant")


@pytest.mark.parametrize(
    ("provider_id", "settings", "error"),
    [
        ("", {}, "power control aws of n1 has no machine: its Node has no provider ID"),
        ("gce://p/z/n", {}, "its Node has the provider ID gce://p/z/n"),
        ("aws:///moon/i-0abc", {}, "has no region: 'moon' is not a zone"),
        (f"aws:///{ZONE}/{I1}", {"profile": "absent"}, r"cannot be used: The config profile \(absent\)"),
    ],
)
def test_settings_that_name_no_instance(provider_id: str, settings: dict[str, str], error: str) -> None:
    with pytest.raises(Refused, match=error) as caught:
        power_control_of(host_context({"kind": "aws"} | settings, provider_id))
    assert caught.value.hint


def test_instance_and_region_need_no_provider_id() -> None:
    one = launch()
    made = power_control_of(host_context({"kind": "aws", "instance": one, "region": REGION}))
    assert made
    assert made.state() == "on"


def test_an_endpoint_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(Unreachable, match="DescribeInstances failed: Could not connect"):
        control(I1).off()


def test_without_the_extra_it_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(Refused, match=r"^power control aws cannot be used: boto3 is not installed$") as caught:
        control(I1)
    assert caught.value.hint == "run pip install 'nodefall[aws]'"


def test_a_lost_answer_leaves_open_what_happened() -> None:
    ec2 = boto3.client("ec2", region_name=REGION, config=Config(retries={"total_max_attempts": 1}))

    def lose(**_: Any) -> None:
        raise exceptions.ReadTimeoutError(endpoint_url="https://ec2")

    ec2.meta.events.register("before-send.ec2.StopInstances", lose)
    one = launch()
    with pytest.raises(NodefallError, match="StopInstances failed: Read timeout") as caught:
        AwsControl(ec2, GroupClients(None, None), exceptions, one, POWER).off()
    assert not isinstance(caught.value, Refused | Unreachable)


def test_clients_are_shared_between_hosts(tmp_path: Path) -> None:
    context = host_context({"kind": "aws", "instance": I1, "region": REGION})
    one, two = power_control_of(context), power_control_of(context)
    assert isinstance(one, AwsControl)
    assert isinstance(two, AwsControl)
    assert one._ec2 is two._ec2
