"""The etcd of kubeadm: one member on each machine that has its static pod, and who of them is the leader.

Elections as of raft (etcd, server/etcdserver and raft): members that hear nothing of a leader begin one after a random
time of one to two election timeouts; a leader that is stopped gracefully hands over before (EtcdServer.Stop).
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass

from chaos.lab.node.kubelet.runtime import Container, Runtime
from chaos.lab.sim import SimClock

NAMESPACE, CONTAINER = "kube-system", "etcd"
_ELECTION_TIMEOUT = 1.0  # --election-timeout; kubeadm leaves the default
_KILLED = 137


@dataclass(frozen=True, slots=True)
class Leader:
    """A member, by the process that was elected: one that has been started again is a follower."""

    member: str
    process: str


class EtcdCluster:
    """``members``: container runtimes by the machine's name, in the order in which they joined; empty without etcd."""

    def __init__(self, sim: SimClock, seed: int, members: Mapping[str, Runtime]) -> None:
        self.members = dict(members)
        self._sim, self._seed = sim, seed
        self._leader: Leader | None = None
        self._is_formed = False
        self._term, self._lost_at = 1, sim.now

    def process(self, member: str) -> Container | None:
        """The running container of a member, None without one."""
        runtime = self.members[member]
        for uid, (namespace, pod) in runtime.names.items():
            if (namespace, pod) == (NAMESPACE, f"{CONTAINER}-{member}"):
                return next((item for item in runtime.containers(uid) if item.state == "running"), None)
        return None

    def running(self) -> dict[str, Container]:
        """Containers by member, of those that run."""
        found = ((member, self.process(member)) for member in self.members)
        return {member: process for member, process in found if process}

    @property
    def term(self) -> int:
        return self._term

    def leader(self) -> str:
        """Name of the leader, "" while there is none."""
        running = self.running()
        if not self._is_formed:
            self._form(running)
        elif self._leader and not self._leads(running):
            self._end_term(running)
        if (
            self._is_formed
            and self._leader is None
            and (elected := self._election(running))
            and elected[0] <= self._sim.now
        ):
            self._leader = Leader(elected[1], running[elected[1]].id)
        return self._leader.member if self._leader else ""

    def on_machine_change(self, _: object) -> None:
        """Notice at once that a member has lost its power."""
        self.leader()

    def ready_at(self) -> float | None:
        """When there is a leader, now if there is one; None while too few members run."""
        if self.leader() or not self._is_formed:
            return self._sim.now
        elected = self._election(self.running())
        return elected[0] if elected else None

    def _form(self, running: Mapping[str, Container]) -> None:
        """Once all members run, the first one leads: ``kubeadm init`` has made it before others joined."""
        if self.members and len(running) == len(self.members):
            first = next(iter(self.members))
            self._is_formed, self._leader = True, Leader(first, running[first].id)

    def _leads(self, running: Mapping[str, Container]) -> bool:
        """Whether the leader's process runs, and enough others for a majority: without it, it steps down."""
        leader = self._leader
        process = running.get(leader.member) if leader else None
        return bool(leader and process and process.id == leader.process and self._is_majority(len(running)))

    def _is_majority(self, count: int) -> bool:
        return count > len(self.members) // 2

    def _end_term(self, running: Mapping[str, Container]) -> None:
        """End the leader's term when its process has ended; the next leader is known at once if it was asked to."""
        assert self._leader is not None  # noqa: S101 - of the caller
        last = self._ended_process(self._leader)
        self._term += 1
        self._leader, self._lost_at = None, self._sim.now
        if last is not None and last.finished_at is not None:
            self._lost_at = last.finished_at
            others = sorted(running)
            if last.exit_code != _KILLED and self._is_majority(len(others)):
                heir = self._rng("transfer").choice(others)
                self._leader = Leader(heir, running[heir].id)

    def _ended_process(self, leader: Leader) -> Container | None:
        runtime = self.members[leader.member]
        for uid in runtime.pods():
            for item in runtime.containers(uid):
                for known in (item, item.last):
                    if known is not None and known.id == leader.process and known.state == "exited":
                        return known
        return None

    def _election(self, running: Mapping[str, Container]) -> tuple[float, str] | None:
        """When the next election ends, and who wins it; None without a majority."""
        if not self._is_majority(len(running)):
            return None
        starts = sorted(process.started_at for process in running.values())
        begin = max(self._lost_at, starts[len(self.members) // 2])
        waits = ((self._rng(member).uniform(1.0, 2.0) * _ELECTION_TIMEOUT, member) for member in sorted(running))
        first, winner = min(waits)
        return begin + first, winner

    def _rng(self, purpose: str) -> random.Random:
        """Of a term: the result does not depend on how often it is asked for."""
        return random.Random(f"{self._seed}/{self._term}/{purpose}")  # noqa: S311 - repeatable, not secret


def member_id(member: str) -> int:
    """ID of a member: 64 bits."""
    return int.from_bytes(hashlib.sha256(f"etcd {member}".encode()).digest()[:8])
