"""What replaces instances of Amazon EC2 that are down: auto-scaling groups and node auto-repair of EKS.

Sources: Amazon EC2 Auto Scaling User Guide (health checks, suspending processes, Standby); Amazon EKS API
(NodeRepairConfig). A group terminates an instance that is not running, unless one of ``_ENOUGH`` is suspended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from chaos.core.power_risk import PowerRisk

_ENOUGH = frozenset({"HealthCheck", "ReplaceUnhealthy", "Terminate"})
_CLUSTER_TAG, _NODE_GROUP_TAG = "eks:cluster-name", "eks:nodegroup-name"


@dataclass(frozen=True, slots=True)
class GroupClients:
    """Clients of the SDK."""

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
