"""Transport through privileged pods of nodefall, for nodes without any login: root on the node by the API server.

Exec goes from the API server to the kubelet. If the kubelet or runtime is not running, or cannot be reached from
the control plane, this transport does not work.
"""

from __future__ import annotations

from chaos.core.errors import Refused
from chaos.machines.driver import HostContext, TransportDriver
from chaos.machines.pod.manifest import PodOptions
from chaos.machines.pod.session import HelperSlot, PodSession


class PodTransport(TransportDriver):
    """A pod on each node, with ``nsenter`` into the namespaces of PID 1; commands run as root."""

    name = "pod"
    options = PodOptions
    needs_kubelet = True

    def open_session(self, host: HostContext) -> PodSession:
        if host.pods is None or host.exec is None:
            raise Refused(f"{host.node}: transport pod needs a cluster", hint="give cluster in the inventory")
        pods, options = host.pods, self.options_of(host)
        slot = host.shared.get(("helper pod", host.node), lambda: HelperSlot(host.node, pods, options))
        return PodSession(slot, host.exec, host.pin)  # connects with its first command: others may wait for it


DRIVER = PodTransport()
