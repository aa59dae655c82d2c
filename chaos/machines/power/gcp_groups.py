"""What replaces instances of Compute Engine that are down: managed instance groups and node auto-repair of GKE.

Sources: Compute Engine API v1 (InstanceGroupManagerInstanceLifecyclePolicy; ``created-by`` in an instance's metadata);
GKE API v1 (NodeManagement) and its page on node auto-repair; GKE sets the labels ``goog-k8s-*`` of its instances.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from chaos.core.power_risk import PowerRisk
from chaos.machines.power.cloud import READ_TIMEOUT

CONTAINER_API = "https://container.googleapis.com/v1"
_GROUP = re.compile(r"projects/[^/]+/(zones|regions)/([^/]+)/instanceGroupManagers/([^/]+)$")
_CLUSTER, _LOCATION, _POOL = "goog-k8s-cluster-name", "goog-k8s-cluster-location", "goog-k8s-node-pool-name"


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
