"""Claim templates that do not exist yet: the driver makes one for each ComputeDomain, a while after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from webhook.devices.claim_view import ALL, read_claim
from webhook.devices.kinds import DOMAIN_TEMPLATE, TEMPLATE
from webhook.evaluation.references import ClaimKey


def domain_templates(briefs: Iterable[tuple[ClaimKey, Any]]) -> dict[ClaimKey, dict[str, Any]]:
    """Return the briefs of ComputeDomains by the templates that they name, as DOMAIN_TEMPLATE.

    Each has the names of all domains that name it in `domains`. Only one of these gets the template,
    and nobody knows yet which one: a domain with all channels wins.
    """
    found: dict[ClaimKey, dict[str, Any]] = {}
    for (_, namespace, name), brief in sorted(briefs, key=lambda each: each[0]):
        key = DOMAIN_TEMPLATE, namespace, brief["template"]
        if not key[2]:
            continue
        known = found.get(key)
        chosen = brief if known is None or takes_all(brief) else known
        found[key] = {**chosen, "domains": [*(known["domains"] if known else ()), name]}
    return found


def takes_all(brief: Mapping[str, Any]) -> bool:
    """Return whether a claim of the template gets all channels."""
    parameters = (each.parameters for each in read_claim(brief).configs)
    return any(each.get("allocationMode") == ALL for each in parameters)


def add_domain_templates(
    claims: Mapping[ClaimKey, Any], briefs: Iterable[tuple[ClaimKey, Any]]
) -> dict[ClaimKey, Any]:
    """Return claims with the templates of ComputeDomains; one that exists already is used instead."""
    made = domain_templates(briefs)
    missing = {(TEMPLATE, *key[1:]): body for key, body in made.items()}
    return {**missing, **made, **claims}
