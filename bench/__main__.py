"""make bench: gates, limits and figures side by side; names of parts measure these alone."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

from bench import cluster, full, https, inprocess, large, many, startup
from bench.timing import Gate

PARTS = {
    "inprocess": inprocess.gates,
    "startup": startup.gates,
    "many": many.gates,
    "https": https.gates,
    "cluster": cluster.gates,
    "full": full.gates,
}
BY_NAME = {"large": large.gates}  # takes half an hour


def main(names: list[str]) -> int:
    """Run the named parts, without names those of PARTS; 0 also when a gate is missed: it is told."""
    parts = PARTS | BY_NAME
    unknown = [name for name in names if name not in parts]
    if unknown:
        print(f"no part {unknown[0]}; choose from {', '.join(parts)}", file=sys.stderr)
        return 2
    found: list[Gate] = []
    for name in names or PARTS:
        print(f"measuring {name} …", file=sys.stderr)
        found += parts[name]()
    table = Table("gate", "what", "figure", "limit", "", "measured")
    for gate in found:
        told = "met" if gate.met else "MISSED"
        table.add_row(
            gate.name, gate.what, f"{gate.figure:.3g}", f"≤ {gate.limit:g}", told, gate.detail
        )
    Console(width=160).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
