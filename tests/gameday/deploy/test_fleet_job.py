"""What a fleet applies: valid objects, apart from those of a CronJob, and one Job for each day and plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.gameday.deploy.deployment import Deployment
from chaos.gameday.deploy.manifests import cron_job, fleet_job, fleet_job_name, manifests, shared_manifests
from chaos.gameday.fleet_document import MAX_FLEET_NAME
from tests.kit.deployments import by_identity, faults, make

PLAN = "a" * 64


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    made, _ = make(tmp_path_factory.mktemp("day"))
    return replace(made, fleet="europe")


def test_all_objects_fit_the_schemas_of_kubernetes(deployment: Deployment) -> None:
    objects = [*shared_manifests(deployment), fleet_job(deployment, "d1", PLAN)]
    assert [fault for each in objects for fault in faults(each)] == []
    assert {each["metadata"]["labels"]["nodefall.dev/fleet"] for each in objects if each["kind"] != "Namespace"} == {
        "europe"
    }


def test_nothing_is_shared_with_a_cron_job(deployment: Deployment) -> None:
    """Neither can delete what the other needs, whatever their names are."""
    other = replace(deployment, fleet="", day=f"fleet-{deployment.day}")
    shared = by_identity(shared_manifests(deployment)).keys() & by_identity(manifests(other)).keys()
    assert {kind for kind, _, _ in shared} == {"Namespace"}


def test_the_pod_is_that_of_the_cron_job(deployment: Deployment) -> None:
    """As careful, and with the same rights; it begins at once, on this very day."""
    job = fleet_job(deployment, "d1", PLAN)["spec"]
    cron = cron_job(deployment)["spec"]["jobTemplate"]["spec"]
    own, other = job["template"]["spec"]["containers"][0], cron["template"]["spec"]["containers"][0]
    assert own["args"][-4:] == ["--id", "d1", "--yes", "--plain"]
    assert "--scheduled" not in own["args"]
    assert own.pop("terminationMessagePolicy") == "FallbackToLogsOnError"
    own["args"] = other["args"]
    assert job == cron


def test_the_name_of_a_job_is_that_of_its_day_and_plan(deployment: Deployment) -> None:
    name = fleet_job_name(deployment, "d1", PLAN)
    assert name == fleet_job_name(deployment, "d1", PLAN) == fleet_job(deployment, "d1", PLAN)["metadata"]["name"]
    assert len({name, fleet_job_name(deployment, "d2", PLAN), fleet_job_name(deployment, "d1", "b" * 64)}) == 3
    assert len(fleet_job_name(replace(deployment, fleet="f" * MAX_FLEET_NAME), "d1", PLAN)) <= 63
