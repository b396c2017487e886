"""The Secrets of an installation of eight months, whose CA has to be replaced soon."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from certs import authority, secret
from certs.names import Names
from certs.state import State
from tests.e2e.api import Api
from tests.e2e.install.helm import NAMESPACE

SERVICE = f"podgate.{NAMESPACE}.svc"
AGE, LIFE, LEAF = timedelta(days=245), timedelta(days=365), timedelta(days=90)


def put_old_ca(api: Api) -> None:
    """Write them."""
    now = datetime.now(UTC)
    ca = authority.create_authority(now - AGE, LIFE)
    names = Names.of([SERVICE, f"{SERVICE}.cluster.local"])
    state = State(ca, authority.issue_server(ca, names, now, LEAF))
    put(api, "podgate-tls-ca", "Opaque", secret.authority_data(state))
    put(api, "podgate-tls", "kubernetes.io/tls", secret.serving_data(state))


def put(api: Api, name: str, kind: str, data: Mapping[str, bytes]) -> None:
    """Make a Secret."""
    encoded = {key: base64.b64encode(each).decode() for key, each in data.items()}
    body = {"metadata": {"name": name}, "type": kind, "data": encoded}
    api.request("POST", f"/api/v1/namespaces/{NAMESPACE}/secrets", body)
