"""Machines of vSphere: vcsim where it can be built, and pyvmomi over HTTPS with given answers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.core.identity import HostIdentity, NodeIdentity, swap_uuid
from chaos.core.ports import ALL_CAPABILITIES, MachineIdentity, MachineRisks
from chaos.core.power_identity import bind_power
from chaos.machines.power.vsphere import VsphereControl
from tests.kit.vsphere import PASSWORD, Answers, Vcenter, complete, soap_server, vcsim

UUID, OTHER = "420e3f74-ea84-f9a2-7736-6106bb5dbf6b", "99999999-2222-4333-8444-555555555555"
PATH = "DC0/vm/DC0_C0_RP0_VM0"
MONITORED = "VM Monitoring of vSphere HA in cluster prod resets it when its guest is silent"


class Simulated:
    """Answers of a vCenter Server with the machine n1 in the cluster prod."""

    def __init__(self) -> None:
        vmomi = pytest.importorskip("pyVmomi", reason="pyvmomi is not installed")
        self.vim, self.vmodl = vim, vmodl = vmomi.vim, vmomi.vmodl
        self.answers = Answers()
        self.machine, self.task = vim.VirtualMachine("vm-1", None), vim.Task("task-1", None)
        self.cluster, self.pool = vim.ClusterComputeResource("domain-c1", None), vim.ResourcePool("resgroup-1", None)
        self.collector = vmodl.query.PropertyCollector("collector-1", None)
        content = vim.ServiceInstanceContent(
            propertyCollector=self.collector, searchIndex=vim.SearchIndex("SearchIndex", None),
            sessionManager=vim.SessionManager("SessionManager", None),
            authorizationManager=vim.AuthorizationManager("AuthorizationManager", None),
        )  # fmt: skip
        self.session = complete(vim.UserSession(key="s1", userName="ops"))
        self.summary = complete(
            vim.vm.Summary(
                runtime=vim.vm.RuntimeInfo(powerState="poweredOn", faultToleranceState="notConfigured"),
                config=vim.vm.Summary.ConfigSummary(uuid=UUID, name="n1"),
            )
        )
        self.config = complete(vim.cluster.ConfigInfoEx(dasConfig=vim.cluster.DasConfigInfo(enabled=False)))
        self.granted = {"VirtualMachine.Interact.PowerOff": True, "VirtualMachine.Interact.PowerOn": True}
        self.disabled = ["PowerOnVM_Task"]
        self.outcome: Any = ("info.state", vim.TaskInfo.State("success"))
        self.answers.methods = {
            "RetrieveServiceContent": complete(content),
            "Login": None,
            "FindAllByUuid": lambda uuid, *_: [self.machine] if uuid == UUID else [],
            "HasPrivilegeOnEntities": lambda *_: [self._privileges()],
            "PowerOffVM_Task": self.task, "PowerOnVM_Task": self.task,
            "ShutdownGuest": None,
            "CreatePropertyCollector": self.collector, "DestroyPropertyCollector": None,
            "CreateFilter": vmodl.query.PropertyCollector.Filter("filter-1", None),
            "WaitForUpdatesEx": lambda *_: self._update(),
        }  # fmt: skip
        self.refresh()

    def refresh(self) -> None:
        self.answers.properties = {
            ("SessionManager", "currentSession"): self.session,
            ("vm-1", "summary"): self.summary,
            ("vm-1", "disabledMethod"): self.disabled,
            ("vm-1", "resourcePool"): self.pool,
            ("resgroup-1", "owner"): self.cluster,
            ("domain-c1", "configurationEx"): self.config,
            ("domain-c1", "name"): "prod",
        }

    def _privileges(self) -> Any:
        available = self.vim.AuthorizationManager.PrivilegeAvailability
        rights = [available(privId=name, isGranted=is_granted) for name, is_granted in self.granted.items()]
        return self.vim.AuthorizationManager.EntityPrivilege(entity=self.machine, privAvailability=rights)

    def _update(self) -> Any:
        query = self.vmodl.query.PropertyCollector
        name, value = self.outcome
        change = query.Change(name=name, op="assign", val=value)
        found = query.ObjectUpdate(kind="enter", obj=self.task, changeSet=[change])
        filters = [query.FilterUpdate(filter=query.Filter("filter-1", None), objectSet=[found])]
        return query.UpdateSet(version="1", filterSet=filters)


@pytest.fixture
def simulated() -> Simulated:
    return Simulated()


@pytest.fixture
def server(simulated: Simulated, tmp_path: Path) -> Iterator[Vcenter]:
    with soap_server(tmp_path, simulated.answers) as found:
        yield found


@pytest.fixture(scope="module")
def vcenter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vcenter]:
    pytest.importorskip("pyVmomi", reason="pyvmomi is not installed")
    with vcsim(tmp_path_factory.mktemp("vcsim")) as found:
        yield found


def changes(answers: Answers) -> list[str]:
    return [name for name in answers.calls if name.startswith(("Power", "Shutdown"))]


@pytest.mark.timeout(600)  # vcsim is compiled first
def test_vcsim_follows_on_and_off(vcenter: Vcenter) -> None:
    control = vcenter.control(PATH)
    assert control.capabilities == ALL_CAPABILITIES
    assert control.state() == "on"
    for verb in (control.off, control.off, control.on, control.on):  # each twice: no harm
        verb()
        assert control.state() == ("on" if verb == control.on else "off")
    assert control.risks() == vcenter.control("DC0/vm/DC0_H0_VM0").risks() == ()  # in a cluster, and on a single host


@pytest.mark.timeout(600)
def test_vcsim_finds_it_by_its_uuid_in_either_byte_order(vcenter: Vcenter) -> None:
    uuid = vcenter.control(PATH).identity().system_uuid
    for name in (uuid, uuid.upper(), swap_uuid(uuid)):
        assert vcenter.control(name).identity().system_uuid == uuid
    assert vcenter.control(provider_id=f"vsphere://{uuid}").identity().provider_id == f"vsphere://{uuid}"
    for name in ("DC0/vm/absent", "DC0/host/DC0_C0", OTHER):
        with pytest.raises(Refused, match="is not found"):
            vcenter.control(name).off()


@pytest.mark.timeout(600)
def test_vcsim_logs_in_again_when_the_session_has_expired(vcenter: Vcenter) -> None:
    control = vcenter.control(PATH)
    control._session.content().sessionManager.Logout()
    assert control.state() == "on"


def test_it_is_bound_by_its_uuid_and_not_to_another(server: Vcenter) -> None:
    found = server.control(provider_id=f"vsphere://{UUID}")
    assert isinstance(found, MachineIdentity)
    assert isinstance(found, MachineRisks)
    for reported in (UUID.upper(), swap_uuid(UUID)):  # hardware versions before 13, and later ones
        node = NodeIdentity("n1", "m", reported, provider_id=f"vsphere://{UUID}")
        assert bind_power(node, HostIdentity(), found.identity(), {"n1": node}).is_bound
    other = NodeIdentity("n1", "m", OTHER)
    assert bind_power(other, HostIdentity(), found.identity(), {"n1": other}).contradictions
    assert server.control(UUID, provider_id="k3s://n1").identity().provider_id == ""


@pytest.mark.parametrize(
    ("power", "state", "on", "off"),
    [
        ("poweredOn", "on", [], ["PowerOffVM_Task"]),
        ("suspended", "on", ["PowerOnVM_Task"], ["PowerOffVM_Task"]),
        ("poweredOff", "off", ["PowerOnVM_Task"], []),
    ],
)
def test_the_state_machine(
    simulated: Simulated, server: Vcenter, power: str, state: str, on: list[str], off: list[str]
) -> None:
    simulated.summary.runtime.powerState = power
    control = server.control(UUID)
    assert control.state() == state
    control.on()
    assert changes(simulated.answers) == on
    simulated.answers.calls.clear()
    control.off()
    assert changes(simulated.answers) == off


def test_soft_off_needs_vmware_tools(simulated: Simulated, server: Vcenter) -> None:
    control = server.control(UUID)
    control.soft_off()
    assert changes(simulated.answers) == ["ShutdownGuest"]
    simulated.answers.methods["ShutdownGuest"] = simulated.vim.fault.ToolsUnavailable(
        msg="VMware Tools is not running."
    )
    with pytest.raises(Refused, match=r"shutting its guest down failed: VMware Tools is not running\."):
        control.soft_off()


@pytest.mark.parametrize(
    ("monitoring", "override", "risks"),
    [
        ("", None, []),
        ("vmMonitoringDisabled", None, []),
        ("vmMonitoringOnly", None, [MONITORED]),
        ("vmAndAppMonitoring", None, [MONITORED]),
        ("vmMonitoringOnly", ("vmMonitoringDisabled", False), []),
        ("vmMonitoringOnly", ("vmMonitoringDisabled", True), [MONITORED]),
        ("vmMonitoringDisabled", ("vmMonitoringOnly", False), [MONITORED]),
    ],
)
def test_what_vsphere_ha_would_do(
    simulated: Simulated, server: Vcenter, monitoring: str, override: tuple[str, bool] | None, risks: list[str]
) -> None:
    """HA without VM Monitoring leaves off what was powered off."""
    cluster = simulated.vim.cluster
    simulated.config.dasConfig = cluster.DasConfigInfo(enabled=True, vmMonitoring=monitoring or None)
    if override:
        own = cluster.VmToolsMonitoringSettings(vmMonitoring=override[0], clusterSettings=override[1])
        settings = cluster.DasVmSettings(vmToolsMonitoringSettings=own)
        simulated.config.dasVmConfig = [cluster.DasVmConfigInfo(key=simulated.machine, dasSettings=settings)]
    assert [risk.message for risk in server.control(UUID).risks()] == risks


def test_other_risks(simulated: Simulated, server: Vcenter) -> None:
    vim = simulated.vim
    simulated.summary.config.managedBy = vim.ext.ManagedByInfo(extensionKey="com.vmware.vim.eam", type="cluster-agent")
    simulated.summary.config.template = True
    simulated.summary.runtime.faultToleranceState = "running"
    simulated.granted["VirtualMachine.Interact.PowerOn"] = False
    simulated.disabled.append("PowerOffVM_Task")
    assert [risk.message for risk in server.control(UUID).risks()] == [
        "it is a template, which cannot be powered on",
        "com.vmware.vim.eam manages it, and may start it again",
        "Fault Tolerance lets a second machine go on in its place",
        "vCenter has disabled powering it off",
        "the user lacks the privilege VirtualMachine.Interact.PowerOn",
    ]


def test_a_uuid_that_two_machines_have_is_refused(simulated: Simulated, server: Vcenter) -> None:
    simulated.answers.methods["FindAllByUuid"] = [simulated.machine, simulated.vim.VirtualMachine("vm-2", None)]
    with pytest.raises(Refused, match="machines have this UUID"):
        server.control(UUID).off()
    assert changes(simulated.answers) == []


@pytest.mark.parametrize(
    ("settings", "error", "why"),
    [
        ({"user": "stranger"}, Refused, r"logging in as stranger failed: Cannot complete login\. \(InvalidLogin\)"),
        ({"caFile": None}, Unreachable, "certificate verify failed"),
        ({"port": 1}, Unreachable, "Connection refused"),
        ({"caFile": "/nowhere.pem"}, Refused, "caFile /nowhere.pem cannot be used"),
        ({"vm": OTHER}, Refused, f"machine {OTHER} of vSphere at 127.0.0.1 is not found"),
        ({"vm": None}, Refused, "power control vsphere of n1 has no machine: its Node has no provider ID"),
    ],
)
def test_nothing_is_sent_to_a_wrong_server_or_machine(
    simulated: Simulated, server: Vcenter, settings: dict[str, Any], error: type[NodefallError], why: str
) -> None:
    with pytest.raises(error, match=why) as caught:
        server.control(**{"vm": UUID} | settings).off()
    assert type(caught.value) is error
    assert PASSWORD not in str(caught.value) + caught.value.hint
    assert changes(simulated.answers) == []


def fault(control: VsphereControl) -> NodefallError:
    with pytest.raises(NodefallError) as caught:
        control.off()
    return caught.value


def test_faults_show_whether_it_may_have_been_carried_out(simulated: Simulated, server: Vcenter) -> None:
    vim, vmodl, control = simulated.vim, simulated.vmodl, server.control(UUID)
    for sent, expected in (
        (vim.fault.TaskInProgress(msg="Another task is already in progress.", task=simulated.task), Refused),
        (vim.fault.NoPermission(msg="Permission denied.", object=simulated.machine, privilegeId="x"), Refused),
        (vmodl.fault.HostCommunication(msg="Unable to communicate with the remote host."), NodefallError),
    ):
        for in_task in (False, True):
            simulated.answers.methods["PowerOffVM_Task"] = simulated.task if in_task else sent
            simulated.outcome = ("info.error", sent)
            found = fault(control)
            assert f"powering it off failed: {sent.msg}" in str(found)
            assert type(found) is expected
    simulated.answers.status = 503
    assert type(fault(control)) is Unreachable


@pytest.mark.parametrize("method", ["CreatePropertyCollector", "WaitForUpdatesEx"])
def test_a_task_that_cannot_be_followed_may_have_been_carried_out(
    simulated: Simulated, server: Vcenter, method: str
) -> None:
    """As when the session has ended, or vCenter has forgotten the task: it was accepted."""
    simulated.answers.methods[method] = simulated.vmodl.fault.ManagedObjectNotFound(msg="It has been deleted.")
    found = fault(server.control(UUID))
    assert "powering it off failed: It has been deleted." in str(found)
    assert type(found) is NodefallError
    assert changes(simulated.answers) == ["PowerOffVM_Task"]


def test_a_task_that_does_not_end_may_have_been_carried_out(simulated: Simulated, server: Vcenter) -> None:
    simulated.answers.methods["WaitForUpdatesEx"] = None
    found = fault(server.control(UUID))
    assert "its task has not ended after 60 s" in str(found)
    assert type(found) is NodefallError


def test_a_host_that_is_gone_has_no_state(simulated: Simulated, server: Vcenter) -> None:
    simulated.summary.runtime.connectionState = "disconnected"
    with pytest.raises(NodefallError, match="has no power state: its connection state is disconnected"):
        server.control(UUID).state()


def test_without_the_extra_it_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyVmomi", None)
    with pytest.raises(Refused, match=r"^power control vsphere cannot be used: pyVmomi is not installed$") as caught:
        Vcenter(1, Path("ca.pem")).control(UUID)
    assert caught.value.hint == "run pip install 'nodefall[vsphere]'"
