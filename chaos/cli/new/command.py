"""``nodefall new``."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

from pathlib import Path

import click

from chaos.cli.complete import complete_action, complete_assertion
from chaos.cli.lazy import examples


@click.command(
    epilog=examples(
        "nodefall new",
        "nodefall new drain-shop.yaml --action drain --expect pods-evicted --expect workload-available",
        "nodefall new shop.yaml --action poweroff --workload shop/deployment.yaml",
        "nodefall new shop.yaml --action kubelet-stop --namespace shop",
        "nodefall new --list",
    )
)
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--action", "actions", multiple=True, metavar="NAME", shell_complete=complete_action,
    help="What fails; repeat it for several steps.",
)  # fmt: skip
@click.option(
    "--expect", "expectations", multiple=True, metavar="NAME", shell_complete=complete_assertion,
    help="What must hold; repeat it. [default: what is usual for the action]",
)  # fmt: skip
@click.option(
    "--workload", type=click.Path(path_type=Path), metavar="MANIFEST",
    help="Manifests to apply for the run. [default: a sample, written beside FILE]",
)  # fmt: skip
@click.option("--namespace", metavar="NAME", help="Observe the pods of this namespace, and apply nothing.")
@click.option("--title", metavar="TEXT", help="What the experiment proves.")
@click.option("--force", is_flag=True, help="Overwrite FILE and the sample beside it.")
@click.option("--list", "list_names", is_flag=True, help="List what --action and --expect take.")
def command(  # noqa: PLR0913, PLR0917 - one per option
    file: Path | None,
    actions: tuple[str, ...],
    expectations: tuple[str, ...],
    workload: Path | None,
    namespace: str | None,
    title: str | None,
    force: bool,
    list_names: bool,
) -> None:
    """Write an experiment to FILE: what fails, and what must hold. Asks for both on a terminal.

    The experiment is valid as written. Its comments name what to change.
    """
    from chaos.cli.new.new_impl import NewOptions, create, list_choices

    if list_names:
        list_choices()
        return
    create(NewOptions(file, actions, expectations, workload, namespace, title or "", force))
