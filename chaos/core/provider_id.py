"""Provider IDs of Nodes (``spec.providerID``) as clouds' controllers write them: ``aws:///eu-west-1a/i-0abc``. Pure."""

from __future__ import annotations


def provider_parts(provider_id: str, scheme: str) -> tuple[str, ...]:
    """The parts of the path and of the authority, without empty ones; () for a provider ID of another scheme."""
    found, _, rest = provider_id.strip().partition("://")
    return tuple(part for part in rest.split("/") if part) if found.lower() == scheme else ()


def is_same_provider_id(one: str, other: str) -> bool:
    """Whether both are known and name the same machine; some parts, as a region of OpenStack, may be left out of one.

    Azure writes the same name in upper or lower case.
    """
    (scheme, parts), (other_scheme, others) = _split(one), _split(other)
    if not parts or not others or scheme != other_scheme:
        return False
    common = min(len(parts), len(others))
    return parts[-common:] == others[-common:]


def last_part(provider_id: str) -> str:
    """The name or ID of the machine itself, "" if unknown."""
    return provider_id.rpartition("/")[2]


def _split(provider_id: str) -> tuple[str, tuple[str, ...]]:
    scheme = provider_id.partition("://")[0].strip().lower()
    return scheme, provider_parts(provider_id.lower(), scheme)
