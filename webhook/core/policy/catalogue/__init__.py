"""The field table by section; a new field is a row in one of these modules.

Order matters within a module: defaults are written in it.
"""

from webhook.core.policy.catalogue.compute import COMPUTE
from webhook.core.policy.catalogue.containers import CONTAINERS
from webhook.core.policy.catalogue.groups import GROUPS
from webhook.core.policy.catalogue.pods import PODS
from webhook.core.policy.catalogue.probes import PROBES
from webhook.core.policy.catalogue.security import SECURITY
from webhook.core.policy.catalogue.serving import SERVING
from webhook.core.policy.catalogue.storage import STORAGE
from webhook.core.policy.catalogue.workloads import WORKLOADS

ROWS = (
    *CONTAINERS,
    *PODS,
    *WORKLOADS,
    *COMPUTE,
    *SECURITY,
    *STORAGE,
    *PROBES,
    *SERVING,
)

__all__ = ["GROUPS", "ROWS"]
