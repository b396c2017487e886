"""Spark operator: it calls Spark's own client, which makes the driver; the driver makes the rest."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.e2e.operators import webhooks
from tests.e2e.operators.authority import issue
from tests.e2e.operators.operator import Operator, Place, Running, answers
from tests.e2e.served import free_port
from tests.e2e.testbed import programs, spark

if TYPE_CHECKING:
    from tests.e2e.operators.bed import Bed

NAME, NAMESPACE = "spark-operator", "spark-operator"
HOOKS = "spark-operator-webhook"
SERVICE = "spark-operator-webhook-svc"
NAMES = {"MutatingWebhookConfiguration": HOOKS, "ValidatingWebhookConfiguration": HOOKS}
LAUNCHED = "sparkoperator.k8s.io/launched-by-spark-operator"


def arguments(place: Place) -> Iterator[str]:
    """All namespaces; the empty one stands for them."""
    yield from ("controller", "start")
    yield '--namespaces=""'
    yield f"--health-probe-bind-address=127.0.0.1:{place.health}"


def environment(place: Place) -> Mapping[str, str]:
    """Where Spark and Java are, and where the client finds the API server."""
    server = urlsplit(place.server)
    return {
        "SPARK_HOME": str(spark.home()),
        "JAVA_HOME": str(spark.java_home()),
        "KUBERNETES_SERVICE_HOST": str(server.hostname),
        "KUBERNETES_SERVICE_PORT": str(server.port),
    }


def prepare(bed: Bed, place: Place) -> None:
    """Its webhooks are a process and an account of their own; they complete and own the driver."""
    issued = issue("spark-operator-ca", [f"{SERVICE}.{NAMESPACE}.svc"])
    metadata = {"name": "spark-operator-webhook-certs", "namespace": NAMESPACE}
    bed.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": issued.pems()})
    serve_webhooks(bed, place)
    found = webhooks.configurations(NAME, "config/webhook/manifests.yaml")
    webhooks.register(bed, place, webhooks.labelled(found, LAUNCHED), NAMES, issued)


def serve_webhooks(bed: Bed, place: Place) -> None:
    """Start the process that answers them; it writes what is in the Secret where it reads it."""
    folder = place.folder / "webhook"
    folder.mkdir(exist_ok=True)
    account = bed.account(dataclasses.replace(SPARK_OPERATOR, account=HOOKS), folder)
    health = free_port()
    command = [
        programs.find(NAME)[NAME],
        *("webhook", "start", '--namespaces=""'),
        f"--webhook-port={place.webhook}",
        f"--webhook-cert-dir={place.serving_certificates}",
        f"--webhook-svc-name={SERVICE}",
        f"--webhook-svc-namespace={NAMESPACE}",
        f"--mutating-webhook-name={HOOKS}",
        f"--validating-webhook-name={HOOKS}",
        f"--health-probe-bind-address=127.0.0.1:{health}",
    ]
    variables = {"KUBECONFIG": str(account), "TMPDIR": str(folder), "HOME": str(folder)}
    bed.running[HOOKS] = Running.start(HOOKS, command, folder, **variables)
    bed.running[HOOKS].wait_until(lambda: answers(health, "/readyz"))


SPARK_OPERATOR = Operator(
    name=NAME,
    namespace=NAMESPACE,
    account="spark-operator-controller",
    arguments=arguments,
    environment=environment,
    prepare=prepare,
)
