"""A fleet from its first Job to its end, against API servers that have no more than objects."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.app.day.report import write_reports
from chaos.app.fleet import control, coordinator
from chaos.app.fleet.agent import FleetRequest
from chaos.app.fleet.control import FleetHalt, halt_fleet, pending_undo, resume_fleet, store_records, view_fleet
from chaos.app.fleet.coordinator import FleetEnd, run_fleet
from chaos.app.fleet.loading import LoadedFleet, load_fleet
from chaos.app.fleet.member import Member
from chaos.app.fleet.steps import step
from chaos.core.errors import Exit, Refused, UsageError
from chaos.gameday.fleet_document import MAX_CLUSTERS
from chaos.gameday.fleet_state import fleet_exit_code
from chaos.gameday.state import DayRun, DayState, DayStatus, RunKey, RunStatus
from tests.gameday.test_fleet_state import words
from tests.kit.fleet_api import FakeCluster, connect_to
from tests.kit.fleets import HEAD, write_fleet, write_json
from tests.kit.processes import until

SECONDS = 60.0  # a busy machine is slow
NOT_DELETED = {"PersistentVolumeClaim"}


class Display:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)

    def show(self, state: Any, rows: Any) -> None: ...

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


class World:
    """Clusters that hold, unless the test says otherwise, and a fleet of them all."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, names: list[str], **spec: Any) -> None:
        self.folder, self.display = folder, Display()
        self.clusters = {name: FakeCluster(name, ["held", "held"]) for name in names}
        for cluster in self.clusters.values():
            cluster.fleet = list(self.clusters.values())
        connect_to(self.clusters, patch)
        for name in names:
            settings = {
                "kubeconfig": f"kube/{name}",
                "expectUID": f"uid-{name}",
                "timeSource": {"address": "x", "port": 1},
            }
            write_json(
                folder / f"{name}.json", {**HEAD, "kind": "Inventory", "metadata": {"name": name}, "cluster": settings}
            )
        write_fleet(folder, names, ["one"], **spec)
        self.confirmations = 0

    @property
    def fleet(self) -> LoadedFleet:
        return load_fleet(self.folder / "fleet.yaml")

    def run(self, id_: str = "d1", *, keep: bool = False) -> FleetEnd:
        return run_fleet(FleetRequest(self.fleet, self.folder, cast("Any", self.display), self._confirm, id_, keep))

    def _confirm(self, *_: Any) -> None:
        self.confirmations += 1

    def code(self, end: FleetEnd) -> Exit:
        return fleet_exit_code(end.state, [row.observation for row in end.rows])

    @property
    def jobs(self) -> dict[str, int]:
        return {name: len(cluster.created) for name, cluster in self.clusters.items()}


Make = Callable[..., World]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    return lambda names, **spec: World(tmp_path, monkeypatch, names, **spec)


def test_twenty_clusters_at_most_five_at_once(make: Make) -> None:
    names = [f"c{number:02}" for number in range(20)]
    world = make(names, maxClusters=5)
    end = world.run()
    assert words(end.state) == dict.fromkeys(names, "held")
    assert world.code(end) is Exit.HELD
    assert world.jobs == dict.fromkeys(names, 1)
    assert 1 < max(cluster.most_active for cluster in world.clusters.values()) <= 5
    assert {name: cluster.kinds() for name, cluster in world.clusters.items()} == dict.fromkeys(names, NOT_DELETED)


def test_a_finished_fleet_begins_nothing(make: Make) -> None:
    world = make(["a", "b"])
    world.run()
    for id_ in ("", "d1"):
        assert world.code(world.run(id_)) is Exit.HELD
    assert (world.jobs, world.confirmations) == ({"a": 1, "b": 1}, 1)
    assert world.code(world.run("d2")) is Exit.HELD
    assert (world.jobs, world.confirmations) == ({"a": 2, "b": 2}, 2)


class Died(BaseException):
    """The process ends."""


