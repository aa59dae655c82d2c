"""What the API server answers in labs of several versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.lab.conftest import Client

Make = Callable[..., Client]
_STREAMING = "/api/v1/nodes?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"


@pytest.mark.parametrize(
    ("version", "git_version", "has_watch_list"),
    [
        ("v1.31", "v1.31.0", False),
        ("v1.32.4", "v1.32.4", True),
        ("v1.33.0", "v1.33.0", False),
        ("v1.34", "v1.34.0", True),
    ],
)
def test_version_and_streaming_lists(make_lab: Make, version: str, git_version: str, has_watch_list: bool) -> None:
    lab = make_lab("--pace", "200", kubernetes=version)
    status, answer = lab.api("GET", "/version")
    assert (status, answer["gitVersion"], answer["major"]) == (200, git_version, "1")
    assert f"v1.{answer['minor']}" == ".".join(version.split(".")[:2])
    _, node = lab.api("GET", "/api/v1/nodes/w1")
    assert node["status"]["nodeInfo"]["kubeletVersion"] == git_version
    if has_watch_list:
        assert [event["type"] for event in lab.watch(_STREAMING, 3)] == ["ADDED"] * 3
    else:
        refused: dict[str, Any]
        status, refused = lab.api("GET", _STREAMING)
        text = (
            "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate"
        )
        assert (status, text in refused["message"]) == (422, True)
