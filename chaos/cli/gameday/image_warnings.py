"""Warnings about the image of a deployed game day."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def warn_unpinned(images: Iterable[str]) -> Iterator[str]:
    """A line for each image that is named by its tag only."""
    for image in sorted(set(images)):
        if "@sha256:" not in image:
            yield f"warning: the image {image} is not pinned by a digest: whoever may push it runs it"


def warn_missing(programs: Iterable[str], inventory: str) -> Iterator[str]:
    """A line for each program that the ``inventory``, in words, uses and the image lacks."""
    for program in programs:
        yield f"warning: the image has no program {program}, which {inventory} uses"
