"""Validation of metadata, with Kubernetes' messages."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.lab.apiserver.admission import InvalidError
from chaos.lab.apiserver.admission_metadata import check_new, check_update
from chaos.lab.cluster import Cluster
from chaos.lab.spec import LabSpec, NodeSpec

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}


@pytest.mark.parametrize(
    ("plural", "name", "why"),
    [
        ("pods", "Upper", [SUBDOMAIN]),
        ("configmaps", "a_b", [SUBDOMAIN]),
        ("configmaps", "a..b", [SUBDOMAIN]),
        ("nodes", "x" * 254, ["must be no more than 253 bytes"]),
        ("namespaces", "a.b", ["must not contain dots"]),
        ("namespaces", "x" * 64, ["must be no more than 63 bytes"]),
        ("services", "1web", [LABEL_1035]),
        ("pods", "web\n", [SUBDOMAIN]),
    ],
)
def test_invalid_names(plural: str, name: str, why: list[str]) -> None:
    shown = name.replace("\n", "\\n")
    assert check_new(plural, {"name": name}) == [f'metadata.name: Invalid value: "{shown}": {text}' for text in why]


@pytest.mark.parametrize(
    ("plural", "name"),
    [
        ("pods", "web-0.x"),
        ("namespaces", "kube-system"),
        ("services", "a1"),
        ("events", "w1.17B3"),
        ("nodes", "ip-1.x"),
    ],
)
def test_valid_names(plural: str, name: str) -> None:
    assert check_new(plural, {"name": name}) == []


@pytest.mark.parametrize(("base", "fine"), [("web-", True), ("w-", True), ("Web-", False), ("-web-", False)])
def test_generate_name(base: str, fine: bool) -> None:
    fields = [problem.partition(":")[0] for problem in check_new("pods", {"generateName": base, "name": base + "x"})]
    assert fields == ([] if fine else ["metadata.generateName", "metadata.name"])


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({"labels": {"a": "b c"}}, 'labels: Invalid value: "b c": a valid label must be an empty string or consist of'),
        ({"labels": {"": "x"}}, 'labels: Invalid value: "": name part must be non-empty'),
        ({"labels": {"a!": ""}}, f'labels: Invalid value: "a!": {NAME_PART}'),
        ({"labels": {"/a": ""}}, 'labels: Invalid value: "/a": prefix part must be non-empty'),
        ({"labels": {"X.io/a": ""}}, f'labels: Invalid value: "X.io/a": prefix part {SUBDOMAIN}'),
        ({"labels": {"a/b/c": ""}}, 'labels: Invalid value: "a/b/c": a valid label key must consist of'),
        ({"labels": {"a": "x" * 64}}, f'labels: Invalid value: "{"x" * 64}": must be no more than 63 bytes'),
        ({"annotations": {"a b": ""}}, 'annotations: Invalid value: "a b": name part'),
        ({"annotations": {"a": "x" * 262144}}, "annotations: Too long: must have at most 262144 bytes"),
        ({"finalizers": ["a b"]}, 'finalizers: Invalid value: "a b": name part'),
        (
            {"finalizers": ["orphan", "foregroundDeletion"]},
            'finalizers: Invalid value: ["orphan", "foregroundDeletion"]',
        ),
        ({"ownerReferences": [{**OWNER, "uid": ""}]}, 'ownerReferences.uid: Invalid value: "": must not be empty'),
        ({"ownerReferences": [{**OWNER, "kind": "Event"}]}, "ownerReferences: Invalid value: "),
        ({"ownerReferences": [{**OWNER, "controller": True}] * 2}, "ownerReferences: Invalid value: "),
    ],
)
def test_other_metadata(metadata: Any, problem: str) -> None:
    assert check_new("pods", {"name": "x", **metadata})[0].startswith("metadata." + problem)
    assert check_update({"name": "x", **metadata}, {"name": "x"})[0].startswith("metadata." + problem)
    assert check_update({"name": "x", **metadata}, {"name": "x", **metadata}) == [], "what was there is not judged"


def test_annotations_may_be_in_upper_case() -> None:
    assert check_new("pods", {"name": "x", "annotations": {"Example.com/A": "any thing"}, "labels": {"a": ""}}) == []


def test_no_new_finalizer_on_a_deleted_object() -> None:
    before = {"deletionTimestamp": "x", "finalizers": ["a/b"]}
    (problem,) = check_update({"finalizers": ["a/b", "c/d"]}, before)
    assert problem.endswith('being deleted, found new finalizers []string{"c/d"}')
    assert check_update({"finalizers": []}, before) == []


def test_all_problems_are_reported() -> None:
    cluster = Cluster(LabSpec(nodes=[NodeSpec(name="w1")]))
    cluster.start()
    with pytest.raises(InvalidError) as caught:
        cluster.create_object("configmaps", {"metadata": {"name": "A", "labels": {"a b": "c d"}}})
    assert [problem.partition(":")[0] for problem in caught.value.args] == ["metadata.name", *["metadata.labels"] * 2]
