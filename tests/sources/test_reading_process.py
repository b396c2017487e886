"""The reading process as the parent of the workers forks it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.generated import ROOT
from tests.libjq.test_jq_worker import is_zombie
from tests.server.test_http import eventually

KUBECONFIG = """
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: a, user: {token: x}}]
"""
FORK = """
import os, sys, time
from pathlib import Path
from webhook.service.settings import Settings
from webhook.sources.reader import read_cluster
from webhook.sources.snapshot import Snapshot

folder, parent = Path(sys.argv[1]), os.getpid()
settings = Settings.from_sources({"kubeconfig": folder / "kubeconfig"}, {})
process = os.fork()
if process:
    (folder / "process").write_text(str(process))
    sys.exit()
while os.getppid() == parent:
    time.sleep(0.01)
read_cluster(settings, Snapshot(folder), lambda: None, parent)
"""


def test_it_ends_where_its_parent_has_ended_before_it_began(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    subprocess.run([sys.executable, "-c", FORK, str(tmp_path)], cwd=ROOT, check=True)
    process = int((tmp_path / "process").read_text())
    try:
        assert eventually(lambda: is_zombie(process))
    finally:
        if not is_zombie(process):
            os.kill(process, signal.SIGKILL)
