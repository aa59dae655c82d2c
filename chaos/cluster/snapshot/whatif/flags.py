"""Flags of kube-controller-manager, under their names in camel case: ``nodeMonitorGracePeriod=20s``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from chaos.cluster.snapshot.contents import Contents
from chaos.cluster.snapshot.whatif.change import Apply, ChangeError, ChangeKind, seconds_of


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e6:
        raise ChangeError(f"not a number: {text!r}", "write a number from 0")
    return number


def _count(text: str) -> int:
    if _number(text) != int(_number(text)):
        raise ChangeError(f"not a whole number: {text!r}", "write a whole number from 0")
    return int(_number(text))


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ChangeError(f"neither true nor false: {text!r}", "write true or false")
    return text == "true"


def _period(text: str) -> str:
    seconds = seconds_of(text)
    if not seconds:
        raise ChangeError("the period is 0", "write a duration such as 20s")
    return f"{seconds:g}s"


def _parse(name: str, convert: Callable[[str], Any], text: str) -> Apply:
    value = convert(text)

    def apply(contents: Contents) -> str:
        contents.header["controllerManager"] = {**(contents.header.get("controllerManager") or {}), name: value}
        return f"kube-controller-manager has {name} {text}"

    return apply


def _kind(name: str, syntax: str, summary: str, convert: Callable[[str], Any]) -> ChangeKind:
    return ChangeKind(name, syntax, summary, partial(_parse, name, convert))


KINDS = (
    _kind("nodeMonitorGracePeriod", "DURATION", "silence after which a node is Unknown", _period),
    _kind("nodeEvictionRate", "NUMBER", "nodes per second that are tainted in a zone that is healthy", _number),
    _kind("secondaryNodeEvictionRate", "NUMBER", "the same, in a zone in which many nodes are lost", _number),
    _kind("unhealthyZoneThreshold", "NUMBER", "share of lost nodes from which a zone is that", _number),
    _kind("largeClusterSizeThreshold", "N", "nodes up to which such a zone is not evicted at all", _count),
    _kind("disableForceDetachOnTimeout", "true|false", "volumes stay attached to a lost node", _boolean),
)
