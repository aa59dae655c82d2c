"""With exactly the rights that rbac prints an experiment runs; with one less it is refused, and told which."""

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
    enough = rights(name)
    done = nodefall("run", EXPERIMENTS / f"{name}.yaml", "-i", inventory(tmp_path, enough), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "no Event on" not in done.stderr
    (recording,) = tmp_path.glob("reports/*/*/recording.jsonl.gz")
    lines = [json.loads(line) for line in gzip.decompress(recording.read_bytes()).splitlines()]
    reasons = [line["object"].get("reason") for line in lines if line["kind"] == "events" and line["type"] != "LIST"]
    assert (reasons.count("NodefallInjected"), reasons.count("NodefallUndone")) == (2, 2)
    for lacking in random.Random(7).sample(enough, 3):  # noqa: S311 - the same every time
        less = inventory(tmp_path, [right for right in enough if right is not lacking])
        refused = nodefall("run", EXPERIMENTS / f"{name}.yaml", "-i", less, cwd=tmp_path)
        assert refused.returncode == 4, (lacking, refused.stderr)
        verb, resource = lacking["verbs"][0], lacking["resources"][0]
        said = (f"{verb} {resource}", f'cannot {verb} resource "{resource}"')  # by us, or by the API server
        assert any(words in refused.stderr for words in said), (lacking, refused.stderr)


def test_what_rbac_prints_and_refuses(tmp_path: Path) -> None:
    experiment = EXPERIMENTS / "lock-after-cancel.yaml"
    told = nodefall("rbac", experiment, "--subject", "serviceaccount:chaos/nodefall", cwd=tmp_path)
    documents = list(yaml.safe_load_all(told.stdout))
    assert [d["kind"] for d in documents] == ["ClusterRole", "ClusterRoleBinding", *["Role", "RoleBinding"] * 3]
    assert documents[1]["subjects"] == [{"kind": "ServiceAccount", "namespace": "chaos", "name": "nodefall"}]
    _, _, optional = told.stdout.partition('Take the "# " away to grant it:\n')
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
