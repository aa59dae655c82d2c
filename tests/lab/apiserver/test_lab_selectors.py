"""Label and field selectors, valid and invalid."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.lab.http.errors import ApiError
from chaos.lab.http.messages import parse_field_selector, parse_label_selector

POD: dict[str, Any] = {
    "metadata": {"name": "x", "namespace": "n", "labels": {"app": "web", "tier": "", "size": "7", "word": "many"}},
    "spec": {"nodeName": "w1"},
    "status": {"phase": "Running"},
}
EVENT: dict[str, Any] = {
    "metadata": {"name": "e"},
    "involvedObject": {"kind": "Pod", "name": "x", "fieldPath": "spec.containers{c}"},
    "source": {"component": "kubelet"},
}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", True),
        ("app=web", True),
        ("app == web , tier", True),
        ("app!=web", False),
        ("other!=web", True),
        ("tier=", True),
        ("app in (a,web)", True),
        ("app notin (a, web)", False),
        ("other notin (a)", True),
        ("app in (a),app=web", False),
        ("!other,app", True),
        ("! app", False),
        ("size>6", True),
        ("size > 7", False),
        ("size<8", True),
        ("word>1", False),
        ("other==", False),
        ("other<1", False),
    ],
)
def test_labels(text: str, selected: bool) -> None:
    assert all(match(POD) for match in parse_label_selector(text)) == selected


@pytest.mark.parametrize("text", ["a b", "=x", "a=b=c", "a in b", "a in (b", "(a)", "ключ=x", "a>b", "é"])
def test_bad_labels(text: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse_label_selector(text)
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("plural", "obj", "text", "selected"),
    [
        ("pods", POD, "", True),
        ("pods", POD, "spec.nodeName=w1,status.phase!=Succeeded,status.phase!=Failed", True),
        ("pods", POD, "spec.nodeName=", False),
        ("pods", POD, "spec.hostNetwork=false", True),
        ("pods", POD, "metadata.namespace==n", True),
        ("pods", POD, r"metadata.name=x\,y", False),
        ("pods", {**POD, "metadata": {"name": r"a,b=c\d"}}, r"metadata.name=a\,b\=c\\d", True),
        ("nodes", {"metadata": {}, "spec": {}}, "spec.unschedulable=false", True),
        ("nodes", {"metadata": {}, "spec": {"unschedulable": True}}, "spec.unschedulable=true", True),
        ("replicasets", {"metadata": {}, "status": {"replicas": 2}}, "status.replicas=2", True),
        ("jobs", {"metadata": {}}, "status.successful=0", True),
        ("jobs", {"metadata": {}, "status": {"succeeded": 3}}, "status.successful=3", True),
        ("events", EVENT, "involvedObject.fieldPath=spec.containers{c},source=kubelet", True),
        ("events", EVENT, "involvedObject.uid=", True),
    ],
)
def test_fields(plural: str, obj: dict[str, Any], text: str, selected: bool) -> None:
    assert all(match(obj) for match in parse_field_selector(plural, text)) == selected


@pytest.mark.parametrize(
    "text", ["spec.colour=1", "spec.nodeName", "=x", "spec.nodeName=a=b", r"spec.nodeName=a\b", "spec.nodeName=a\\"]
)
def test_bad_fields(text: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse_field_selector("pods", text)
    assert refused.value.code == 400


@given(st.text())
def test_a_name_of_any_text_is_found_when_escaped(name: str) -> None:
    escaped = name.replace("\\", "\\\\").replace(",", r"\,").replace("=", r"\=")
    (match,) = parse_field_selector("pods", f"metadata.name={escaped}")
    assert match({"metadata": {"name": name}})


@given(st.text())
def test_any_text_is_accepted_or_rejected(text: str) -> None:
    with contextlib.suppress(ApiError):
        assert all(test(EVENT) in (True, False) for test in parse_label_selector(text))
    with contextlib.suppress(ApiError):
        assert all(test(EVENT) in (True, False) for test in parse_field_selector("events", text))
