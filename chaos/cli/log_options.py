"""The options ``-v`` and ``--log-file`` of every command."""

from __future__ import annotations

from pathlib import Path

import click

_VERBOSE = "chaos.cli.verbose"  # key in the metadata of a click context


def add_log_options(command: click.Command) -> click.Command:
    """Add the options to ``command``, and to every command of a group. Idempotent."""
    if isinstance(command, click.Group):
        for sub in command.commands.values():
            add_log_options(sub)
    is_run = not isinstance(command, click.Group) or command.invoke_without_command
    if is_run and not any(parameter.name == "log_file" for parameter in command.params):
        command.params += [_verbose_option(), _log_file_option()]
    return command


def discard_unhandled_records() -> None:
    """Without -v and --log-file, print no log records: logging prints warnings to stderr if it has no handler."""
    import logging  # noqa: PLC0415 - slow, and not needed for --help

    logger = logging.getLogger("chaos")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())


def is_verbose() -> bool:
    """Whether log records are printed to stderr, where a view that redraws itself would overwrite them."""
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get(_VERBOSE))


def _verbose_option() -> click.Option:
    return click.Option(
        ["-v", "--verbose", "verbose"],
        count=True,
        expose_value=False,
        callback=_print_records,
        help="Log to stderr; -vv also every API request and host command.",
    )


def _log_file_option() -> click.Option:
    return click.Option(
        ["--log-file", "log_file"],
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        expose_value=False,
        callback=_write_records,
        help="Append a debug log to this file.",
    )


def _print_records(ctx: click.Context, _: click.Parameter, count: int) -> None:
    if not count or ctx.resilient_parsing:
        return
    import logging  # noqa: PLC0415 - slow, and seldom needed

    from chaos.app.wiring.logs import attached, stderr_handler  # noqa: PLC0415

    ctx.meta[_VERBOSE] = True
    ctx.with_resource(attached(stderr_handler(logging.DEBUG if count > 1 else logging.INFO)))


def _write_records(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
    if path is None or ctx.resilient_parsing:
        return
    from chaos.app.wiring.logs import attached, log_file_handler  # noqa: PLC0415 - slow, and seldom needed
    from chaos.core.errors import UsageError  # noqa: PLC0415

    try:
        handler = log_file_handler(path)
    except OSError as error:
        raise UsageError(f"--log-file: cannot open {path}: {error.strerror}") from error
    ctx.with_resource(attached(handler))
