"""A webhook that starts while a stored policy is broken judges by the version before, as others do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.api import Api
from tests.e2e.served import Certificates
from tests.e2e.test_controller import (  # noqa: F401 - fixtures
    Controllers,
    Living,
    api,
    condition,
    controllers,
    is_stored_unreviewed,
    living,
    soon,
)
from tests.e2e.test_living_cluster import POLICIES, A, B, images, put, running
from tests.e2e.testbed.cluster import Cluster
from webhook.sources.last_good import NAME, collection_of, documents_of

pytestmark = pytest.mark.e2e

KEY = ("ClusterWorkloadPolicy", "", "images")


def test_a_pod_and_a_controller_that_start_late_know_the_last_good_version(
    controllers: Controllers,  # noqa: F811 - the fixture
    living: Living,  # noqa: F811 - the fixture
    api: Api,  # noqa: F811 - the fixture
    bare: Cluster,
    certificates: Certificates,
    tmp_path: Path,
) -> None:
    def remembered() -> object:
        return documents_of(api.find(f"{collection_of('default')}/{NAME}")).get(KEY, {}).get("spec")

    good = images(A)
    first = controllers.start("first", living.plain)
    put(api, good)
    soon(lambda: condition(api, "images") == ("True", "InForce"), controllers.log)
    soon(lambda: remembered() == good["spec"], controllers.log)

    first.terminate()
    first.wait(30)
    soon(lambda: is_stored_unreviewed(api, images(A, field="imagee")), controllers.log)
    with running(bare, certificates, tmp_path) as forgetful:
        assert forgetful.allows(B), "nobody has told it"
    with running(bare, certificates, tmp_path, "--own-namespace", "default") as late:
        assert late.all_say(B, allowed=False)
        assert late.all_say(A, allowed=True)
        controllers.start("second", late.plain)
        soon(lambda: condition(api, "images") == ("False", "LastGood"), controllers.log)
        assert remembered() == good["spec"], "what is broken replaces nothing"
        api.request("DELETE", f"{POLICIES}/images")
        late.soon(lambda: late.all_say(B, allowed=True))
        soon(lambda: remembered() is None, controllers.log)
