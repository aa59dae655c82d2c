"""``nodefall gameday deploy``: manifests that run a day on its cluster."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

from pathlib import Path

import click

from chaos import __version__
from chaos.cli.complete import complete_game_day_file
from chaos.cli.inventory_option import inventory_option
from chaos.cli.lazy import examples


@click.command(
    "deploy",
    epilog=examples(
        "nodefall gameday deploy monthly.yaml -i staging.yaml --image IMAGE@sha256:DIGEST | kubectl apply -f -",
        "nodefall gameday deploy monthly.yaml -i staging.yaml --s3 reports/staging > manifests.yaml",
        "nodefall gameday deploy monthly.yaml -i staging.yaml --format helm > values.yaml",
    ),
)
@click.argument("gameday", shell_complete=complete_game_day_file, type=click.Path(path_type=Path))
@inventory_option("The cluster. Default: the only one of the game day. [env: NODEFALL_INVENTORY]")
@click.option("--namespace", "-n", default="nodefall", show_default=True, help="Of the CronJob and what it needs.")
@click.option(
    "--image", default=f"nodefall:{__version__}", show_default=True, help="Built from deploy/image/Dockerfile."
)
@click.option("--storage", "size", default="1Gi", show_default=True, help="Size of the volume for reports.")
@click.option("--storage-class", default="", metavar="NAME", help="Of that volume. Default: that of the cluster.")
@click.option(
    "--s3", default="", metavar="BUCKET/PREFIX", help="Copy the reports to an S3-compatible store every hour."
)
@click.option("--secret", default="", metavar="NAME", help="With keys and passwords. Default: nodefall-GAMEDAY.")
@click.option("--format", "form", type=click.Choice(["manifests", "helm"]), default="manifests", show_default=True)
def deploy(  # noqa: PLR0913, PLR0917 - one per option
    gameday: Path,
    inventory: str | None,
    namespace: str,
    image: str,
    size: str,
    storage_class: str,
    s3: str,
    secret: str,
    form: str,
) -> int:
    """Print manifests that run a GAMEDAY on its cluster by its schedule, as a CronJob. Applies nothing.

    The documents are taken as they are, so the plan has the same hash everywhere. Keys and passwords to which they
    refer are expected in a Secret, and never read here: stderr says which. The ServiceAccount has exactly the rights
    that nodefall rbac prints. --format helm prints the values of the chart in deploy/helm.

    Exit code: 0 printed; 64 bad input or usage.
    """
    from chaos.cli.gameday.deploy_impl import Options, deploy

    return deploy(Options(gameday, inventory, namespace, image, size, storage_class, s3, secret, form))
