"""The control plane: controllers of kube-controller-manager, and the scheduler."""

from __future__ import annotations

from chaos.lab.apiserver.registry import Registry
from chaos.lab.controllers.attach_detach import AttachDetach
from chaos.lab.controllers.daemonset import DaemonSets
from chaos.lab.controllers.deployment import Deployments
from chaos.lab.controllers.disruption import Disruption, StaleDisruption
from chaos.lab.controllers.endpoint_slices import EndpointSlices
from chaos.lab.controllers.garbage_collection import GarbageCollector, Namespaces, PodGarbageCollector
from chaos.lab.controllers.job import Jobs
from chaos.lab.controllers.node_ipam import NodeIpam
from chaos.lab.controllers.node_lifecycle import NodeLifecycle
from chaos.lab.controllers.pv_controller import PersistentVolumeController
from chaos.lab.controllers.replicaset import ReplicaSets
from chaos.lab.controllers.scheduler import Scheduler
from chaos.lab.controllers.statefulset import StatefulSets
from chaos.lab.controllers.taint_eviction import TaintEviction
from chaos.lab.sim import Polls, SimClock

_POLL = 0.1  # seconds: of the queues of nodes to be tainted, and of the reconciler of volumes


class Controllers:
    """All controllers, started together."""

    def __init__(self, sim: SimClock, registry: Registry) -> None:
        polls = Polls(sim, _POLL)
        self.node_lifecycle = NodeLifecycle(sim, registry, polls)
        self.taint_eviction = TaintEviction(sim, registry)
        self.pod_gc = PodGarbageCollector(sim, registry)
        self.daemon_sets = DaemonSets(sim, registry)
        self.jobs = Jobs(sim, registry)
        self.attach_detach = AttachDetach(sim, registry, polls)
        self.scheduler = Scheduler(sim, registry)
        self._others = (
            self.scheduler,
            Deployments(sim, registry),
            ReplicaSets(sim, registry),
            StatefulSets(sim, registry),
            self.daemon_sets,
            self.jobs,
            Disruption(sim, registry),
            StaleDisruption(sim, registry),
            Namespaces(sim, registry),
            GarbageCollector(sim, registry),
            self.pod_gc,
            PersistentVolumeController(sim, registry),
            self.attach_detach,
            EndpointSlices(sim, registry),
            NodeIpam(sim, registry),
        )

    def start(self) -> None:
        """Subscribe to the store, and start periodic work."""
        self.node_lifecycle.start()
        self.taint_eviction.start()
        for controller in self._others:
            controller.start()

    def restart(self) -> None:
        """Restart kube-controller-manager at once: state in memory is lost.

        Toleration countdowns, quarantines and back-offs restart; each node counts as observed now. Facts 5.6.
        """
        self.node_lifecycle.restart()
        self.taint_eviction.restart()
        self.pod_gc.restart()
        self.attach_detach.restart()
        self.daemon_sets.restart()
        self.jobs.restart()