@pytest.mark.parametrize("ticks", range(12))
def test_a_coordinator_that_dies_is_followed_by_another(
    make: Make, ticks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make(["a", "b", "c"], maxClusters=2)
    left = iter(range(ticks))

    def dies(session: Any) -> bool:
        if next(left, None) is None:
            raise Died
        return step(session)

    with monkeypatch.context() as patch, suppress(Died):
        patch.setattr(coordinator, "step", dies)
        world.run()
    end = world.run("")
    assert words(end.state) == dict.fromkeys("abc", "held")
    assert world.jobs == {"a": 1, "b": 1, "c": 1}
    assert max(cluster.most_active for cluster in world.clusters.values()) <= 2
    assert {name: cluster.kinds() for name, cluster in world.clusters.items()} == dict.fromkeys("abc", NOT_DELETED)


@pytest.mark.parametrize("policy", ["stop", "halt", "continue"])
def test_a_violation(make: Make, policy: str) -> None:
    world = make(["a", "b", "c", "d"], maxClusters=2, onViolated=policy)
    world.clusters["a"].verdicts = ["violated", "held"]
    world.clusters["b"].stalls = policy == "halt"
    if policy == "halt":  # its pod works on, and sees the halt
        threading.Timer(1.0, lambda: setattr(world.clusters["b"], "stalls", False)).start()
    end = world.run()
    assert world.code(end) is Exit.VIOLATED
    rest = "held" if policy == "continue" else "skipped"
    assert (words(end.state)["c"], words(end.state)["d"]) == (rest, rest)
    assert world.jobs["c"] == (policy == "continue")
    assert words(end.state)["a"] in ("violated", "running")


def test_a_halt_from_elsewhere_and_what_comes_of_it(make: Make) -> None:
    world = make(["a", "b", "c"], maxClusters=2)
    for name in "ab":
        world.clusters[name].is_busy = True
    ended: list[FleetEnd] = []
    thread = threading.Thread(target=lambda: ended.append(world.run()), daemon=True)
    thread.start()
    until(lambda: all(world.clusters[name].day for name in "ab"))
    left = halt_fleet(world.fleet, FleetHalt("ada", "pager", SECONDS), world.display.note)
    assert left == {}
    thread.join(SECONDS)
    assert ended[0].state.status is DayStatus.HALTED
    assert world.code(ended[0]) is Exit.INCONCLUSIVE
    assert {name: cluster.kinds() for name, cluster in world.clusters.items()} == {
        "a": NOT_DELETED,
        "b": NOT_DELETED,
        "c": set(),
    }
    assert world.run("").state.status is DayStatus.HALTED
    assert world.jobs == {"a": 1, "b": 1, "c": 0}
    for name in "ab":
        day = world.clusters[name].day
        assert day is not None
        assert (day.halt and day.halt.reason) == "pager"
    assert resume_fleet(world.fleet, "ada", "a false alarm", world.display.note) == {}
    with pytest.raises(UsageError, match="not halted"):
        resume_fleet(world.fleet, "ada", "again", world.display.note)


def test_a_fleet_is_not_resumed_while_it_is_still_halted(make: Make) -> None:
    """Its process would halt the clusters again, and take those for interrupted."""
    world = make(["a", "b"], maxClusters=2)
    world.clusters["b"].is_busy = True
    thread = threading.Thread(target=world.run, daemon=True)
    thread.start()
    until(lambda: world.clusters["b"].day)
    world.clusters["b"].stalls = True  # its undo takes long
    assert set(halt_fleet(world.fleet, FleetHalt("ada", "pager", 0.1), world.display.note)) >= {"b"}
    with pytest.raises(Refused, match=r"europe\.fleet is being run"):
        resume_fleet(world.fleet, "ada", "a false alarm", world.display.note)
    assert view_fleet(world.fleet).state.halt  # type: ignore[union-attr]
    world.clusters["b"].stalls = False
    thread.join(SECONDS)
    assert resume_fleet(world.fleet, "ada", "a false alarm", world.display.note) == {}


def test_an_end_for_good(make: Make) -> None:
    world = make(["a", "b"])
    world.clusters["a"].is_busy = True
    thread = threading.Thread(target=world.run, daemon=True)
    thread.start()
    until(lambda: world.clusters["a"].day)
    wanted = FleetHalt("ada", "pager", SECONDS, for_good=True)
    assert halt_fleet(world.fleet, wanted, world.display.note) == {}
    thread.join(SECONDS)
    assert world.run("").state.status is DayStatus.FINISHED
    assert world.jobs == {"a": 1, "b": 0}


def test_a_job_that_has_not_begun_is_deleted_by_a_halt(make: Make) -> None:
    world = make(["a"])
    world.clusters["a"].stalls = True
    thread = threading.Thread(target=world.run, daemon=True)
    thread.start()
    until(lambda: world.clusters["a"].job)
    assert halt_fleet(world.fleet, FleetHalt("ada", "pager", SECONDS), world.display.note) == {}
    thread.join(SECONDS)
    assert world.clusters["a"].job is None
    assert world.clusters["a"].day is None


def test_a_halt_reaches_the_others_when_the_home_is_gone(make: Make) -> None:
    world = make(["a", "b"], maxClusters=2, patience="1s")
    world.clusters["b"].is_busy = True
    thread = threading.Thread(target=world.run, daemon=True)
    thread.start()
    until(lambda: world.clusters["b"].day and world.clusters["a"].day and not world.clusters["a"].is_active)
    world.clusters["a"].is_gone = True  # its own day is over: nothing of it begins when it is back
    left = halt_fleet(world.fleet, FleetHalt("ada", "pager", 1.0), world.display.note)
    assert "a refuses the connection" in left["a"]
    assert set(left) - {"b"} == {"a", "home a"}
    day = world.clusters["b"].day
    assert day is not None
    assert day.halt
    world.clusters["a"].is_gone = False
    assert halt_fleet(world.fleet, FleetHalt("ada", "pager", SECONDS), world.display.note) == {}
    thread.join(SECONDS)
    assert not thread.is_alive()


def test_a_cluster_that_goes_away_is_unknown_and_goes_on_later(make: Make) -> None:
    world = make(["a", "b", "c"], maxClusters=2, patience="300ms")
    world.clusters["b"].is_busy = True
    ended: list[FleetEnd] = []
    thread = threading.Thread(target=lambda: ended.append(world.run()), daemon=True)
    thread.start()
    until(lambda: world.clusters["b"].day)
    world.clusters["b"].is_gone = True
    thread.join(SECONDS)
    assert words(ended[0].state) == {"a": "held", "b": "running", "c": "held"}
    assert world.code(ended[0]) is Exit.INCONCLUSIVE
    view = view_fleet(world.fleet)
    assert view.clusters["b"][0].phase == "unknown"
    assert view.state is not None
    page = write_reports(store_records(world.fleet, view.state, view.clusters, world.folder / "reports"))
    assert "unknown: b refuses the connection" in page.with_name("report.json").read_text()
    world.clusters["b"].is_gone = False
    world.clusters["b"].is_busy = False
    assert words(world.run("").state)["b"] == "held"
    assert world.jobs["b"] == 1


def test_a_pod_that_is_refused(make: Make) -> None:
    world = make(["a", "b"])
    world.clusters["a"].refusal = "error: doctor refuses"
    end = world.run()
    assert words(end.state) == {"a": "skipped", "b": "held"}
    assert world.code(end) is Exit.INCONCLUSIVE
    assert "a is skipped: error: doctor refuses" in world.display.text


def test_rights_that_are_missing_are_named_before_anything_begins(make: Make) -> None:
    world = make(["a", "b"])
    world.clusters["b"].denied = ("create", "jobs")
    with pytest.raises(Refused, match=r"b: the credentials of the kubeconfig may not create jobs\.batch"):
        world.run()
    assert [cluster.objects for cluster in world.clusters.values()] == [{}, {}]


def test_all_clusters_are_reached_at_the_same_time() -> None:
    """As a halt of one of them waits for its undo."""
    name = SimpleNamespace(metadata=SimpleNamespace(name="x"))
    clusters = [SimpleNamespace(name=str(number)) for number in range(MAX_CLUSTERS)]
    fleet = SimpleNamespace(document=name, day=SimpleNamespace(hash="", document=name), clusters=clusters)
    barrier = threading.Barrier(MAX_CLUSTERS)
    assert len(control._each(cast("Any", fleet), lambda _: barrier.wait(SECONDS))) == MAX_CLUSTERS


def test_what_a_day_needs_stays_if_it_begins_as_its_job_is_deleted(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    world = make(["a"])
    cluster, member = world.clusters["a"], Member(world.fleet, world.fleet.home)
    cluster.stalls = True
    member.start("d1", lambda: None)
    answer = cluster.request

    def begins(method: str, path: str, *others: Any, **named: Any) -> Any:
        if method == "DELETE" and "/jobs/" in path:
            run = DayRun(RunKey("e0", "", 1), 1, "stop")
            day = DayState("d1", "days", member.plan_hash, 1, 1.0, "by-entry", 1, "pod", 1, (run,))
            cluster.write(day, RunStatus.RUNNING)
        return answer(method, path, *others, **named)

    monkeypatch.setattr(cluster, "request", begins)
    assert "was interrupted" in member.halt("ada", "pager")
    assert "was interrupted" in member.halt("ada", "pager")
    assert cluster.day is not None
    assert cluster.day.halt


def test_no_job_is_created_beside_another_one(make: Make) -> None:
    world = make(["a"])
    member = Member(world.fleet, world.fleet.home)
    world.clusters["a"].stalls = True
    member.start("d1", lambda: None)
    with pytest.raises(Refused, match="is for day d1"):
        member.start("d2", lambda: None)
    assert world.jobs == {"a": 1}


def test_two_coordinators(make: Make) -> None:
    """The second one is refused while the first one lives."""
    world = make(["a"])
    world.clusters["a"].stalls = True
    thread = threading.Thread(target=world.run, daemon=True)
    thread.start()
    until(lambda: world.clusters["a"].job)
    with pytest.raises(Refused, match=r"game day europe\.fleet is being run"):
        world.run()
    world.clusters["a"].stalls = False
    thread.join(SECONDS)
    assert world.jobs == {"a": 1}


def test_another_plan_is_refused_while_the_day_goes_on(make: Make) -> None:
    world = make(["a", "b"])
    world.clusters["a"].stalls = True
    thread = threading.Thread(target=world.run, daemon=True)
    thread.start()
    until(lambda: world.clusters["a"].job)
    halt_fleet(world.fleet, FleetHalt("ada", "", SECONDS), world.display.note)
    thread.join(SECONDS)
    write_fleet(world.folder, ["a", "b"], ["one", "two"])
    with pytest.raises(Refused, match=r"the plan of europe\.fleet has changed"):
        world.run()
    assert pending_undo(world.fleet) == ()
