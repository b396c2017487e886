"""make bench: every gate, limit and figure side by side; names of parts measure these alone."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

from bench import cluster, full, https, inprocess, many, startup
from bench.timing import Gate

PARTS = {
    "inprocess": inprocess.gates,
    "startup": startup.gates,
    "many": many.gates,
    "https": https.gates,
    "cluster": cluster.gates,
    "full": full.gates,
}


def main(names: list[str]) -> int:
    """Run the named parts, all of them without names; 0 also when a gate is missed: it is told."""
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"no part {unknown[0]}; choose from {', '.join(PARTS)}", file=sys.stderr)
        return 2
    found: list[Gate] = []
    for name in names or PARTS:
        print(f"measuring {name} …", file=sys.stderr)
        found += PARTS[name]()
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
