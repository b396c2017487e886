"""The command `python -m tests.e2e.testbed`."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.e2e.testbed import background, binaries, processes, programs, upstream
from tests.e2e.testbed.cluster import PROCESS_NAMES, REPOSITORY, NotStartedError
from tests.e2e.testbed.missing import MissingTestbed


def up(folder: Path) -> int:
    """Start a cluster in the background and print how to reach it."""
    state = background.up(folder)
    print(f"# {state.server} is up; stop it with `python -m tests.e2e.testbed down`")
    print(f"export KUBECONFIG={shlex.quote(str(state.kubeconfig))}")
    print(f"# kubectl: {state.kubectl}")
    return 0


def down(folder: Path) -> int:
    """Stop the cluster of `folder`."""
    stopped = background.down(folder)
    print(f"stopped: {', '.join(stopped) or 'nothing was running'}")
    return 0


def status(folder: Path) -> int:
    """Print which processes run; 0 if all do."""
    state = background.load(folder)
    if state is None:
        print(f"no cluster in {folder}")
        return 1
    alive = state.alive()
    print(state.server)
    for name, recorded in state.processes.items():
        print(f"{name:24} {recorded.pid:>8} {'up' if alive[name] else 'DOWN'}")
    return 0 if all(alive.values()) else 1


def build(_: Path, names: Sequence[str] = ()) -> int:
    """Build or find the binaries, fetch the archives of other projects, and print the paths."""
    found = binaries.find()
    print(found.etcd, found.kube_apiserver, found.kube_controller_manager, found.kubectl, sep="\n")
    for path in programs.find(*names).values():
        print(path)
    for name, project in upstream.PROJECTS.items():
        if project.pins == upstream.PINS or name.removeprefix("operators/") in names:
            print(upstream.module_dir(name))
    return 0


def logs(folder: Path) -> int:
    """Print the path and the last lines of each log."""
    for name in PROCESS_NAMES:
        path = folder / f"{name}.log"
        print(f"==> {path} <==\n{processes.tail(path)}\n")
    return 0


def known(name: str) -> str:
    """Return `name` if it is that of a program; argparse tells the error."""
    # Not `choices`: before Python 3.12 these refuse that no name is given.
    if name not in NAMES:
        raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(NAMES)}")
    return name


NAMES = (*programs.KUBERNETES, *programs.PROGRAMS)
COMMANDS = {"up": up, "down": down, "status": status, "build": build, "logs": logs}


def main() -> int:
    """Run one command; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.testbed")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, function in COMMANDS.items():
        command = commands.add_parser(name, help=function.__doc__)
        command.add_argument("--dir", type=Path, default=REPOSITORY / ".cluster")
        if name == "build":
            told = "operators and the like besides the control plane"
            command.add_argument("--ci", action="store_true", help="and all that `make test` runs")
            command.add_argument("names", nargs="*", type=known, help=f"{told}: {', '.join(NAMES)}")
    arguments = parser.parse_args()
    folder = arguments.dir.resolve()
    try:
        if arguments.command == "build":
            more = programs.IN_CI if arguments.ci else ()
            return build(folder, [*arguments.names, *more])
        return COMMANDS[arguments.command](folder)
    except (MissingTestbed, NotStartedError, background.BackgroundError) as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
