"""All clusters of a fleet are checked before anything begins."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.app.fleet import coordinator as checks
from chaos.app.fleet.coordinator import check_members
from chaos.cluster.errors import KubeUnreachable
from chaos.core.errors import NodefallError, Refused, bad_input

GONE = KubeUnreachable("refused", "connection refused")


def fleet_of(names: list[str]) -> Any:
    clusters = [SimpleNamespace(name=name) for name in names]
    document = SimpleNamespace(metadata=SimpleNamespace(name="europe"))
    return cast("Any", SimpleNamespace(clusters=clusters, home=clusters[0], document=document))


def check(patch: pytest.MonkeyPatch, answers: Mapping[str, str | NodefallError]) -> tuple[dict[str, str], list[str]]:
    """The servers, and the notes. ``answers``: identity or error by the name of the cluster."""
    leases: dict[str, str] = {}

    class Member:
        def __init__(self, _: Any, cluster: Any) -> None:
            self.name = cluster.name
            self.connection = SimpleNamespace(kube=SimpleNamespace(server=f"https://{cluster.name}"))

        def check(self, lease: str) -> str:
            leases[self.name] = lease
            answer = answers[self.name]
            if isinstance(answer, NodefallError):
                raise answer
            return answer

        def close(self) -> None: ...

    patch.setattr(checks, "Member", Member)
    notes: list[str] = []
    servers = check_members(fleet_of(list(answers)), notes.append)
    assert {name: bool(lease) for name, lease in leases.items()} == {name: name == "a" for name in answers}
    return servers, notes


def test_every_cluster_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    servers, notes = check(monkeypatch, {"a": "1", "b": "2"})
    assert (servers, notes) == ({"a": "https://a", "b": "https://b"}, [])


def test_a_cluster_that_cannot_be_reached_now_may_be_later(monkeypatch: pytest.MonkeyPatch) -> None:
    servers, notes = check(monkeypatch, {"a": "1", "b": GONE})
    assert servers == {"a": "https://a"}
    assert notes == ["b cannot be reached: connection refused"]


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"a": GONE, "b": "2"}, "a: connection refused"),
        ({"a": "1", "b": Refused("wrong cluster: expected UID 1")}, "b: wrong cluster"),
        ({"a": "1", "b": Refused("may not create jobs"), "c": Refused("may not list pods")}, "c: may not list pods"),
        ({"a": "1", "b": bad_input("config", "there is no such kubeconfig")}, "b: config: there is no such kubeconfig"),
    ],
)
def test_what_waiting_cannot_mend_is_refused(
    answers: Mapping[str, str | NodefallError], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Refused) as caught:
        check(monkeypatch, answers)
    assert message in caught.value.message


def test_a_cluster_that_is_listed_twice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refused, match="c: it is the same cluster as a"):
        check(monkeypatch, {"a": "1", "b": "2", "c": "1"})
