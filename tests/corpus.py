"""make corpus: every real manifest of the supported kinds through the offline decision, as a table."""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from webhook.adapters.files import read_all
from webhook.core.decision import Allowed, Denied
from webhook.core.workload.coverage import uncovered
from webhook.core.workload.locations import Definition, LocationError, locate
from webhook.loader import Sources, load
from webhook.offline import Place, judge, manifests_of, references_of

ROOT = Path(__file__).resolve().parent.parent
POLICY = ROOT / "tests" / "corpus-policy.yaml"


def shared_data() -> Path | None:
    """The folder of real input, next to the checkout or where PODGATE_SHARED says."""
    place = Path(os.environ.get("PODGATE_SHARED") or ROOT.parent / "shared" / "data")
    return place if place.is_dir() else None


def count(folder: Path) -> tuple[dict[str, Counter[str]], list[str]]:
    """Counts by kind, and everything that went wrong."""
    catalog, problems = load(Sources(policies=(str(POLICY),)))
    assert catalog is not None, problems
    documents, _ = read_all([str(folder / "manifests")], kubernetes=True)
    objects, _ = manifests_of(documents)
    references = references_of(objects, Place())
    table: dict[str, Counter[str]] = defaultdict(Counter)
    faults: list[str] = []
    for source, raw in objects:
        group, _, version = str(raw["apiVersion"]).rpartition("/")
        definition = catalog.definition(group, str(raw["kind"]), version)
        if definition is None:
            continue
        row = table[f"{raw['kind']}.{group}" if group else str(raw["kind"])]
        row["documents"] += 1
        try:
            locations = locate(definition, raw)
            row["pod locations"] += len(locations)
            row["uncovered places"] += len(uncovered(raw, locations, walked_whole(definition)))
            verdict = judge(raw, source, catalog, references, Place())
        except LocationError as error:
            row["not locatable"] += 1
            faults.append(f"{source}: {error.text}")
            continue
        except Exception as error:
            faults.append(f"{source}: {type(error).__name__}: {error}")
            continue
        match verdict.decision:
            case Allowed(changes=changes):
                row["allowed"] += 1
                row["places filled in"] += len(changes)
            case Denied(violations=violations):
                row["refused"] += 1
                row["violations"] += len(violations)
    return table, faults


def walked_whole(definition: Definition) -> Definition:
    """The definition as if nothing were known of the schema, so that every place is looked at."""
    profile = replace(definition.profile, open_subtrees=None)
    return Definition(definition.interface, profile, definition.others)


COLUMNS = (
    "documents",
    "pod locations",
    "uncovered places",
    "allowed",
    "places filled in",
    "refused",
    "violations",
)


def main() -> int:
    """Print the table; exit code 1 when something went wrong."""
    folder = shared_data()
    if folder is None:
        print(
            "no real manifests here: put the shared folder beside the checkout, or set PODGATE_SHARED"
        )
        return 2
    counts, faults = count(folder)
    table = Table("kind", *COLUMNS, title="real manifests through podgate apply")
    for kind, row in sorted(counts.items()):
        table.add_row(kind, *(str(row[column]) for column in COLUMNS))
    totals = Counter[str]()
    for row in counts.values():
        totals.update(row)
    table.add_row("all", *(str(totals[column]) for column in COLUMNS), style="bold")
    Console(width=140).print(table)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
