"""The present helper pod of one node, replaced by a new one where it has ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from chaos.core.errors import Unreachable
from chaos.machines.pod.helpers import Helper, HelperPods
from chaos.machines.pod.manifest import PodOptions

# Seconds of cluster time: a failure that took longer is that of whoever asks again within them. Else each of three
# tries of each of two commands waits a minute for a pod that cannot run.
_REPEAT = 10.0


class HelperSlot:
    """Thread safe. Who waits for a pod that another thread makes sleeps in cluster time: a lab's does not move else."""

    def __init__(self, node: str, pods: HelperPods, options: PodOptions) -> None:
        self.node, self._pods, self._options = node, pods, options
        self._helper: Helper | None = None
        self._failure: tuple[float, Unreachable] | None = None  # until when it counts
        self._lock = Lock()

    def get(self) -> Helper:
        """The pod, a new one where there is none. Raises NodefallError."""
        with self._hold():
            if self._helper is None:
                self._helper = self._create()
            return self._helper

    def _create(self) -> Helper:
        begin = self._pods.now()
        if self._failure and begin < self._failure[0]:
            former = self._failure[1]
            raise Unreachable(former.message, hint=former.hint)
        try:
            return self._pods.create(self.node, self._options)
        except Unreachable as error:
            end = self._pods.now()
            self._failure = (end + _REPEAT, error) if end - begin > _REPEAT else None
            raise

    def renew(self, failed: Helper) -> bool:
        """After an exec failed: whether another pod is worth a try. Raises NodefallError while this one may recover."""
        with self._hold():
            if self._helper is not failed:
                return True
            if self._pods.is_usable(self.node, failed):
                return False
            self._helper = None
            self._pods.delete(failed)
            return True

    def kubelet_peer(self) -> dict[str, str | int]:
        """See :meth:`HelperPods.kubelet_peer`."""
        return self._pods.kubelet_peer(self.node)

    @contextmanager
    def _hold(self) -> Iterator[None]:
        while not self._lock.acquire(blocking=False):
            if not self._pods.pause():
                raise Unreachable(f"{self.node}: its helper pod was not awaited, as the run stops")
        try:
            yield
        finally:
            self._lock.release()
