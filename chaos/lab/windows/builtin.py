"""What a Windows Server with a kubelet has when it is installed: services, registry values."""

from __future__ import annotations

from chaos.lab.spec import NodeSpec
from chaos.lab.windows.disk import CONTROL, CRASH_CONTROL, PREFETCH, WindowsRegistry
from chaos.lab.windows.services import Service

_SVCHOST = r"C:\Windows\System32\svchost.exe -k"
_KUBELET = r"C:\k\kubelet.exe --config=C:\var\lib\kubelet\config.yaml --kubeconfig=C:\etc\kubernetes\kubelet.conf"
_NSSM = r"C:\k\nssm.exe"
_PRESHUTDOWN = frozenset({"STOP", "PRESHUTDOWN"})
_SHUTDOWN = frozenset({"STOP", "SHUTDOWN"})
_FAILURE_RESTART, _NSSM_RESTART = 10.0, 5.0  # seconds; the GCE scripts' failure action, nssm's AppRestartDelay
_NSSM_STOP = 1.5
_SERVICING = r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing"
_UPDATE = r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\WindowsUpdate\Auto Update"
# What sets the clock right, and after how many seconds. Invented: the seconds. w32time waits for its next poll.
TIME_SERVICES = {"vmictimesync": 5.0, "w32time": 30.0}
# invented: the entries are of services that exist on every Server; the default order itself is not documented
_PRESHUTDOWN_ORDER = ("UsoSvc", "gpsvc", "trustedinstaller")


def kubelet_command(node: NodeSpec, identity: str) -> str:
    """Command line of the kubelet's process. ``identity``: of LabSpec.kubelet_identity."""
    flags = " --windows-service" if node.kubelet_service == "service" else ""
    return _KUBELET + flags + (f" --hostname-override={node.name}" if identity == "hostname-override" else "")


def builtin_services(node: NodeSpec, identity: str) -> list[Service]:
    """Services of a node, the kubelet among them. Display names of Windows' own services are the real ones."""
    return [
        Service("EventLog", "Windows Event Log", f"{_SVCHOST} LocalServiceNetworkRestricted", _SHUTDOWN),
        Service("BITS", "Background Intelligent Transfer Service", f"{_SVCHOST} netsvcs", _PRESHUTDOWN),
        Service("gpsvc", "Group Policy Client", f"{_SVCHOST} netsvcs", frozenset({"PRESHUTDOWN"})),
        Service("wuauserv", "Windows Update", f"{_SVCHOST} netsvcs", _PRESHUTDOWN, start_type="demand"),
        Service("Schedule", "Task Scheduler", f"{_SVCHOST} netsvcs", frozenset({"SHUTDOWN"})),
        Service("w32time", "Windows Time", f"{_SVCHOST} LocalService", _SHUTDOWN),
        Service(
            *("vmictimesync", "Hyper-V Time Synchronization Service", f"{_SVCHOST} LocalServiceNetworkRestricted"),
            accepts=_SHUTDOWN,
            start_type="demand",
            is_triggered=True,
        ),
        Service(
            *("WinRM", "Windows Remote Management (WS-Management)", f"{_SVCHOST} NetworkService", _SHUTDOWN),
            start_type="delayed-auto",
        ),
        Service("sshd", "OpenSSH SSH Server", r"C:\Windows\System32\OpenSSH\sshd.exe", _SHUTDOWN, own_process=True),
        Service(
            *("containerd", "containerd", r"C:\Program Files\containerd\containerd.exe --run-service", _SHUTDOWN),
            own_process=True,
            restart_after=_FAILURE_RESTART,
        ),
        _kubelet(node, identity),
    ]


def _kubelet(node: NodeSpec, identity: str) -> Service:
    """The service kubelet: real, or nssm with the kubelet as its child, which gets no pre-shutdown notice."""
    depends = tuple(node.kubelet_depends)
    if node.kubelet_service == "nssm":
        return Service(
            *("kubelet", "kubelet", _NSSM, _SHUTDOWN, depends),
            own_process=True,
            restart_after=_NSSM_RESTART,
            stop_seconds=_NSSM_STOP,
        )
    return Service(
        *("kubelet", "kubelet", kubelet_command(node, identity), _PRESHUTDOWN, depends),
        own_process=True,
        restart_after=_FAILURE_RESTART,
    )


def fill_registry(registry: WindowsRegistry, system_uuid: str, boot_id: int) -> None:
    """Write the values that tools read, and ``boot_id`` of the last boot.

    ``LastConfig`` is where the kubelet reads the UUID of the firmware (winstats).
    """
    registry.set(r"HKLM\SYSTEM\HardwareConfig", "LastConfig", "REG_SZ", f"{{{system_uuid.lower()}}}")
    registry.set(PREFETCH, "BootId", "REG_DWORD", boot_id)
    registry.set(CONTROL, "PreshutdownOrder", "REG_MULTI_SZ", _PRESHUTDOWN_ORDER)
    registry.set(CONTROL, "WaitToKillServiceTimeout", "REG_SZ", "5000")
    registry.set(CRASH_CONTROL, "AutoReboot", "REG_DWORD", 1)
    for key in (_SERVICING, _UPDATE):  # without a reboot that is pending
        registry.create(key)
