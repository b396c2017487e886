"""Templates that the driver will make for ComputeDomains."""

from __future__ import annotations

from typing import Any

from webhook.devices.briefs import claim_brief, domain_brief, read_known_claim
from webhook.devices.domain_templates import add_domain_templates, domain_templates
from webhook.devices.kinds import DOMAIN, DOMAIN_TEMPLATE, TEMPLATE
from webhook.evaluation.references import ClaimKey


def domain(name: str, template: str, mode: str = "", namespace: str = "team") -> tuple[Any, Any]:
    channel = {"resourceClaimTemplate": {"name": template}, "allocationMode": mode}
    body = {"metadata": {"name": name}, "spec": {"channel": channel}}
    return (DOMAIN, namespace, name), domain_brief(body)


def modes(known: Any) -> list[Any]:
    view = read_known_claim(known)
    assert view is not None
    assert [each.device_class for each in view.options] == [
        "compute-domain-default-channel.nvidia.com"
    ]
    return [each.parameters.get("allocationMode") for each in view.configs]


def test_a_template_is_that_of_its_domain() -> None:
    found = domain_templates([domain("a", "t", "All"), domain("a", "t", namespace="other")])
    assert {key: modes(each) for key, each in found.items()} == {
        (DOMAIN_TEMPLATE, "team", "t"): ["All"],
        (DOMAIN_TEMPLATE, "other", "t"): [None],
    }


def test_of_domains_that_name_one_template_the_one_with_all_channels_counts() -> None:
    for listed in (["Single", "All", ""], ["All", "", "Single"], ["", "Single", "All"]):
        domains = [domain(f"d-{at}", "t", mode) for at, mode in enumerate(listed)]
        ((key, found),) = domain_templates(reversed(domains)).items()
        assert key == (DOMAIN_TEMPLATE, "team", "t")
        assert modes(found) == ["All"]
        assert found["domains"] == ["d-0", "d-1", "d-2"]


def test_a_template_that_exists_counts_and_a_domain_without_a_name_makes_none() -> None:
    key: ClaimKey = (TEMPLATE, "team", "t")
    own = claim_brief(TEMPLATE, {"spec": {"spec": {"devices": {"requests": [{"name": "x"}]}}}})
    domains = [domain("a", "t"), domain("b", "u"), ((DOMAIN, "team", "c"), domain_brief({}))]
    found = add_domain_templates({key: own}, domains)
    assert found[key] is own
    assert modes(found[TEMPLATE, "team", "u"]) == [None]
    assert (TEMPLATE, "team", "") not in found
