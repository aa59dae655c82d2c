"""Files of a pod: at the paths that the documents name, in as few mounts as possible, none over another."""

from __future__ import annotations

import posixpath
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.errors import UsageError
from chaos.gameday.deploy.deployment import DayFile, Deployment, SecretFile
from chaos.gameday.deploy.pod import config_data, config_keys, file_volumes
from tests.kit.deployments import make

NAMES = st.from_regex(r"[a-z_.][a-z_. ]{0,3}", fullmatch=True).filter(lambda name: name.strip(".") != "")
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(lambda parts: "/etc/nodefall/" + "/".join(parts))


def deployment(files: list[str], secrets: list[str] | None = None) -> Deployment:
    return Deployment(
        day="days",
        namespace="nodefall",
        image="nodefall",
        gameday="/etc/nodefall/day.yaml",
        inventory="/etc/nodefall/staging.yaml",
        files=tuple(DayFile(path, f"text of {path}") for path in files),
        permissions=(),
        secret="keys",
        secret_files=tuple(SecretFile(path, posixpath.basename(path)) for path in secrets or []),
    )


def shown(wanted: Deployment) -> dict[str, str]:
    """What the container has: the source of each file, by its path."""
    volumes, mounts = file_volumes(wanted)
    roots = {mount["name"]: mount["mountPath"] for mount in mounts}
    assert all(mount["readOnly"] for mount in mounts)
    found = {}
    for volume in volumes:
        for source in volume["projected"]["sources"]:
            ((kind, body),) = source.items()
            for item in body["items"]:
                found[posixpath.join(roots[volume["name"]], item["path"])] = f"{kind} {item['key']}"
    return found


@given(st.lists(PATHS, min_size=1, max_size=6, unique=True))
def test_each_file_has_a_key_of_its_own(paths: list[str]) -> None:
    keys = config_keys([DayFile(path, "") for path in paths])
    assert sorted(keys) == sorted(paths)
    assert len(set(keys.values())) == len(paths)
    data = config_data(deployment(paths))
    assert {data[keys[path]] for path in paths} == {f"text of {path}" for path in paths}
    assert set(shown(deployment(paths))) == set(paths)


def test_mounts_are_not_nested() -> None:
    wanted = deployment(
        ["/etc/nodefall/a/day.yaml", "/home/nodefall/.kube/config"],
        ["/home/nodefall/.kube/pki/ca.pem", "/etc/nodefall/a/keys/id", "/home/nodefall/.ssh/chaos"],
    )
    _, mounts = file_volumes(wanted)
    assert [mount["mountPath"] for mount in mounts] == ["/etc/nodefall", "/home/nodefall/.kube", "/home/nodefall/.ssh"]
    assert shown(wanted)["/home/nodefall/.kube/pki/ca.pem"] == "secret ca.pem"
    assert shown(wanted)["/etc/nodefall/a/keys/id"] == "secret id"


@pytest.mark.parametrize(
    "path",
    [
        "/etc/key",
        "/key",
        "/tmp/key",
        "/reports/key",
        "/usr/lib/x/key",
        "/home/nodefall/key",
        "/var/run/key",
        "/app/key",
    ],
)
def test_a_folder_that_is_taken_is_refused(path: str) -> None:
    with pytest.raises(UsageError, match="names a file in"):
        file_volumes(deployment(["/etc/nodefall/day.yaml"], [path]))


def test_what_does_not_fit_into_a_config_map_is_refused(tmp_path: Path) -> None:
    found, _ = make(tmp_path)
    assert len(config_data(found)) == 4
    big = Deployment(
        **{**{name: getattr(found, name) for name in found.__slots__}, "files": (DayFile("/x", "é" * 500_001),)}
    )
    with pytest.raises(UsageError, match=r"1,000,003 bytes: a ConfigMap takes"):
        config_data(big)
