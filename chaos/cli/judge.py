"""``nodefall judge``: an experiment judged on a recording, or on a finished run, without a cluster."""

# ruff: noqa: PLC0415 - what is slow to import is imported when the command runs
from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from chaos.judge.context import Options
    from chaos.model.experiment import Experiment
    from chaos.model.result import RunResult, StepResult
    from chaos.model.timeline import Timeline
    from chaos.model.verdict import Verdict

EPILOG = """\b
Examples:
  nodefall judge recording.jsonl.gz experiments/graceful-poweroff.yaml
  nodefall judge reports/graceful-poweroff/20261121T033533Z experiments/graceful-poweroff.yaml --json
  nodefall judge power-cut.jsonl.gz experiments/graceful-poweroff.yaml --map power-off=power-cut
  nodefall judge rec.jsonl.gz my.yaml --bind victim=worker-1 --bind workload=demo --fact kubelet.shutdownGracePeriod=30s
"""


@click.command(epilog=EPILOG)
@click.argument("recording", type=click.Path(path_type=Path))
@click.argument("experiment", type=click.Path(path_type=Path))
@click.option("--bind", multiple=True, metavar="TARGET=NODE", help="Which node a target is; workload=NAMESPACE too.")
@click.option("--map", "steps", multiple=True, metavar="STEP=ACTION", help="A step is the recorded ACTION.")
@click.option("--fact", multiple=True, metavar="NAME=VALUE", help="Use this value of a fact.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object on stdout.")
@click.option("--report", type=click.Path(path_type=Path, file_okay=False), help="Write all reports to this directory.")
def command(
    recording: Path,
    experiment: Path,
    bind: tuple[str, ...],
    steps: tuple[str, ...],
    fact: tuple[str, ...],
    as_json: bool,
    report: Path | None,
) -> None:
    """Judge an EXPERIMENT on a RECORDING (a file or a run directory).

    Exit code: 0 every expectation held, 1 one was violated, 2 it cannot be said.
    """
    import msgspec

    from chaos.judge.judge import judge
    from chaos.session.planning import load
    from chaos.session.wiring import catalogue
    from chaos.store.recording import build_timeline, read_recording

    known = catalogue()
    loaded = load(experiment, known)
    kinds = [(str(m.get("kind")), str((m.get("metadata") or {}).get("name"))) for m in loaded.manifests]
    options = _options(loaded.experiment, bind, steps, fact, kinds)
    timeline = build_timeline(read_recording(_file(recording)))
    _check_nodes(options, timeline)
    result = judge(loaded.experiment, timeline, known, options)
    if report:
        _write(report, result, timeline)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(result), indent=2).decode())
    else:
        click.echo("\n".join(_lines(result)))
    sys.exit(result.exit_code)


def _file(path: Path) -> Path:
    """Raises BadInput for a directory without one."""
    from chaos.model.errors import bad_input
    from chaos.store import rundir

    if not path.is_dir():
        return path
    if not (path / rundir.RECORDING).exists():
        raise bad_input(str(path), f"holds no {rundir.RECORDING}", "give a recording (*.jsonl.gz) or a run directory")
    return path / rundir.RECORDING


def _options(
    experiment: Experiment,
    bind: tuple[str, ...],
    steps: tuple[str, ...],
    facts: tuple[str, ...],
    manifests: list[tuple[str, str]],
) -> Options:
    """Raises UsageError for names that the experiment does not know."""
    from chaos.judge.context import WORKLOAD, Options
    from chaos.model.bound import known_fact
    from chaos.model.errors import UsageError

    spec = experiment.spec
    nodes: dict[str, tuple[str, ...]] = {}
    namespace = ""
    for target, node in _pairs("--bind", bind):
        if target == WORKLOAD:
            namespace = node
        else:
            nodes[_one_of("--bind", "target", target, spec.targets)] = (*nodes.get(target, ()), node)
    names = [step.name for step in spec.method]
    mapped = {_one_of("--map", "step", step, names): action for step, action in _pairs("--map", steps)}
    values = {}
    for name, value in _pairs("--fact", facts):
        try:
            values[known_fact(name)] = _value(value)
        except ValueError as error:
            raise UsageError(f"--fact {name}={value}: {error}") from error
    return Options(bind=nodes, namespace=namespace, steps=mapped, facts=values, manifests=manifests)


def _value(text: str) -> str:
    """A duration or a number from 0. Raises ValueError."""
    import math

    from chaos.model.duration import parse_duration

    try:
        number = float(text)
    except ValueError:
        parse_duration(text)
        return text
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"{text!r} is not a number from 0; write a number, or a duration like 90s")
    return text


def _pairs(option: str, values: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    from chaos.model.errors import UsageError

    for text in values:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise UsageError(f"{option} {text}: write it as NAME=VALUE")
        yield name, value


def _one_of(option: str, what: str, name: str, known: object) -> str:
    from difflib import get_close_matches

    from chaos.model.errors import UsageError

    names = [str(n) for n in known] if isinstance(known, dict | list) else []
    if name in names:
        return name
    near = get_close_matches(name, names, 1, 0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"
    raise UsageError(f"{option}: there is no {what} {name!r}", hint=hint)


def _check_nodes(options: Options, timeline: Timeline) -> None:
    """Raises UsageError for a bound node that was never seen."""
    for target, nodes in options.bind.items():
        for node in nodes:
            if node not in timeline.nodes:
                _one_of(f"--bind {target}={node}", "node", node, sorted(timeline.nodes))


def _write(directory: Path, result: RunResult, timeline: Timeline) -> None:
    import chaos.report
    from chaos.model.catalogue import discover
    from chaos.store import rundir

    directory.mkdir(parents=True, exist_ok=True)
    rundir.save(directory, rundir.RESULT, result)
    for renderer in discover(chaos.report, "RENDERER").values():
        (directory / renderer.file).write_text(renderer.render(result, timeline), encoding="utf-8")
    click.echo(f"report: {directory}", err=True)


def _lines(result: RunResult) -> Iterator[str]:
    """The headline first, then what was done and whether it is proven, then every verdict."""
    from chaos.model.text import printable

    yield printable(result.headline) + (" (simulated cluster)" if result.simulated else "")
    yield from ("", "steps")
    yield from (_step(step) for step in result.steps)
    sections = (
        ("steady state", result.steady),
        ("hypothesis", result.hypothesis),
        ("recovery", result.recovery),
        ("abort conditions", result.abort),
    )
    for title, verdicts in sections:
        if verdicts:
            yield from ("", title)
            yield from (_verdict(verdict) for verdict in verdicts)
    if result.notes:
        yield from ("", *(f"note: {printable(note)}" for note in result.notes))


def _step(step: StepResult) -> str:
    from chaos.model.text import printable

    shown = f"weakly {step.shown.value}" if step.weak else step.shown.value
    where = f" on {step.node}" if step.node else ""
    return f"  {shown:<12} {step.step}: {step.action}{where}: {printable(step.because)}"


def _verdict(verdict: Verdict) -> str:
    from chaos.model.text import printable

    told = f"  {verdict.status.value:<12} {printable(verdict.name)}: {printable(verdict.because)}"
    return told + (f" (assumed: {', '.join(verdict.assumed)})" if verdict.assumed else "")
