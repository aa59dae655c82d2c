"""The work on a game day against an API server that has only ConfigMaps, in a time that only waiting moves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from chaos.app.day.document import load_game_day, new_state
from chaos.app.day.session import DayRequest, DaySession
from chaos.app.day.stop import DayStop
from chaos.app.day.store import DayStore
from chaos.app.run.experiment import always_confirm
from chaos.core.inventory import Inventory
from chaos.core.ports import Response
from chaos.engine.connection import ClusterConnection
from chaos.engine.progress import NullProgress
from chaos.gameday.transitions import take_over
from tests.kit.day_api import ConfigMaps
from tests.kit.fakes import FakeClock
from tests.kit.gamedays import write_day

CLUSTER = {"kubeconfig": "none", "timeSource": {"address": "127.0.0.1", "port": 1}}
INVENTORY = {
    "apiVersion": "nodefall.dev/v1alpha1",
    "kind": "Inventory",
    "metadata": {"name": "fake"},
    "cluster": CLUSTER,
    "hosts": {},
}


class DayClock(FakeClock):
    """Time that moves while the day waits; ``woken``: sleeps end early."""

    woken = False

    @contextmanager
    def participant(self) -> Iterator[None]:
        yield

    def wake(self) -> None:
        self.woken = True


class DayApi(ConfigMaps):
    """Has Nodes, too: what is wrong with each by name, "" for nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes: dict[str, str] = {"worker-1": "", "worker-2": ""}

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Response:
        if path != "/api/v1/nodes":
            return super().request(method, path, query, body, content_type)
        items = [_node(name, wrong) for name, wrong in self.nodes.items()]
        return Response(200, json.dumps({"items": items}).encode(), {})


class Lines(NullProgress):
    """Collects what people would see."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)

    def open_progress(self) -> Lines:
        return self

    def close(self) -> None: ...


class Day:
    """A session with its parts, begun at ``begin`` (seconds since the epoch)."""

    def __init__(self, folder: Path, names: list[str], begin: float, **spec: Any) -> None:
        self.clock, self.kube, self.lines = DayClock(), DayApi(), Lines()
        self.clock.t = begin
        day = load_game_day(write_day(folder, names, **spec))
        inventory = Inventory.model_validate(INVENTORY)
        connection = ClusterConnection(
            inventory, cast("Any", self.clock), cast("Any", self.kube), cast("Any", None), "uid", "v1.36.2"
        )
        store = DayStore(self.kube, "kube-system", "days", self.clock.now)
        request = DayRequest(
            day=day,
            reports=folder / "reports",
            display=self.lines,
            confirm=always_confirm,
            confirm_undo=lambda _replica, _resolved: None,
            by="tests@here",
        )
        state = store.update(lambda _: take_over(new_state(day, "", "mon", 7, begin, ()), "me"))
        self.session = DaySession(request, connection, store, DayStop(self.clock), state)

    @property
    def text(self) -> str:
        return "\n".join(self.lines.lines)


def _node(name: str, wrong: str) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "False" if wrong == "not ready" else "True"}
    taints = [{"key": wrong, "effect": "NoExecute"}] if "/" in wrong else []
    spec = {"unschedulable": wrong == "cordoned", "taints": taints}
    return {"metadata": {"name": name, "uid": name}, "spec": spec, "status": {"conditions": [ready]}}
