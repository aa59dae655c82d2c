"""Prints the manifests of a game day; nothing is applied."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from chaos.app.day.deploy import DeployOptions, SecretSource, deployment_of
from chaos.app.day.deploy_needs import programs_of
from chaos.app.day.document import LoadedGameDay, load_game_day
from chaos.cli.gameday.run import check_report_url, day_inventory
from chaos.core.errors import Exit, UsageError
from chaos.core.text import shell_word
from chaos.documents.inventory import load_inventory
from chaos.documents.yaml_text import dump
from chaos.gameday.deploy.deployment import Deployment, Storage
from chaos.gameday.deploy.manifests import helm_values, manifests
from chaos.gameday.deploy.pod import upload_secret
from chaos.gameday.fleet_document import IMAGE, NAMESPACE, OBJECT_NAME, SIZE

_BUCKET = r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^\s/][^\s]*)?"
_CLIENT_SIDE_BYTES = 262_144  # of all annotations of an object: k8s.io/apimachinery, TotalAnnotationSizeLimitB
_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")


def warn_unpinned(images: Iterable[str]) -> Iterator[str]:
    """A line for each image that is named by its tag only."""
    for image in sorted(set(images)):
        if "@sha256:" not in image:
            yield f"warning: the image {image} is not pinned by a digest: whoever may push it runs it"


def warn_missing(programs: Iterable[str], inventory: str) -> Iterator[str]:
    """A line for each program that the ``inventory``, in words, uses and the image lacks."""
    for program in programs:
        yield f"warning: the image has no program {program}, which {inventory} uses"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command."""

    gameday: Path
    inventory: str | None
    namespace: str
    image: str
    size: str
    storage_class: str
    s3: str
    secret: str
    report_url: str
    form: str


def deploy(options: Options) -> int:
    """Print what was asked for on stdout, and what is left to do on stderr. Raises NodefallError."""
    _check(options)
    day = load_game_day(options.gameday)
    path = day_inventory(day, options.inventory)
    storage = Storage(options.size, options.storage_class, options.s3)
    wanted = DeployOptions(options.namespace, options.image, storage, options.secret, report_url=options.report_url)
    deployment, sources = deployment_of(day, path, wanted)
    objects = [helm_values(deployment)] if options.form == "helm" else manifests(deployment)
    click.echo(dump(objects), nl=False)
    large = [] if options.form == "helm" else _warn_large(objects)
    for line in (*large, *_notes(deployment, sources)):
        click.echo(line, err=True)
    for line in warn_missing(programs_of(day.document.spec, load_inventory(path)), "the inventory"):
        click.echo(line, err=True)
    for name in _workload_secrets(day):
        click.echo(f"warning: the ConfigMap has {name}: create it in the cluster before the day instead", err=True)
    return Exit.HELD


def _check(options: Options) -> None:
    check_report_url(options.report_url)
    patterns = (
        ("--namespace", options.namespace, NAMESPACE),
        ("--storage", options.size, SIZE),
        ("--s3", options.s3, f"({_BUCKET})?"),
        ("--secret", options.secret, f"({OBJECT_NAME})?"),
        ("--storage-class", options.storage_class, f"({OBJECT_NAME})?"),
        ("--image", options.image, IMAGE),
    )
    for name, value, pattern in patterns:
        if not re.fullmatch(pattern, value):
            raise UsageError(f"{name} {value!r}: invalid value", hint="see nodefall gameday deploy --help")


def _notes(deployment: Deployment, sources: tuple[SecretSource, ...]) -> list[str]:
    notes = [*warn_unpinned([deployment.image])]
    if sources:
        variables = [each.key for each in sources if not each.file]
        first = f"; set {', '.join(variables)} in the shell first" if variables else ""
        keys = " ".join(map(_secret_option, sources))
        notes.append(f"It needs a Secret, with the content of files as it is, without a line break at the end{first}:")
        notes.append(f"  kubectl -n {deployment.namespace} create secret generic {deployment.secret} {keys}")
    if deployment.storage.s3:
        names = "RCLONE_S3_ENDPOINT, RCLONE_S3_ACCESS_KEY_ID, RCLONE_S3_SECRET_ACCESS_KEY"
        notes.append(f"The copy to the bucket needs a Secret {upload_secret(deployment)} with {names}")
    if not deployment.cron:
        name = f"kubectl -n {deployment.namespace} create job --from=cronjob/{deployment.name} {deployment.name}-1"
        notes.append(f"The day has no schedule. It begins with:\n  {name}")
    return notes


def _warn_large(objects: Iterable[dict[str, Any]]) -> Iterator[str]:
    """A line for each object that kubectl cannot apply on the client, where an annotation repeats all of it."""
    for each in objects:
        size = len(json.dumps(each))
        if size > _CLIENT_SIDE_BYTES:
            what = f"{each['kind']} {each['metadata']['name']} has {size:,} bytes"
            yield f"The {what}; a client-side apply takes {_CLIENT_SIDE_BYTES:,}. Apply the manifests on the server:"
            yield "  kubectl apply --server-side -f manifests.yaml"


def _workload_secrets(day: LoadedGameDay) -> list[str]:
    """Secrets among the manifests of workloads, which are deployed as they are."""
    found = [
        f"the Secret {manifest['metadata']['name']} of the workload of {item.name}"
        for item in day.entries
        for manifest in item.loaded.manifests
        if manifest["kind"] == "Secret"
    ]
    return list(dict.fromkeys(found))


def _secret_option(source: SecretSource) -> str:
    """An option of ``kubectl create secret``. No shell expands ``~`` behind an equals sign, but all expand $HOME."""
    key = shell_word(source.key)
    if not source.file:
        return f'--from-literal={key}="${key}"' if _VARIABLE.fullmatch(key) else f"--from-file={key}=FILE"
    home, slash, rest = source.file.partition("/")
    path = f'"$HOME"/{shell_word(rest)}' if home == "~" and slash else shell_word(source.file)
    return f"--from-file={key}={path}"
