"""Groups, versions and plural names of the kinds of documents that podgate reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from webhook.interface import profile_document
from webhook.policy import asset_document
from webhook.policy.envelope import CLUSTER_KIND, GROUP, NAMESPACED_KIND, VERSION

PROVIDED: Final = "podgate.dev/provided"
"""The label of the CustomResourceDefinitions that podgate installs."""
EXCEPTION_KIND: Final = "PolicyException"


@dataclass(frozen=True, slots=True)
class KindNames:
    """The names of one kind. All kinds have one version."""

    kind: str
    plural: str
    short: str
    group: str = GROUP
    namespaced: bool = False

    @property
    def full(self) -> str:
        """The name of the CustomResourceDefinition."""
        return f"{self.plural}.{self.group}"

    @property
    def path(self) -> str:
        """The path of the collection in the API."""
        return f"/apis/{self.group}/{VERSION}/{self.plural}"


INTERFACES: Final = (
    KindNames("ResourceInterface", "resourceinterfaces", "ri", "optimization.nvidia.com"),
    KindNames("Karta", "kartas", "krt", "run.ai"),
)
"""Kinds of resource interfaces, which other projects own."""
OWN: Final = (
    KindNames(NAMESPACED_KIND, "workloadpolicies", "wpol", namespaced=True),
    KindNames(CLUSTER_KIND, "clusterworkloadpolicies", "cwpol"),
    KindNames(asset_document.KIND, "workloadassets", "wasset"),
    KindNames(profile_document.KIND, "workloadprofiles", "wprof"),
    KindNames(EXCEPTION_KIND, "policyexceptions", "polex", namespaced=True),
)
"""Kinds of podgate, in the order of semantics §9."""
ALL: Final = (*INTERFACES, *OWN)
