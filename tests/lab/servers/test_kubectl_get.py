"""kubectl get, the real binary, against a lab whose time runs by itself."""

from __future__ import annotations

import pytest
from kubectl_lab import Kubectl

pytestmark = pytest.mark.lab


def test_names(kubectl: Kubectl) -> None:
    assert kubectl("get", "nodes", "-o", "name").split() == ["node/cp", "node/w1", "node/w2"]


def test_one_object_as_json(kubectl: Kubectl) -> None:
    pdb = kubectl.json("get", "poddisruptionbudget", "web")
    assert (pdb["kind"], pdb["spec"]["minAvailable"]) == ("PodDisruptionBudget", 2)
