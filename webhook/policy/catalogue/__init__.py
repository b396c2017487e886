"""The field table by section; a new field is a row in one of these modules.

Order matters within a module: defaults are written in it.
"""

from webhook.policy.catalogue.compute import COMPUTE
from webhook.policy.catalogue.containers import CONTAINERS
from webhook.policy.catalogue.groups import GROUPS
from webhook.policy.catalogue.pods import PODS
from webhook.policy.catalogue.probes import PROBES
from webhook.policy.catalogue.security import SECURITY
from webhook.policy.catalogue.serving import SERVING
from webhook.policy.catalogue.storage import STORAGE
from webhook.policy.catalogue.workloads import WORKLOADS

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
