"""What vSphere would do with a virtual machine that is down.

Sources: vSphere Availability (VM and Application Monitoring, Fault Tolerance), vSphere Web Services API
(ClusterDasConfigInfo, ClusterVmToolsMonitoringSettings, ManagedByInfo). vSphere HA restarts the machines of a host that
has failed; one that was powered off, by its guest or by a user, it leaves off. DRS moves machines and starts none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chaos.core.power_risk import PowerRisk

# The rights that the control needs, besides System.View.
PRIVILEGES = ("VirtualMachine.Interact.PowerOff", "VirtualMachine.Interact.PowerOn")
_DISABLED = "vmMonitoringDisabled"


def machine_risks(summary: Any, name: str, disabled: list[str]) -> Iterator[PowerRisk]:
    """By VirtualMachineSummary and VirtualMachine.disabledMethod."""
    if summary.config.template:
        yield PowerRisk("it is a template, which cannot be powered on", "correct vm in power")
    if manager := summary.config.managedBy:
        hint = f"choose another node, or let {manager.extensionKey} leave it off during the run"
        yield PowerRisk(f"{manager.extensionKey} manages it, and may start it again", hint)
    if summary.runtime.faultToleranceState not in (None, "notConfigured"):
        hint = f"turn Fault Tolerance of {name} off during the run"
        yield PowerRisk("Fault Tolerance lets a second machine go on in its place", hint)
    if summary.runtime.powerState == "poweredOn" and "PowerOffVM_Task" in disabled:
        yield PowerRisk("vCenter has disabled powering it off", "see its tasks and its solutions in vCenter")


def cluster_risks(cluster: Any, machine: Any, name: str) -> Iterator[PowerRisk]:
    """By the configuration of its ClusterComputeResource. Raises the SDK's errors."""
    config = cluster.configurationEx.dasConfig
    if not (config and config.enabled):
        return
    monitoring = config.vmMonitoring
    for override in cluster.configurationEx.dasVmConfig or ():
        settings = override.dasSettings.vmToolsMonitoringSettings if override.dasSettings else None
        if override.key == machine and settings and not settings.clusterSettings:
            monitoring = settings.vmMonitoring or monitoring
    if monitoring not in (None, _DISABLED):
        yield PowerRisk(
            f"VM Monitoring of vSphere HA in cluster {cluster.name} resets it when its guest is silent",
            f"during the run disable VM Monitoring for {name}: VM Overrides of the cluster in vCenter",
        )


def missing_privileges(content: Any, machine: Any) -> list[str]:
    """Those of PRIVILEGES that the session does not have. Raises the SDK's errors."""
    session = content.sessionManager.currentSession.key
    answers = content.authorizationManager.HasPrivilegeOnEntities([machine], session, list(PRIVILEGES))
    return [each.privId for answer in answers for each in answer.privAvailability if not each.isGranted]
