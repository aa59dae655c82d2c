"""Runs beside runs, predictions, series and their own first lists; what cannot be compared is refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from chaos.app.run.results import JudgedRun
from chaos.core.errors import BadInput, Exit
from chaos.core.store import run_directory
from chaos.core.store.recording import build_timeline, read_recording
from chaos.lab.cluster import Cluster
from chaos.rehearsal import comparisons
from chaos.rehearsal.comparisons import CompareOptions, compare_all
from chaos.rehearsal.run import RehearsalOptions, rehearse_once
from chaos.reports.comparison.comparison import Comparison
from chaos.reports.comparison.document import comparison_document
from chaos.reports.comparison.formats import comparison_markdown, comparison_page, comparison_text
from chaos.reports.comparison.phrases import headline
from chaos.reports.comparison.side import NotComparableError, check_comparable, expected_of_sides, side_of
from chaos.verdicts.outcome.acceptance import Standing
from chaos.verdicts.outcome.prediction import Prediction, dump_prediction
from tests.kit.lab_copies import save
from tests.kit.processes import EXPERIMENTS, ROOT
from tests.kit.rehearsals import loaded, rehearse, settings_of, spec_of

RECORDINGS = ROOT / "tests" / "recordings"
NAME = "power-cut"


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of one experiment: two with seeds that choose the same victim, and one on a lab that does wrong."""
    root = tmp_path_factory.mktemp("reports")
    for stamp, seed, breakages in (
        ("1", 1, ()),
        ("2", 2, ()),
        ("3", 3, ()),
        ("wrong", 1, ("replicaset-waits-for-removal",)),
    ):
        _store(root, stamp, seed, breakages)
    return root


def _store(root: Path, stamp: str, seed: int, breakages: tuple[str, ...] = (), name: str = NAME) -> Path:
    directory = root / name / stamp
    directory.mkdir(parents=True)
    return _write(directory, name, rehearse(name, seed, breakages, directory / run_directory.RECORDING))


def _write(directory: Path, name: str, run: JudgedRun) -> Path:
    run.write(directory)
    shutil.copy(EXPERIMENTS / f"{name}.yaml", directory / run_directory.EXPERIMENT)
    run_directory.save(directory, run_directory.PLAN, {"source": str(EXPERIMENTS / f"{name}.yaml")})
    info = run_directory.RunInfo(run.result.run, name, run.result.started, {})
    run_directory.save(directory, run_directory.RUN, info)
    return directory


def _compare(reports: Path, *names: str, **options: Any) -> list[Comparison]:
    return compare_all(replace(CompareOptions(tuple(f"{NAME}/{name}" for name in names), reports), **options))


def test_two_runs_of_one_experiment_are_alike(reports: Path) -> None:
    (found,) = _compare(reports, "2", other=f"{NAME}/1")
    assert found.exit_code == Exit.HELD, [str(row) for row in found.outside]
    assert len(found.rows) > 20
    assert headline(found).startswith("nothing unexpected: ")
    assert [row.status for row in found.expectations] == ["held"] * len(found.expectations) != []


def test_a_run_that_did_wrong_is_noticed_by_its_states_and_verdicts(reports: Path) -> None:
    (found,) = _compare(reports, "wrong", other=f"{NAME}/1")
    assert found.exit_code == Exit.VIOLATED
    assert any(row.changed and row.status == "violated" for row in found.expectations)
    assert "violated, but predicted held" in headline(found)
    assert any("replacement 1 of workload/web" in str(row.measure) for row in found.outside)


def test_a_series_compares_each_run_with_those_before_it(reports: Path) -> None:
    found = _compare(reports, "1", "2", "wrong")
    assert [each.exit_code for each in found] == [Exit.HELD, Exit.VIOLATED]
    assert [each.expected.outcomes for each in found] == [1, 2]


def test_a_prediction_is_read_from_its_file(reports: Path, tmp_path: Path) -> None:
    directory = reports / NAME / "2"
    side = side_of("2", build_timeline(read_recording(directory / run_directory.RECORDING)))
    expected = expected_of_sides([side])
    measures, targets = tuple(expected.measures.values()), dict(side.targets)
    seeds, horizon = (1,), side.outcome.observed
    prediction = Prediction(NAME, side.experiment_hash, "", seeds, horizon, measures, targets=targets)
    path = tmp_path / "prediction.json"
    path.write_bytes(dump_prediction(prediction))
    (found,) = _compare(reports, "1", prediction=path)
    assert found.exit_code == Exit.HELD
    path.write_bytes(dump_prediction(msgspec.structs.replace(prediction, format=2)))
    with pytest.raises(BadInput, match="has format 2"):
        _compare(reports, "1", prediction=path)
    path.write_bytes(dump_prediction(msgspec.structs.replace(prediction, experiment="drain")))
    with pytest.raises(NotComparableError, match="they are runs of power-cut and drain"):
        _compare(reports, "1", prediction=path)
    with pytest.raises(BadInput, match="cannot be read"):
        _compare(reports, "1", prediction=tmp_path / "none.json")


