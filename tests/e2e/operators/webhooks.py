"""An operator's own webhooks, registered by URL with a certificate of ours."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.e2e.operators.authority import Issued, issue
from tests.e2e.operators.operator import Place
from tests.e2e.testbed import upstream

if TYPE_CHECKING:
    from tests.e2e.operators.bed import Bed

Json = dict[str, Any]
ROTATED = Path("/tmp/k8s-webhook-server/serving-certs/tls.crt")
"""Where some rotators look whether a certificate is mounted, wherever their server reads it."""


def serve(
    bed: Bed, place: Place, project: str, file: str, names: Mapping[str, str], label: str
) -> Issued:
    """Register what `file` of a project's archive registers; `names` are names by kind.

    Pods are sent only if they have the label, which is a patch of the project's installation. The
    certificate is where the operator's server reads it.
    """
    issued = issue(f"{project}-ca", ["localhost"])
    issued.write(place.serving_certificates)
    register(bed, place, labelled(configurations(project, file), label), names, issued)
    return issued


def labelled(documents: list[Json], label: str) -> list[Json]:
    """Configurations that send pods only if these have the label."""
    documents = copy.deepcopy(documents)
    for webhook in (each for document in documents for each in document["webhooks"]):
        if any(rule["resources"] == ["pods"] for rule in webhook["rules"]):
            exists = {"matchExpressions": [{"key": label, "operator": "Exists"}]}
            webhook["objectSelector"] = exists
    return documents


def configurations(project: str, file: str) -> list[Json]:
    """The webhook configurations in a file of a project's archive."""
    text = (upstream.module_dir(f"operators/{project}") / file).read_text("utf-8")
    documents = yaml.load_all(text, yaml.CSafeLoader)
    return [each for each in documents if each and each["kind"].endswith("WebhookConfiguration")]


def register(
    bed: Bed, place: Place, documents: list[Json], names: Mapping[str, str], issued: Issued
) -> None:
    """Apply configurations with each webhook's service replaced by the operator's port."""
    for found in documents:
        document = copy.deepcopy(found)
        metadata = document["metadata"]
        document["metadata"] = {"name": names.get(document["kind"], metadata["name"])}
        for webhook in document["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            url = f"https://127.0.0.1:{place.webhook}{path}"
            webhook["clientConfig"] = {"url": url, "caBundle": issued.bundle}
        bed.apply(document)


def rotate(
    bed: Bed, place: Place, namespace: str, secret: str, ca_name: str, service: str
) -> Issued:
    """Leave a certificate that the operator's rotator finds good, in its Secret and its folder."""
    issued = issue(ca_name, [f"{service}.{namespace}.svc", "localhost"])
    issued.write(place.serving_certificates)
    if not ROTATED.exists():
        ROTATED.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(place.serving_certificates / "tls.crt", ROTATED)
    bed.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": secret, "namespace": namespace},
            "data": issued.data(),
        }
    )
    return issued
