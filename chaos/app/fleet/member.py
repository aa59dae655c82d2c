"""One cluster of a fleet: what is seen of it, and the few things that are done to it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial

from chaos.app.day.store import DayStore, day_store, existing, unless_finished
from chaos.app.fleet.loading import LoadedCluster, LoadedFleet, cluster_permissions
from chaos.app.wiring.connect import connect_cluster
from chaos.cluster.cluster_state import refuse_missing
from chaos.cluster.gameday_objects import apply_object, create_job, delete_job, delete_labelled, list_jobs
from chaos.cluster.journal_mirror import pending_runs
from chaos.core.clock import SystemClock
from chaos.core.errors import NodefallError, Refused
from chaos.core.labels import FLEET_LABEL, JobView
from chaos.engine.connection import ClusterConnection, cluster_identity, lock_namespace
from chaos.gameday.deploy.manifests import NOT_DELETED, fleet_job, fleet_job_name, shared_manifests
from chaos.gameday.fleet_state import Observation
from chaos.gameday.state import DayState, DayStatus, RunStatus
from chaos.gameday.transitions import end, halt, resume

_GONE_SECONDS = 60.0  # for a Job that is deleted
_POLL = 0.5  # wall seconds
_log = logging.getLogger(__name__)


class Member:
    """A cluster of the fleet. It is connected to when it is first needed. Used by one thread at a time."""

    def __init__(self, fleet: LoadedFleet, cluster: LoadedCluster) -> None:
        self.cluster = cluster
        self.plan_hash = fleet.day.hash
        self._fleet = fleet.document.metadata.name
        self._gameday = fleet.day.document.metadata.name
        self._stack = ExitStack()
        self._connected: ClusterConnection | None = None

    @property
    def name(self) -> str:
        return self.cluster.name

    @property
    def connection(self) -> ClusterConnection:
        """Raises NodefallError: Refused for the wrong cluster, others if it cannot be reached."""
        if self._connected is None:
            self._connected = self._stack.enter_context(connect_cluster(self.cluster.inventory))
        return self._connected

    def close(self) -> None:
        self._stack.close()
        self._connected = None

    def check(self, lease: str = "") -> str:
        """Check the rights; what distinguishes the cluster from every other one. Raises NodefallError."""
        refuse_missing(self.connection.kube, cluster_permissions(self.cluster, lease))
        return cluster_identity(self.connection)

    def observe(self, day: str) -> Observation:
        """What can be seen of the day with this ID, and of its Job. Never raises NodefallError."""
        try:
            job, state = self._job(day), self._store().read()
            is_over = state is None or state.status is DayStatus.FINISHED
            is_active = job is not None and job.is_active
            runs = () if is_over or is_active else pending_runs(self.connection.kube, lock_namespace(self.connection))
            pending = tuple(run.identity.run for run in runs if run.has_pending)
            return Observation(job=job, state=state, pending_undo=pending)
        except NodefallError as error:
            return Observation(error=error.message)

    def start(self, day: str, permit: Callable[[], None]) -> None:
        """Apply what the Job needs, and create it; one that has ended is replaced. Raises NodefallError.

        ``permit``: called before each change that takes long or cannot be taken back; raises NodefallError.
        """
        kube, deployment = self.connection.kube, self.cluster.deployment
        permit()
        for manifest in shared_manifests(deployment):
            apply_object(kube, manifest)
        job = fleet_job(deployment, day, self.plan_hash)
        jobs = self._list()
        if other := next((each for each in jobs if each.is_active and each.name != job["metadata"]["name"]), None):
            raise Refused(f"its Job {other.name} is for day {other.day}")
        if before := next((each for each in jobs if each.name == job["metadata"]["name"] and not each.is_active), None):
            self.delete(before)
        permit()
        if not create_job(kube, job):
            _log.info("%s: the Job %s exists", self.name, job["metadata"]["name"])

    def delete(self, job: JobView) -> None:
        """Delete a Job, and wait until it is gone. Raises NodefallError."""
        namespace = self.cluster.deployment.namespace
        delete_job(self.connection.kube, namespace, job.name, job.uid)
        with closing(SystemClock()) as clock:
            deadline = clock.now() + _GONE_SECONDS
            while any(each.uid == job.uid for each in self._list_all()):
                if clock.now() > deadline:
                    raise NodefallError(f"Job {namespace}/{job.name} is not deleted: something keeps it")
                clock.sleep(_POLL)

    def halt(self, by: str, reason: str, *, for_good: bool = False) -> str:
        """Halt the day; a Job that has not begun it is deleted. What still runs, "" for nothing. Raises NodefallError.

        To be called again until nothing runs.
        """
        store, jobs = self._store(), [job for job in self._list() if job.is_active]
        state = store.read()
        is_open = state is not None and state.status is not DayStatus.FINISHED and state.has_begun
        if state is not None and is_open and (for_good or not state.halt):
            act = partial(end if for_good else halt, by=by, reason=reason, now=store.now())
            state = store.update(unless_finished(act))
        unbegun = [job for job in jobs if state is None or state.day != job.day or not state.has_begun]
        for job in unbegun:
            self.delete(job)
        if unbegun:
            state = store.read()  # its pod may have begun meanwhile: what it needs for its undo must stay
        running = [str(run.key) for run in state.runs if run.status is RunStatus.RUNNING] if state else []
        has_job = any(job.is_active for job in self._list())
        if running and not has_job:
            return f"{running[0]} was interrupted; nodefall gameday run finishes its undo"
        return (running[0] if running else "its Job ends") if has_job else ""

    def resume(self, day: str, by: str, reason: str) -> bool:
        """Let the day continue; whether it was halted. Raises NodefallError."""
        store = self._store()
        state = store.read()
        if state is None or state.day != day or state.halt is None:
            return False
        store.update(existing(lambda current: resume(current, by, reason, store.now())))
        return True

    def clean(self) -> None:
        """Delete what the fleet has applied, except for the volume and its namespace. Raises NodefallError, Refused.

        A Job that has not ended is not deleted, nor what it needs.
        """
        jobs = self._list()
        if active := next((job.name for job in jobs if job.is_active), ""):
            raise Refused(f"the Job {active} has not ended")
        for job in jobs:
            self.delete(job)
        manifests = [each for each in shared_manifests(self.cluster.deployment) if each["kind"] not in NOT_DELETED]
        delete_labelled(self.connection.kube, manifests, self._selector)

    def read_day(self) -> DayState | None:
        """The last day of that name. Raises NodefallError."""
        return self._store().read()

    @property
    def _selector(self) -> str:
        return f"{FLEET_LABEL}={self._fleet}"

    def _list(self) -> list[JobView]:
        return list_jobs(self.connection.kube, self.cluster.deployment.namespace, self._selector)

    def _list_all(self) -> list[JobView]:
        """With those that are being deleted."""
        kube, namespace = self.connection.kube, self.cluster.deployment.namespace
        return list_jobs(kube, namespace, self._selector, with_deleted=True)

    def _job(self, day: str) -> JobView | None:
        """The Job of the day; otherwise one that is active for another day."""
        jobs = self._list()
        name = fleet_job_name(self.cluster.deployment, day, self.plan_hash)
        own = next((job for job in jobs if job.name == name), None)
        return own or next((job for job in jobs if job.is_active), None)

    def _store(self) -> DayStore:
        return day_store(self.connection, self._gameday)
