"""Every field of the language on every kind, at a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import whole as w
from tests.e2e.gate import Gate

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def whole(
    gate: Gate, shared_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[w.Whole]:
    crds = [shared_data / "crds" / f"{name}.yaml" for name in w.CRDS]
    with w.running(gate, tmp_path_factory.mktemp("whole"), crds) as whole:
        yield whole


def test_try(whole: w.Whole) -> None:
    import pickle
    out = {}
    for space, more in ((w.CLIENT, []), (w.SERVER, ["--server-side"])):
        done = whole.gate.kubectl("apply", *more, f"--filename={w.HERE / 'kinds'}", f"-n={space}", check=False)
        print(done.stdout, done.stderr)
        out[space] = whole.settled(space)
    out["rec"] = whole.recorder.recordings()
    Path("/tmp/out.pickle").write_bytes(pickle.dumps(out))
    Path("/tmp/podgate.log").write_text(whole.podgate.log())
