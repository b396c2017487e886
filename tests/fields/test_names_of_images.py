"""An allowed image is allowed by its whole name: nothing that only begins, ends or looks like it is."""

from __future__ import annotations

import pytest

from tests.building import catalog, container, deployment, policy, refused, result

ALLOWED = "registry.example.com/team/app:1"
RULES = catalog(policy(f"rules: {{image: {{options: ['{ALLOWED}']}}}}"))
LOOKALIKES = (
    "registry.example.com/team/app:1.evil",
    "registry.example.com/team/app:10",
    "registry.example.com/team/app:1@sha256:" + "0" * 64,
    "registry.example.com.evil.org/team/app:1",
    "evil.org/registry.example.com/team/app:1",
    "registry.example.com:443/team/app:1",
    "registry.example.com/team/app",
    "registry.example.com/team/app:1 ",
    " registry.example.com/team/app:1",
    "registry.example.com/team/app:1\n",
    "registry.example.com/team/APP:1",
    "registry.example.com/team//app:1",
    "registry.example.com/team/../team/app:1",
    "registry\u2024example.com/team/app:1",
    "registry.example.com/team/\u0430pp:1",
    "registry.example.com/team/app:\uff11",
)


def test_the_image_itself_passes() -> None:
    made = deployment({**container(), "image": ALLOWED})
    assert result(RULES, made)["spec"]["template"]["spec"]["containers"][0]["image"] == ALLOWED


@pytest.mark.parametrize("image", LOOKALIKES)
@pytest.mark.parametrize("place", ["containers", "initContainers"])
def test_what_resembles_it_is_refused(image: str, place: str) -> None:
    good, other = {**container(), "image": ALLOWED}, {**container("other"), "image": image}
    made = deployment(good, other) if place == "containers" else deployment(good)
    made["spec"]["template"]["spec"].setdefault(place, [other])
    assert refused(RULES, made) == [("image", "options")]
