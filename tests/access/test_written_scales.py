"""Scales that a component has as a product: what may be written, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.building import catalog
from webhook.access.component import Replicas
from webhook.access.errors import AccessError
from webhook.access.object import bind


def written(job: dict[str, Any], pods: int) -> Any:
    """A JobSet of one job after its number of pods is written."""
    document = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "a"},
        "spec": {"replicatedJobs": [job]},
    }
    definition = catalog().definition("jobset.x-k8s.io", "JobSet", "v1alpha2")
    bound = bind(definition, document)
    bound.component("replicatedjob").update("scale", {"workers": Replicas(pods)})
    return bound.document["spec"]["replicatedJobs"][0]


def job(parallelism: int, **more: Any) -> dict[str, Any]:
    """A replicated job."""
    return {"name": "workers", "template": {"spec": {"parallelism": parallelism}}, **more}


@pytest.mark.parametrize("pods, replicas", [(8, 2), (4, 1), (0, 0)])
def test_a_multiple_is_written_into_the_first_factor(pods: int, replicas: int) -> None:
    found = written(job(4, replicas=3), pods)
    assert (found["replicas"], found["template"]) == (replicas, job(4)["template"])


@pytest.mark.parametrize("pods", [1, 6])
def test_what_is_no_multiple_is_refused(pods: int) -> None:
    with pytest.raises(AccessError) as error:
        written(job(4, replicas=3), pods)
    assert error.value.reason == "not-a-multiple"


def test_no_number_of_pods_can_be_written_where_each_replica_has_none() -> None:
    with pytest.raises(AccessError) as error:
        written(job(0, replicas=3), 4)
    assert error.value.reason == "not-a-multiple"
