"""Strategic merge patches: lists by their keys, directives, orders. Rules of k8s.io/apimachinery strategicpatch."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.lab.http.errors import ApiError
from chaos.lab.http.patches import strategic_merge
from chaos.lab.http.schemas import patch_meta_of


def template(**spec: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": spec}}}


def named(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [{"name": name, **more} for name in names]


@pytest.mark.parametrize(
    ("old", "patch", "new"),
    [
        ({"a": [1]}, {"a": [2]}, {"a": [2]}),
        ({"containers": named("a", "b", x=1)}, {"containers": [{"name": "b", "x": 2}]}, [("a", 1), ("b", 2)]),
        ({"containers": named("a")}, {"containers": named("b")}, [("b", None), ("a", None)]),
        ({"containers": named("a", x=1)}, {"containers": [{"name": "a", "x": None}]}, [("a", None)]),
        ({"containers": named("a", "b")}, {"containers": [{"name": "a", "$patch": "delete"}]}, [("b", None)]),
        ({"containers": named("a", "b")}, {"containers": [{"$patch": "replace"}, {"name": "c"}]}, [("c", None)]),
        (
            {"containers": named("a", "b", "server")},
            {"$setElementOrder/containers": named("b", "a", "c"), "containers": named("c", x=1)},
            [("b", None), ("a", None), ("c", 1), ("server", None)],
        ),
        (
            {"containers": named("1", "2", "4")},  # the new item is at the position of the deleted one
            {
                "$setElementOrder/containers": named("2", "3"),
                "containers": [{"name": "3"}, {"name": "1", "$patch": "delete"}],
            },
            [("2", None), ("4", None), ("3", None)],
        ),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, {"volumes": None}, {}),
        (
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            {"volumes": [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "m"}}]},
            {"volumes": [{"name": "v", "configMap": {"name": "m"}}]},
        ),
        ({"nodeSelector": {"a": "b"}}, {"nodeSelector": {"$patch": "replace", "c": "d"}}, {"nodeSelector": {"c": "d"}}),
        ({"nodeSelector": {"a": "b"}}, {"nodeSelector": {"$patch": "delete"}}, {"nodeSelector": {}}),
        ({}, {"nodeSelector": {"$patch": "delete"}}, {}),
        ({}, {"nodeSelector": {"a": None, "b": "c"}}, {"nodeSelector": {"b": "c"}}),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, {"tolerations": [{"key": "b"}]}),
    ],
)
def test_pod_templates(old: Any, patch: Any, new: Any) -> None:
    expected = new
    if isinstance(new, list):
        expected = {"containers": [{"name": name} if x is None else {"name": name, "x": x} for name, x in new]}
    shape = patch_meta_of("deployments")
    assert strategic_merge(template(**old), template(**patch), shape) == template(**expected)


@pytest.mark.parametrize(
    ("plural", "old", "patch", "new"),
    [
        (
            "nodes",
            {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
            {"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}},
            {"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}},
        ),
        (
            "nodes",
            {"status": {"conditions": [{"type": "A", "status": "0", "x": 1}, {"type": "B"}]}},
            {"status": {"conditions": [{"type": "A", "status": "1"}]}},
            {"status": {"conditions": [{"type": "A", "status": "1", "x": 1}, {"type": "B"}]}},
        ),
        (
            "services",
            {"spec": {"ports": [{"port": 80, "name": "a"}, {"port": 443}]}},
            {"spec": {"ports": [{"port": 80, "name": "b"}]}},
            {"spec": {"ports": [{"port": 80, "name": "b"}, {"port": 443}]}},
        ),
        ("endpointslices", {"ports": [{"port": 80}]}, {"ports": [{"port": 81}]}, {"ports": [{"port": 81}]}),
        (
            "poddisruptionbudgets",
            {"spec": {"selector": {"matchLabels": {"a": "b"}}}},
            {"spec": {"selector": {"matchLabels": {"c": "d"}}}},
            {"spec": {"selector": {"matchLabels": {"c": "d"}}}},
        ),
        (
            "deployments",
            {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}}},
            {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
            {"spec": {"strategy": {"type": "Recreate"}}},
        ),
        (
            "pods",
            {"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"finalizers": ["c"]}},
            {"metadata": {"finalizers": ["c", "a", "b"]}},
        ),
        (
            "pods",
            {"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "$setElementOrder/finalizers": ["b"]}},
            {"metadata": {"finalizers": ["b"]}},
        ),
    ],
)
def test_kinds(plural: str, old: Any, patch: Any, new: Any) -> None:
    assert strategic_merge(old, patch, patch_meta_of(plural)) == new


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ([], "is an object"),
        ({"$patch": "frob"}, "unknown patch type 'frob'"),
        (template(containers=[{"$patch": "merge", "name": "a"}]), "unknown patch type 'merge'"),
        (template(containers=[{"image": "x"}]), "does not contain declared merge key: name"),
        (template(containers=["a"]), "does not contain declared merge key: name"),
        (template(**{"$retainKeys": ["a"], "b": 1}), r"\$retainKeys lacks b"),
        (template(**{"$retainKeys": "a"}), "is not a list"),
        (template(**{"$setElementOrder/containers": 1}), "is not a list"),
        (
            template(**{"$setElementOrder/containers": named("b"), "containers": named("a")}),
            "order in patch list containers doesn't match",
        ),
    ],
)
def test_bad_patches(patch: Any, message: str) -> None:
    with pytest.raises(ApiError, match=message) as caught:
        strategic_merge(template(containers=named("a")), patch, patch_meta_of("deployments"))
    assert caught.value.code == 400


_NAMES = st.lists(st.sampled_from("abcdef"), unique=True)


@given(_NAMES, _NAMES)
def test_patches_of_kubectl_apply_give_the_wanted_list(old: list[str], new: list[str]) -> None:
    """Deletions, additions and an order, as the client computes them from two manifests."""
    gone = [{"name": name, "$patch": "delete"} for name in old if name not in new]
    added = [{"name": name} for name in new if name not in old]
    patch = {"$setElementOrder/containers": named(*new), "containers": [*added, *gone]}
    before, sent = template(containers=named(*old)), template(**patch)
    again = copy.deepcopy((before, sent))
    assert strategic_merge(before, sent, patch_meta_of("deployments")) == template(containers=named(*new))
    assert (before, sent) == again