def test_a_run_is_rehearsed_on_a_snapshot_with_its_victims(reports: Path, tmp_path: Path) -> None:
    cluster = Cluster(spec_of(NAME))
    cluster.start()
    cluster.sim.run_until(cluster.sim.now + 30.0)
    path = save(cluster, tmp_path / "lab.snapshot.gz")
    (found,) = _compare(reports, "1", snapshot=path, seeds=tuple(range(1, 6)))
    assert found.exit_code == Exit.HELD, [str(row) for row in found.outside]
    assert found.expected.targets == found.side.targets
    (wrong,) = _compare(reports, "wrong", snapshot=path, seeds=(1, 2))
    assert wrong.exit_code == Exit.VIOLATED


@pytest.mark.slow
@pytest.mark.parametrize("taken", [True, False])
def test_machines_boot_as_long_as_in_the_run(
    reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, taken: bool
) -> None:
    """Without that a machine that boots slowly differs from its copies."""
    spec = spec_of(NAME)
    slow = structs.replace(spec, nodes=[structs.replace(node, boot_seconds=90.0) for node in spec.nodes])
    directory = reports / NAME / f"slow-{taken}"
    directory.mkdir()
    options = RehearsalOptions(settings_of(NAME), directory / run_directory.RECORDING)
    _write(directory, NAME, rehearse_once(loaded(NAME), slow, 1, options))
    cluster = Cluster(spec)
    cluster.start()
    cluster.sim.run_until(cluster.sim.now + 30.0)
    if not taken:
        monkeypatch.setattr(comparisons, "boot_times", lambda _entries, _nodes: {})
    path = save(cluster, tmp_path / "lab.snapshot.gz")
    (found,) = _compare(reports, directory.name, snapshot=path, seeds=tuple(range(1, 11)))
    assert (found.exit_code == Exit.HELD) is taken, [str(row) for row in found.outside]
    (victim,) = found.side.targets["victim"]
    notes = [note for note in found.notes if note.startswith(f"{victim} boots in ")]
    assert len(notes) == taken
    assert all(89 < float(note.split()[3]) < 92 for note in notes), notes


def test_other_victims_are_refused_without_the_option(reports: Path) -> None:
    _store(reports, "other", 5)
    with pytest.raises(NotComparableError, match=r"other victims, victim: worker-3 and victim: worker-1"):
        _compare(reports, "other", other=f"{NAME}/1")
    (found,) = _compare(reports, "other", other=f"{NAME}/1", other_victims=True)
    assert found.rows


def test_another_file_of_the_experiment_is_refused(reports: Path) -> None:
    timeline = build_timeline(read_recording(reports / NAME / "1" / run_directory.RECORDING))
    expected = expected_of_sides([side_of("1", timeline)])
    timeline.meta["experimentHash"] = "0" * 64
    with pytest.raises(NotComparableError, match="the file of power-cut has changed"):
        check_comparable(side_of("2", timeline), expected)


def test_recordings_of_other_actions_are_refused() -> None:
    names = ("01-graceful-poweroff", "05-power-cut")
    paths = tuple(str(RECORDINGS / f"{name}.jsonl.gz") for name in names)
    with pytest.raises(NotComparableError, match=r"other actions, power-cut on rb-worker"):
        compare_all(CompareOptions(paths, ROOT))


def test_a_recording_without_an_action_is_refused(tmp_path: Path) -> None:
    entries = [entry for entry in read_recording(RECORDINGS / "05-power-cut.jsonl.gz") if entry.kind != "action"]
    path = tmp_path / "calm.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries))
    with pytest.raises(NotComparableError, match="nothing was done to the cluster"):
        compare_all(CompareOptions((str(path),), ROOT))


def test_a_recording_alone_is_not_rehearsed_on_a_snapshot(tmp_path: Path) -> None:
    options = CompareOptions((str(RECORDINGS / "05-power-cut.jsonl.gz"),), ROOT, snapshot=tmp_path / "s.gz")
    with pytest.raises(NotComparableError, match=r"it has no experiment\.yaml"):
        compare_all(options)


def test_reports_say_what_is_simulated_and_what_surprises(reports: Path) -> None:
    comparisons = _compare(reports, "wrong", other=f"{NAME}/1")
    text, page = "\n".join(comparison_text(comparisons)), comparison_page(comparisons)
    markdown, document = comparison_markdown(comparisons), comparison_document(comparisons)
    first = headline(comparisons[0])
    assert text.startswith(first)
    assert "<script" not in page
    assert page.count("SIMULATED") >= 2
    assert "kubernetes-facts.md (5.7)" in page
    assert "kubernetes-facts.md (5.7)" in markdown
    assert json.loads(json.dumps(document)) == document
    assert document["comparisons"][0]["headline"] == first
    assert (document["exit_code"], document["simulated"]) == (1, True)


def test_a_stalled_api_server_is_named() -> None:
    """A run on a machine so busy that its API server stood still again and again."""
    path = RECORDINGS / "runs" / "eviction-rate-1.jsonl.gz"
    side = side_of(path.name, build_timeline(read_recording(path)))
    assert any("the API server or its clients stalled" in note for note in side.notes)
    calm = RECORDINGS / "05-power-cut.jsonl.gz"
    assert side_of(calm.name, build_timeline(read_recording(calm))).notes == ()


def test_a_held_out_run_has_its_surprise_explained() -> None:
    path = RECORDINGS / "runs" / "fast-reboot-2.jsonl.gz"
    (found,) = compare_all(CompareOptions((str(path),), ROOT, seeds=tuple(range(1, 11))))
    assert {row.standing for row in found.outside} == {Standing.LATE}
