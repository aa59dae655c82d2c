"""Decoding of recording entries by kind; an entry that cannot be decoded is never fatal."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.decode import decode
from chaos.core.kube import RESOURCES, Node, Pod
from chaos.core.recording import ActionRecord, BlindWindow, ProbeResult, QueryResult, RecordingEntry, Series
from chaos.core.timeline import Entry, Timeline


def decode_entry(kind: str, obj: Any, type_: str = "ADDED", node: str = "", note: str = "") -> Entry | None:
    raw = msgspec.Raw(obj if isinstance(obj, bytes) else msgspec.json.encode(obj))
    return decode(RecordingEntry(5.0, kind, type_, raw, node or msgspec.UNSET, note or msgspec.UNSET), 7)


def entry(kind: str, obj: Any, type_: str = "ADDED", node: str = "", note: str = "") -> Entry:
    found = decode_entry(kind, obj, type_, node, note)
    assert found is not None
    return found


def test_objects() -> None:
    found = entry("pods", {"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": None}, "status": {}})
    assert (found.seq, found.t, found.kind, found.type) == (7, 5.0, "pods", "ADDED")
    assert isinstance(found.object, Pod)
    assert isinstance(entry("nodes", {"metadata": {"name": "n"}}).object, Node)
    assert entry("pods", {"metadata": {"uid": "u"}}, "DELETED", note="missing at relist").note == "missing at relist"


@pytest.mark.parametrize("kind", [*RESOURCES, "priorityclasses"])
def test_bookmarks_are_skipped(kind: str) -> None:
    assert decode_entry(kind, {"metadata": {"resourceVersion": "1"}, "spec": {"containers": None}}, "BOOKMARK") is None


@pytest.mark.parametrize("kind", ["priorityclasses", "verdict", "new"])
def test_kinds_without_a_decoder(kind: str) -> None:
    assert decode_entry(kind, {"metadata": {"name": "x"}}) is None


def test_the_other_kinds() -> None:
    assert entry("metrics", ["a_total 3", 'b{l="x y"} 1.5e+09'], "200", "n").object == {
        "a_total": 3,
        'b{l="x y"}': 1.5e9,
    }
    assert entry("host", [1, {"a": None}], "configz", "n").object == [1, {"a": None}]
    probe = {"ok": False, "status": None, "error": "connection refused", "seconds": 0.1}
    assert entry("probe", probe, "shop").object == ProbeResult(False, None, "connection refused", 0.1)
    result = entry(
        "prometheus", {"query": "up", "series": [{"labels": {"a": "b"}, "values": [[1, 2.5], [2, None]]}]}, "q"
    )
    assert result.object == QueryResult("up", [Series({"a": "b"}, [(1.0, 2.5), (2.0, None)])])
    action = entry("action", {"step": "s", "phase": "begin", "params": {"x": 1}}, "poweroff", "n").object
    assert action == ActionRecord("s", "begin", {"x": 1})
    blind = entry("blind", {"from": 1, "to": None, "reason": "cut"}, "pods").object
    assert blind == BlindWindow(1, None, "cut", "pods")
    assert entry("meta", {"format": 1}, "recording").object == {"format": 1}


@pytest.mark.parametrize(
    ("kind", "obj", "decoded_kind"),
    [
        ("pods", {"metadata": {"name": "p", "uid": "u"}, "status": {"phase": 3}}, "pods"),
        ("nodes", {"metadata": {"name": "n"}, "spec": []}, "nodes"),
        ("pods", {"metadata": 1}, "blind"),
        ("pods", [], "blind"),
        ("metrics", ["no value"], "blind"),
        ("metrics", {"a": 1}, "blind"),
        ("action", {"phase": 1}, "blind"),
        ("probe", {"ok": "yes"}, "blind"),
        ("prometheus", {"query": "up"}, "blind"),
        ("blind", {"from": "noon"}, "blind"),
        ("meta", [], "blind"),
    ],
)
def test_an_undecodable_entry_has_a_note(kind: str, obj: Any, decoded_kind: str) -> None:
    found = entry(kind, obj, "x", "n1" if kind == "metrics" else "")
    assert found.kind == decoded_kind
    assert found.note.startswith("undecodable: ")
    timeline = Timeline()
    timeline.add(found)
    if decoded_kind == "blind":
        assert timeline.blind_windows[0].source == {"metrics": "metrics@n1", "probe": "probe@x", "blind": "x"}.get(
            kind, kind
        )
    else:
        histories: dict[str, Any] = {"pods": timeline.pods, "nodes": timeline.nodes}
        assert next(iter(histories[kind].values())).last.final_state_unknown


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["metadata", "status", "spec", "name", "uid", "phase", "from", "to"]), inner)
    ),
    max_leaves=8,
)


@given(st.sampled_from([*RESOURCES, "metrics", "host", "action", "blind", "meta", "probe"]), JSON)
def test_nothing_is_fatal(kind: str, obj: Any) -> None:
    found = decode_entry(kind, obj, "200")
    if found is not None:
        Timeline().add(found)


def test_an_error_of_a_watch_is_skipped() -> None:
    assert decode_entry("pods", {"kind": "Status", "code": 410, "metadata": {}}, "ERROR") is None


@pytest.mark.parametrize("plural", sorted(RESOURCES))
def test_every_resource_has_a_history(plural: str) -> None:
    timeline = Timeline()
    for type_ in ("LIST", "MODIFIED", "DELETED"):
        timeline.add(entry(plural, {"metadata": {"name": "x", "namespace": "ns", "uid": "u"}}, type_))
    if plural == "events":
        assert len(timeline.events) == 3
        return
    histories: Any = getattr(timeline, plural, None) or timeline.workloads
    ((key, history),) = histories.items()
    assert key in ("x", "u", ("ns", "x"), (plural, "ns", "x"))
    assert [version.is_deleted for version in history] == [False, False, True]


def test_budgets_endpoints_and_volumes_as_the_api_sends_them() -> None:
    budget = entry(
        "poddisruptionbudgets",
        {
            "metadata": {"name": "web", "namespace": "demo"},
            "spec": {"minAvailable": "50%", "selector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}},
            "status": {"disruptionsAllowed": 0, "currentHealthy": 5, "disruptedPods": {"p": "2026-11-21T03:35:23Z"}},
        },
    ).object
    assert (budget.spec.min_available, budget.spec.selector.match_expressions[0].key) == ("50%", "a")
    assert (budget.status.disruptions_allowed, list(budget.status.disrupted_pods)) == (0, ["p"])
    attachment = entry(
        "volumeattachments",
        {
            "metadata": {"name": "csi-1"},
            "spec": {"attacher": "csi.x", "nodeName": "n", "source": {"persistentVolumeName": "pv-1"}},
            "status": {"attached": True, "detachError": {"time": "2026-11-21T03:35:23Z", "message": "gone"}},
        },
    ).object
    assert (attachment.spec.node_name, attachment.spec.source.persistent_volume_name) == ("n", "pv-1")
    assert (attachment.status.attached, attachment.status.detach_error.message) == (True, "gone")
    claim = {"metadata": {"name": "data-db-0", "namespace": "d"}, "spec": {"volumeName": "pv-1"}}
    assert entry("persistentvolumeclaims", claim).object.spec.volume_name == "pv-1"
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}
    pod = entry("pods", {"metadata": {"uid": "u"}, "spec": {"volumes": [volume, {"name": "tmp", "emptyDir": {}}]}})
    assert [v.persistent_volume_claim and v.persistent_volume_claim.claim_name for v in pod.object.spec.volumes] == [
        "data-db-0",
        None,
    ]
    job = entry("jobs", {"metadata": {"name": "j"}, "spec": {"completions": 1}, "status": {"failed": 2}}).object
    assert (job.spec.completions, job.status.failed) == (1, 2)
