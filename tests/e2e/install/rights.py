"""What the chart's accounts may do, and what the API server says that they did."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.api import Api, Json

AUDIT_POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts:podgate-system"]
- level: None
"""
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb on one resource, in a namespace or everywhere, of one name or of all."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    def covers(self, used: Right) -> bool:
        """Whether what was done was allowed by this."""
        same = (self.verb, self.group, self.resource) == (used.verb, used.group, used.resource)
        space, name = self.namespace in ("", used.namespace), self.name in ("", used.name)
        return same and space and name

    def __str__(self) -> str:
        """For people."""
        where = f" in {self.namespace}" if self.namespace else ""
        what = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {what}{f'/{self.name}' if self.name else ''}{where}"


def granted(api: Api, namespace: str, account: str) -> set[Right]:
    """What roles give to one account, groups aside."""
    found: set[Right] = set()
    for kind in ("clusterrolebindings", "rolebindings"):
        for binding in api.request("GET", f"{RBAC}/{kind}")["items"]:
            subjects = binding.get("subjects") or ()
            ours = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
            if ours not in [{key: each.get(key) for key in ours} for each in subjects]:
                continue
            space = binding["metadata"].get("namespace", "")
            reference = binding["roleRef"]
            within = f"namespaces/{space}/roles" if reference["kind"] == "Role" else "clusterroles"
            role = api.request("GET", f"{RBAC}/{within}/{reference['name']}")
            for rule in role["rules"] or ():
                found.update(rights_of(rule, space))
    return found


def rights_of(rule: Json, namespace: str) -> Iterator[Right]:
    """The rights in one rule of a role."""
    for verb in rule["verbs"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for name in rule.get("resourceNames") or ("",):
                    yield Right(verb, group, resource, namespace, name)


def events(log: Path, account: str) -> Iterable[Json]:
    """What the API server says of one account: whole lines of its audit log."""
    for line in log.read_text("utf-8").splitlines(keepends=True):
        event = json.loads(line) if line.endswith("\n") else {}
        if event.get("user", {}).get("username", "").endswith(f":{account}"):
            yield event


def used(log: Path, account: str) -> tuple[set[Right], list[str]]:
    """What one account did, and what it was forbidden to do."""
    done: set[Right] = set()
    forbidden = []
    for event in events(log, account):
        reference = event.get("objectRef")
        if not reference or not reference.get("resource"):
            continue
        resource = "/".join(
            each for each in (reference["resource"], reference.get("subresource")) if each
        )
        right = Right(
            event["verb"],
            reference.get("apiGroup", ""),
            resource,
            reference.get("namespace", ""),
            reference.get("name", ""),
        )
        code = event.get("responseStatus", {}).get("code")
        reason = event.get("annotations", {}).get("authorization.k8s.io/decision")
        if reason == "forbid":
            forbidden.append(f"{right}")
            continue
        done.add(right)
        # Server-side apply of what is not there yet needs the right to create it.
        if right.verb == "patch" and code == 201:
            done.add(Right("create", right.group, right.resource, right.namespace, right.name))
    return done, forbidden
