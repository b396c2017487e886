"""Which commands read which documents, and how many broken ones each sort gets."""

from __future__ import annotations

from typing import NamedTuple

FILE, FOLDER, KIND, OBJECT, POLICY = "{file}", "{folder}", "{kind}", "{object}", "{policy}"


class Sort(NamedTuple):
    """One sort of documents: its share of a thousand, and the commands that read it.

    `together` read a folder of many at once, `alone` one file. KIND is the definition of the
    document's kind, OBJECT its kind and name.
    """

    share: int
    together: tuple[tuple[str, ...], ...] = ()
    alone: tuple[tuple[str, ...], ...] = ()


SORTS: dict[str, Sort] = {
    "manifests": Sort(
        375,
        together=(
            ("apply", "-p", POLICY, "--partial", FOLDER),
            ("apply", "-p", POLICY, "-o", "json", FOLDER),
            ("apply", "-p", POLICY, "-o", "text", FOLDER),
            ("explain", "-p", POLICY, "-o", "json", FOLDER),
            ("explain", "-p", POLICY, "-o", "text", FOLDER),
            ("explain", "-p", POLICY, "-o", "yaml", FOLDER),
            ("lint", FOLDER),
            ("interface", "extract", KIND, FOLDER),
            ("interface", "extract", KIND, "-o", "json", FOLDER),
        ),
        alone=(
            ("interface", "extract", KIND, FILE),
            ("interface", "suspend", KIND, FILE),
            ("interface", "update", KIND, FILE, "-c", "{component}", "--set", "schedulerName=x"),
            ("interface", "tree", OBJECT, FILE),
            ("interface", "check", KIND, "--sample", FILE),
        ),
    ),
    "policies": Sort(
        200,
        together=(
            ("lint", FOLDER),
            ("lint", "-o", "json", FOLDER),
            ("lint", "-o", "sarif", FOLDER),
            ("convert", "--partial", FOLDER),
            ("convert", "-n", "team", "--partial", FOLDER),
        ),
        alone=(
            ("lint", "-o", "json", FILE),
            ("apply", "-p", FILE, "-o", "json", "{good}"),
            ("explain", "-p", FILE, "-o", "json", "{good}"),
            ("explain", "-p", FILE, "-n", "team", "-o", "yaml"),
            ("explain", "-p", FILE, "--kind", "RayCluster"),
        ),
    ),
    "definitions": Sort(
        100,
        together=(
            ("interface", "check", FOLDER),
            ("interface", "check", "-o", "json", FOLDER),
            ("lint", FOLDER),
        ),
        alone=(
            ("interface", "check", FILE),
            ("interface", "show", FILE),
            ("interface", "extract", FILE, "{sample}"),
            ("apply", "--interfaces", FILE, "-p", POLICY, "-o", "json", "{sample}"),
            ("explain", "--interfaces", FILE, "-p", POLICY, "-o", "text", "{sample}"),
        ),
    ),
    "crds": Sort(
        50,
        together=(("interface", "infer", FOLDER),),
        alone=(
            ("interface", "infer", FILE),
            ("interface", "check", KIND, "--crd", FILE),
            ("apply", "--crds", FILE, "-p", POLICY, "-o", "json", "{good}"),
        ),
    ),
    "cases": Sort(50, together=(("test", FOLDER),)),
    "reviews": Sort(
        75,
        alone=(
            ("review", "-p", POLICY, FILE),
            ("review", "-p", POLICY, "--stage", "validate", FILE),
        ),
    ),
    "live": Sort(
        100,
        together=(
            ("audit", "-p", POLICY),
            ("audit", "-p", POLICY, "-o", "json"),
            ("audit", "--candidate", POLICY, "-o", "json"),
            ("audit", "-p", POLICY, "--injected"),
            ("audit", "-p", POLICY, "--injected", "-o", "json"),
        ),
    ),
    "kubeconfigs": Sort(
        25,
        alone=(
            ("audit", "-p", POLICY, "--kubeconfig", FILE),
            ("audit", "--injected", "-o", "json", "--kubeconfig", FILE),
            ("interface", "tree", "jobset/sample", "--kubeconfig", FILE),
            ("crds", "install", "--dry-run", "--kubeconfig", FILE),
            ("hooks", "show", "--kubeconfig", FILE),
        ),
    ),
    "settings": Sort(25, alone=(("apply", "-p", POLICY, "-o", "json", "{good}"),)),
}
SETTINGS = ("PODGATE_INJECTED", "PODGATE_TRUSTED_MUTATORS", "PODGATE_TRUSTED_CONTROLLERS")
