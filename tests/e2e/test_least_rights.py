"""An experiment runs with exactly the permissions that rbac prints; without one, it is refused and reports which."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.experiment_runs import rights
from tests.kit.processes import EXPERIMENTS, LAB, nodefall

pytestmark = pytest.mark.lab


def inventory(directory: Path, some: list[dict[str, Any]]) -> Path:
    document = yaml.safe_load(LAB.read_text())
    document["lab"]["rights"] = some
    path = directory / "lab.json"
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    return path


def test_exactly_enough_and_one_less(tmp_path: Path) -> None:
    name = "lock-after-cancel"
    required = rights(name)
    done = nodefall("run", EXPERIMENTS / f"{name}.yaml", "-i", inventory(tmp_path, required), cwd=tmp_path)
    assert done.returncode == 0, done.stderr  # violated, as known: kubelets lose their lock
    assert "no Event on" not in done.stderr
    (recording,) = tmp_path.glob("reports/*/*/recording.jsonl.gz")
    lines = [json.loads(line) for line in gzip.decompress(recording.read_bytes()).splitlines()]
    reasons = [line["object"].get("reason") for line in lines if line["kind"] == "events" and line["type"] != "LIST"]
    assert (reasons.count("NodefallInjected"), reasons.count("NodefallUndone")) == (2, 2)
    for missing in random.Random(7).sample(required, 3):  # noqa: S311 - the same every time
        reduced = inventory(tmp_path, [right for right in required if right is not missing])
        refused = nodefall("run", EXPERIMENTS / f"{name}.yaml", "-i", reduced, cwd=tmp_path)
        assert refused.returncode == 4, (missing, refused.stderr)
        verb, resource = missing["verbs"][0], missing["resources"][0]
        expected = (
            f"{verb} {resource}",
            f'cannot {verb} resource "{resource}"',
        )  # reported by nodefall, or by the API server
        assert any(text in refused.stderr for text in expected), (missing, refused.stderr)


def test_what_rbac_prints_and_refuses(tmp_path: Path) -> None:
    experiment = EXPERIMENTS / "lock-after-cancel.yaml"
    done = nodefall("rbac", experiment, "--subject", "serviceaccount:chaos/nodefall", cwd=tmp_path)
    documents = list(yaml.safe_load_all(done.stdout))
    assert [d["kind"] for d in documents] == ["ClusterRole", "ClusterRoleBinding", *["Role", "RoleBinding"] * 3]
    assert documents[1]["subjects"] == [{"kind": "ServiceAccount", "namespace": "chaos", "name": "nodefall"}]
    _, _, optional = done.stdout.partition('Remove the "# " to grant it:\n')
    role, binding = yaml.safe_load_all("".join(line.removeprefix("# ") for line in optional.splitlines(keepends=True)))
    assert (role["kind"], role["metadata"], binding["kind"]) == (
        "ClusterRole",
        {"name": "nodefall-doctor"},
        "ClusterRoleBinding",
    )
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"list"}
    assert {resource for rule in role["rules"] for resource in rule["resources"]} == {
        *("validatingwebhookconfigurations", "mutatingwebhookconfigurations"),
        *("machinehealthchecks", "machines", "nodehealthchecks"),
    }
    for subject in ("nodefall", "user:", "serviceaccount:nodefall", "robot:x"):
        refused = nodefall("rbac", experiment, "--subject", subject, cwd=tmp_path)
        assert refused.returncode == 64
        assert f"--subject '{subject}'" in refused.stderr
