"""From where a kubelet's configuration is read before a run."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from chaos.core.errors import Unreachable
from chaos.core.kube import Node
from chaos.core.ports import Response
from chaos.engine.inspection import read_configz
from tests.kit.fakes import FakeKube

CONFIG = {"shutdownGracePeriod": "30s"}
GOOD = Response(200, json.dumps({"kubeletconfig": CONFIG}).encode(), {})
PROXY = "/api/v1/nodes/n1/proxy/configz"
LISTENS: dict[str, Any] = {
    "addresses": [{"type": "InternalIP", "address": "172.18.0.3"}, {"type": "InternalIP", "address": "fc00::3"}],
    "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
}


class Kube(FakeKube):
    """``direct``: what the kubelet's own port answers, None for nothing."""

    def __init__(self, direct: Response | None, answers: dict[str, Response]) -> None:
        super().__init__(answers)
        self._direct = direct

    def kubelet(self, address: str, port: int, path: str) -> Response:
        assert (address, port, path) == ("172.18.0.3", 10250, "/configz")
        if self._direct is None:
            raise Unreachable("no route to it")
        return self._direct


@pytest.mark.parametrize(
    ("status", "direct", "proxied", "proxy", "config", "sent"),
    [
        (LISTENS, GOOD, GOOD, True, CONFIG, []),
        (LISTENS, None, GOOD, True, CONFIG, [("GET", PROXY)]),
        (LISTENS, Response(403, b"", {}), GOOD, True, CONFIG, [("GET", PROXY)]),
        (LISTENS, Response(200, b"<html>", {}), GOOD, True, CONFIG, [("GET", PROXY)]),
        ({}, GOOD, GOOD, True, CONFIG, [("GET", PROXY)]),
        (LISTENS, None, Response(403, b"", {}), True, {}, [("GET", PROXY)]),
        (LISTENS, None, GOOD, False, {}, []),
        ({}, GOOD, GOOD, False, {}, []),
    ],
)
def test_its_own_port_first(
    status: dict[str, Any],
    direct: Response | None,
    proxied: Response,
    proxy: bool,
    config: dict[str, str],
    sent: list[tuple[str, str]],
) -> None:
    node = msgspec.convert({"metadata": {"name": "n1", "uid": "u"}, "spec": {}, "status": status}, Node)
    kube = Kube(direct, {PROXY: proxied})
    assert read_configz(node, kube, proxy) == config
    assert kube.sent == sent
