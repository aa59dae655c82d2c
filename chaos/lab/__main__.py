"""``python -m chaos.lab``: serve one lab on loopback.

Reads a LabSpec (JSON, one line of stdin, or ``--spec FILE``; with ``--snapshot`` without nodes), prints one line of
JSON when all servers are ready, and runs until the owner writes ``stop`` to stdin, SIGTERM or SIGINT arrives, or the
directory is removed. If the owner dies, stdin is closed: the lab then runs until no client has been connected for
``--linger`` seconds, so that an undo is still possible. After ``detach`` the owner may exit and the lab keeps running.
The directory is removed at the end, except a directory from ``--directory`` after a failure.
Exit codes: 0; 64 for a bad LabSpec; 69 for a port that is not available; 74 for other resources of the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import resource
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from chaos.lab.facade import remove_directory
from chaos.lab.server.content import Content, GcTuner, ServeOptions, content_of
from chaos.lab.server.lab import Lab, PortError
from chaos.lab.sim.clients import IdleLoop
from chaos.lab.spec import ApiMisbehaviour, SpecError

_USAGE, _UNAVAILABLE, _IO_ERROR = 64, 69, 74  # sysexits.h
_POLL = 0.25  # wall seconds between two checks of the clients of an orphaned lab


class StartError(Exception):
    """Starting the lab failed: a resource of the machine is not available."""


def main(argv: list[str] | None = None) -> int:
    """Run one lab and return the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        text = arguments.spec.read_bytes() if arguments.spec else sys.stdin.buffer.readline()
        content = content_of(text, arguments.snapshot)
        content.spec.api_misbehaviours = [*content.spec.api_misbehaviours, *arguments.misbehave]
    except (SpecError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return _USAGE
    free = arguments.speed is not None
    speed = arguments.speed if free else arguments.pace
    options = ServeOptions(
        speed, free, arguments.linger, arguments.ring, arguments.name, arguments.port, arguments.careful
    )
    _allow_files(len(content.spec.nodes))
    directory = arguments.directory or Path(tempfile.mkdtemp(prefix="nodefall-lab-"))  # mode 0700
    failed = True
    try:
        with asyncio.Runner(loop_factory=IdleLoop) as runner:
            runner.run(_serve(content, options, directory))
        failed = False
    except (PortError, StartError) as error:
        sys.stderr.write(f"{error}\n")
        return _UNAVAILABLE if isinstance(error, PortError) else _IO_ERROR
    except SpecError as error:  # a snapshot whose objects contradict each other
        sys.stderr.write(f"{error}\n")
        return _USAGE
    finally:
        if not (failed and arguments.directory):
            remove_directory(directory)
    return 0


def _allow_files(nodes: int) -> None:
    """Raise the soft limit of open files, usually 1024: each node needs two ports, some connections and threads."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 512 + 10 * nodes
    if soft != resource.RLIM_INFINITY and soft < needed:
        limit = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m chaos.lab", description="A simulated cluster on loopback.")
    parser.add_argument("--spec", type=Path, help="file with the LabSpec; default: the first line of stdin")
    parser.add_argument("--snapshot", type=Path, help="file of nodefall snapshot; the LabSpec then has no nodes")
    parser.add_argument("--pace", type=float, default=20.0, help="lockstep: maximum of simulated seconds a second")
    parser.add_argument("--careful", action="store_true", help="a pace above 20 only while the machine is not busy")
    parser.add_argument("--speed", type=float, help="free-running: simulated seconds a second, no lockstep")
    parser.add_argument(
        "--linger", type=float, default=120.0, help="seconds without clients after which a lab without owner ends"
    )
    parser.add_argument(
        "--ring",
        type=int,
        default=ServeOptions().watch_cache_size,
        help="size of the watch cache: changes of a kind that a watch can resume from",
    )
    names = get_args(ApiMisbehaviour)
    parser.add_argument(
        "--misbehave",
        action="append",
        default=[],
        choices=names,
        metavar="NAME",
        help=f"of the API server, besides the spec's apiMisbehaviours; may be repeated: {', '.join(names)}",
    )
    parser.add_argument("--directory", type=Path, help="an existing private directory; default: a temporary one")
    parser.add_argument("--name", default=ServeOptions().name, help="the kubeconfig's context")
    parser.add_argument("--port", type=int, default=0, help="the API server's port; 0 for any that is free")
    return parser


async def _serve(content: Content, options: ServeOptions, directory: Path) -> None:
    loop = asyncio.get_running_loop()
    ended, orphaned = asyncio.Event(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    with _resources(directory):
        lab = Lab(content.spec, options, directory, content.start)
    GcTuner(lab.cluster.store)
    try:
        with _resources(directory):
            ready = await lab.start()
        if _print_ready(ready | content.facts):
            threading.Thread(target=_listen_to_owner, args=(loop, ended, orphaned), daemon=True).start()
            await _wait_for_end(lab, options.linger, ended, orphaned)
    finally:
        await lab.stop()


@contextlib.contextmanager
def _resources(directory: Path) -> Iterator[None]:
    """Convert OSError to StartError. Raises StartError, PortError."""
    try:
        yield
    except PortError:
        raise
    except OSError as error:
        raise StartError(f"starting the lab in {directory} failed: {error.strerror}") from error


def _print_ready(ready: dict[str, Any]) -> bool:
    """Print the ready line; False if the owner has died."""
    try:
        with open(1, "wb", closefd=False) as out:  # not sys.stdout, which would be flushed again at the end
            out.write(json.dumps(ready).encode() + b"\n")
    except BrokenPipeError:
        return False
    return True


def _listen_to_owner(loop: asyncio.AbstractEventLoop, ended: asyncio.Event, orphaned: asyncio.Event) -> None:
    """Set ``ended`` on ``stop``, and ``orphaned`` at the end of stdin unless ``detach`` came before.

    Runs in a thread: stdin may be a file, which an event loop cannot watch.
    """
    command = next((word for line in sys.stdin if (word := line.strip()) in {"stop", "detach"}), "")
    if command != "detach":
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe((ended if command else orphaned).set)


async def _wait_for_end(lab: Lab, linger: float, ended: asyncio.Event, orphaned: asyncio.Event) -> None:
    """Wait until the lab is stopped, orphaned, or removed. Raises the lab's own failure."""
    loop = asyncio.get_running_loop()
    last_client = None
    while not ended.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_POLL):
                await ended.wait()
        if failure := lab.failure():
            raise failure
        if not lab.directory.exists():  # no client can find the lab
            return
        if orphaned.is_set():
            last_client = loop.time() if lab.client_count or last_client is None else last_client
            if loop.time() - last_client >= linger:
                return


if __name__ == "__main__":
    raise SystemExit(main())
