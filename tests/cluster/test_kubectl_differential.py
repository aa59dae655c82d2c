"""Where kubectl works with a kubeconfig, nodefall does as the same identity; where kubectl refuses, it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.kubeconfigs import SECRET, Generator, by_kubectl, by_nodefall
from tests.kit.recording_server import Recorder, recording


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Recorder, Path]]:
    folder = tmp_path_factory.mktemp("differential")
    with recording(folder) as recorder:
        yield recorder, folder


def compare(seed: int, recorder: Recorder, folder: Path) -> bool:
    """Whether kubectl connects with the kubeconfig of this seed."""
    case = Generator(seed, recorder, folder).case()
    text, log = case.write(folder), folder / "plugin.log"
    expected, found = (run(text, case, recorder, log) for run in (by_kubectl, by_nodefall))
    report = f"seed {seed}: {case}\nkubectl: {expected}\nnodefall: {found}"
    assert bool(expected.error) == bool(found.error), report
    assert SECRET not in found.error, report
    assert found == expected, report
    return not expected.error


def test_kubeconfigs_of_every_kind(server: tuple[Recorder, Path]) -> None:
    worked = [compare(seed, *server) for seed in range(40)]
    assert 10 < sum(worked) < 35


@pytest.mark.slow
def test_three_hundred_kubeconfigs(server: tuple[Recorder, Path]) -> None:
    assert 100 < sum(compare(seed, *server) for seed in range(1000, 1300)) < 250
