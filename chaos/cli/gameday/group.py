"""The group ``nodefall gameday``, and the options that its commands share."""

from __future__ import annotations

import click

from chaos.cli.complete import DocumentPath, complete_game_day_file
from chaos.cli.lazy import examples, file_option, inventory_option


def _who() -> str:
    """Login and machine of who works here."""
    from chaos.cli.gameday.run import who  # noqa: PLC0415 - slow

    return who()


by_option = click.option("--by", metavar="NAME", default=_who, help="Who does it. Default: login@machine.")
report_url_option = click.option(
    "--report-url",
    default="",
    metavar="URL",
    envvar="NODEFALL_REPORT_URL",
    help="Where people find the reports directory, for links in notifications. [env: NODEFALL_REPORT_URL]",
)
keep_option = click.option("--keep", is_flag=True, help="Of a fleet: do not delete what was applied in its clusters.")
fleet_option = file_option("--fleet", "All clusters of this fleet, instead of one.")
gameday_argument = click.argument("gameday", shell_complete=complete_game_day_file, type=DocumentPath())
seed_option = click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), help="Of the day: the same seeds of its runs again."
)
only_cluster_option = inventory_option("The cluster. Default: the only one of the game day. [env: NODEFALL_INVENTORY]")
id_option = click.option("--id", metavar="NAME", default="", help="Name of the day. Default: its date.")


@click.group(
    epilog=examples(
        "nodefall gameday plan experiments/gamedays/first.yaml",
        "nodefall gameday run experiments/gamedays/first.yaml",
        'nodefall gameday halt -i staging.yaml --reason "pager went off"',
        "nodefall gameday report last",
    )
)
def gameday_command() -> None:
    """Game days: several experiments in a window, behind gates, with one switch that stops everything."""
