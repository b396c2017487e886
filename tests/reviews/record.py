"""`python -m tests.reviews.record`: play every scene in a real cluster and write its reviews anew."""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from tests.e2e.objects import Json
from tests.e2e.operators.bed import Bed, standing
from tests.e2e.testbed.cache import tell
from tests.reviews.recording import built_in, forged, operators
from tests.reviews.recording.scene import ALICE, Kept, Place, Scene

RECORDED = Path(__file__).parent / "recorded"
POLICIES = Path(__file__).parent / "recording" / "policies"
IN_EFFECT = 2.0
"""Seconds until the API server has heard of a change to its webhooks."""
SCENES: tuple[Scene, ...] = (*built_in.SCENES, *operators.SCENES, *forged.SCENES)


def numbered() -> Iterator[tuple[str, Scene, Kept]]:
    """Every review to keep with the name of its file; a scene more or less leaves those before."""
    everything = ((scene, kept) for scene in SCENES for kept in scene.keeps)
    for number, (scene, kept) in enumerate(everything, 1):
        yield f"{number:04d}-{kept.name}.json", scene, kept


@contextlib.contextmanager
def theatre(folder: Path) -> Iterator[Bed]:
    """A cluster with no policy but the built-in one, so that much comes to be which others forbid.

    podgate is asked about everything here, that which a registration's conditions spare it too.
    """
    with standing(folder, policies=POLICIES) as bed:
        role = ("clusterrolebinding", ALICE, "--clusterrole=cluster-admin", f"--user={ALICE}")
        bed.gate.kubectl("create", *role)
        bed.gate.kubectl("taint", "nodes", "--all", "example.com/spot-")
        for kind in ("mutating", "validating"):
            unconditional(bed, f"{kind}webhookconfigurations.admissionregistration.k8s.io/podgate")
        yield bed


def unconditional(bed: Bed, name: str) -> None:
    """Take the match conditions from a webhook configuration, and wait until that is in effect."""
    entries = json.loads(bed.gate.kubectl("get", name, "--output=json").stdout)["webhooks"]
    patch = [
        {"op": "remove", "path": f"/webhooks/{index}/matchConditions"}
        for index, each in enumerate(entries)
        if "matchConditions" in each
    ]
    bed.gate.kubectl("patch", name, "--type=json", f"--patch={json.dumps(patch)}")
    time.sleep(IN_EFFECT)


def played(bed: Bed, scene: Scene) -> Place:
    """The namespace of a scene after it."""
    for operator in scene.operators:
        bed.run(operator)
    place = Place(bed, bed.gate.governed_namespace(scene.name))
    tell(f"playing {scene.name}")
    scene.play(place)
    return place


def written(place: Place, scene: Scene) -> None:
    """Write what a scene keeps, in one line each."""
    for name, of, kept in numbered():
        if of is scene:
            review = small(json.loads(place.seen(kept).body))
            text = json.dumps(review, separators=(",", ":"), ensure_ascii=False)
            (RECORDED / name).write_text(f"{text}\n", "utf-8")


def small(review: Json) -> Json:
    """A review as it came but for who wrote what by Update: half of it, and it shows nothing."""
    for key in ("object", "oldObject"):
        metadata = (review["request"].get(key) or {}).get("metadata", {})
        if "managedFields" in metadata:
            applied = [each for each in metadata["managedFields"] if each["operation"] == "Apply"]
            metadata["managedFields"] = applied
    return review


def record(wanted: Collection[str]) -> None:
    """Play these scenes, or all, and write what they keep."""
    RECORDED.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="podgate-record-") as folder,
        theatre(Path(folder)) as bed,
    ):
        for scene in SCENES:
            if not wanted or scene.name in wanted:
                written(played(bed, scene), scene)


def main() -> None:
    """Read which scenes are asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.reviews.record", description=__doc__)
    names = [scene.name for scene in SCENES]
    parser.add_argument("scenes", nargs="*", help=f"of {', '.join(names)}; all without any")
    record(parser.parse_args().scenes)


if __name__ == "__main__":
    main()
