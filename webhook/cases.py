"""Golden cases: policies, an object and what is expected in one file, as a policy author writes it.

A case.yaml holds `policies` (documents in any envelope, or paths relative to the file), what is
submitted, and `expect`. `object` is a manifest as `podgate apply` takes it; `request` is a request
as an API server brings it. `variants` repeat the case with some places `set` to other values.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import unified_diff
from functools import lru_cache
from itertools import pairwise
from pathlib import Path as FilePath
from typing import Any

import yaml

from webhook import clock, jq
from webhook.adapters import files
from webhook.adapters.yaml_source import read_documents
from webhook.admission.judge import judge_review
from webhook.core import pointer, wording
from webhook.core.assemble import Choices, Documents, assemble, parsed
from webhook.core.catalog import Catalog
from webhook.core.decision import Allowed, Decision, Denied, Violation
from webhook.core.patch import diff
from webhook.core.pointer import Path
from webhook.core.policy.combine import COMBINATIONS, GUARDED
from webhook.core.policy.envelope import Context
from webhook.core.references import References
from webhook.core.request import Request, Stage
from webhook.core.server_defaults import ServerDefaults
from webhook.core.source import SourceDocument
from webhook.core.workload.injected_items import parse_injected
from webhook.core.workload.kept_shape import Shapes
from webhook.core.workload.kind_schema import KindSchema, read_schemas
from webhook.core.workload.trusted_list import parse_trusted
from webhook.core.workload.vocabulary import Vocabulary
from webhook.loader import DEFAULT_MINOR, server_defaults, shipped_paths, trusted_list
from webhook.offline import Place, judge, references_of

FILE = "case.yaml"
DOCUMENTS = ("policies", "assets", "interfaces")
CRDS = "crds"
PLACE = (
    "namespace",
    "namespaceLabels",
    "workloadType",
    "ruleCombination",
    "systemPolicy",
    "settings",
    "time",
)
SUBMITTED = ("object", "request")
CASE_KEYS = (*DOCUMENTS, CRDS, *PLACE, *SUBMITTED, "references", "expect", "variants")
VARIANT_KEYS = ("name", "set", "expect")
REQUEST_KEYS = (
    "operation",
    "object",
    "old",
    "user",
    "groups",
    "extra",
    "fieldManager",
    "replaces",
    "subresource",
    "resource",
    "stage",
    "dryRun",
)
EXPECT_KEYS = ("allowed", "judged", "object", "patch", "changes", "violations", "warnings", "audit")
VIOLATION_KEYS = (
    "field",
    "path",
    "rule",
    "reason",
    "value",
    "allowed",
    "policy",
    "scope",
    "key",
    "message",
)
ANY = "any"
STEP = re.compile(r'\.?([A-Za-z_][A-Za-z0-9_-]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]')


class BadCase(Exception):  # noqa: N818 - it names a state of the file
    """A case that cannot be run: what is wrong with its file or documents."""


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to try: the file, its content, and which variant (None: the case itself).

    `given` holds what is submitted as kubectl reads it; `expect` what should come of it, None
    while nobody has said.
    """

    file: FilePath
    name: str
    given: Mapping[str, Any]
    document: SourceDocument
    expect: Mapping[str, Any] | None
    at: Path

    @property
    def offline(self) -> bool:
        """Whether a manifest is judged, not a request."""
        return "object" in self.given


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case: the decision, the object and patch, and what they started from."""

    decision: Decision
    submitted: Any
    object: Any
    patch: tuple[dict[str, Any], ...]


# Reading


def cases_in(folder: FilePath) -> list[Case]:
    """Every case and variant below a folder, in order of path; BadCase for a file that is none."""
    return [case for file in sorted(folder.rglob(FILE)) for case in cases_of(file)]


def cases_of(file: FilePath) -> list[Case]:
    """The case of one file, then its variants."""
    document = one_document(file, kubernetes=False)
    submitted = one_document(file, kubernetes=True).data
    data = document.data
    refuse_unknown(data, CASE_KEYS, file, "a case")
    if sum(key in data for key in SUBMITTED) != 1:
        raise BadCase(f"{file}: a case needs either object or request")
    refuse_misshapen(data, file)
    given = {**data, **{key: submitted[key] for key in SUBMITTED if key in data}}
    found: list[Case] = []
    if "expect" in data or "variants" not in data:
        found.append(Case(file, file.parent.name, given, document, expected(file, data), ()))
    for index, body in enumerate(data.get("variants") or ()):
        refuse_unknown(body, VARIANT_KEYS, file, f"variants[{index}]")
        name = f"{file.parent.name}: {body.get('name') or index}"
        changed = {**given, **with_places_set(given, submitted["variants"][index].get("set") or {})}
        at: Path = ("variants", index)
        found.append(Case(file, name, changed, document, expected(file, body), at))
    return found


def refuse_misshapen(data: Mapping[str, Any], file: FilePath) -> None:
    """Parts that are no list, map or object where a case has one are mistakes too."""
    wanted: list[tuple[str, Any, type]] = []
    wanted += [(key, data.get(key), list) for key in (*DOCUMENTS, "references", "variants")]
    wanted += [
        (key, data.get(key), dict) for key in ("namespaceLabels", "settings", "request", "expect")
    ]
    variants = data.get("variants")
    for index, each in enumerate(variants if isinstance(variants, list) else ()):
        if isinstance(each, dict):
            at = f"variants[{index}]"
            wanted += [(f"{at}.{key}", each.get(key), dict) for key in ("set", "expect")]
    for key, value, kind in wanted:
        if value is not None and not isinstance(value, kind):
            raise BadCase(f"{file}: {key} must be a {'list' if kind is list else 'map'}")
    request = data.get("request")
    submitted = data.get("object") if request is None else request.get("object")
    named = isinstance(submitted, dict) and submitted.get("apiVersion") and submitted.get("kind")
    if not named:
        raise BadCase(f"{file}: object must be a map with apiVersion and kind")


def one_document(file: FilePath, *, kubernetes: bool) -> SourceDocument:
    """The single document of a case's file."""
    documents, faults = read_documents(file.read_bytes(), str(file), kubernetes=kubernetes)
    if faults:
        raise BadCase("; ".join(f"{file}:{each.line}: {each.message}" for each in faults))
    if len(documents) != 1 or not isinstance(documents[0].data, dict):
        raise BadCase(f"{file}: a case is one YAML map")
    return documents[0]


def refuse_unknown(data: Any, known: Sequence[str], file: FilePath, what: str) -> None:
    """Unknown keys are mistakes, never ignored."""
    if not isinstance(data, dict):
        raise BadCase(f"{file}: {what} must be a map")
    if strange := [str(key) for key in data if key not in known]:
        raise BadCase(f"{file}: {what} has unknown keys: {', '.join(strange)}")


def expected(file: FilePath, data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The checked `expect` of a case or variant."""
    expect = data.get("expect")
    if not expect:
        return None
    refuse_unknown(expect, EXPECT_KEYS, file, "expect")
    for key in ("violations", "audit"):
        for each in expect.get(key) or ():
            refuse_unknown(each, VIOLATION_KEYS, file, f"expect.{key}[]")
    if expect.get("violations") and expect.get("allowed"):
        raise BadCase(f"{file}: expect is either allowed or has violations")
    return dict(expect)


def with_places_set(given: Mapping[str, Any], places: Mapping[str, Any]) -> dict[str, Any]:
    """What is submitted with some places set; null takes a place out.

    Places are display paths within the object, or within the request for a case with a request.
    """
    key = next(key for key in SUBMITTED if key in given)
    holder = {key: copy.deepcopy(given[key])}
    for text, value in places.items():
        try:
            set_place(holder, (key, *path_of(text)), value)
        except (LookupError, TypeError, AttributeError) as error:
            raise BadCase(f"{text} cannot be set: its parent is of another type") from error
    return holder


def path_of(text: str) -> Path:
    """A display path such as `spec.containers[0].image` as steps."""
    steps: list[str | int] = []
    end = 0
    while end < len(text):
        match = STEP.match(text, end)
        if match is None:
            raise BadCase(f"not a path: {text}")
        name, index, quoted = match.groups()
        if quoted is not None:
            steps.append(yaml.safe_load(quoted))
        else:
            steps.append(name if name is not None else int(index))
        end = match.end()
    return tuple(steps)


def set_place(document: Any, path: Path, value: Any) -> None:
    """Set one place of a document that may be changed; missing maps on the way are made."""
    node = document
    for step, following in pairwise(path):
        if isinstance(node, dict) and node.get(step) is None:
            node[step] = [] if isinstance(following, int) else {}
        node = node[step]
    last = path[-1]
    if isinstance(node, list) and isinstance(last, int):
        node[last : last + 1] = [] if value is None else [value]
    elif value is None:
        node.pop(last, None)
    else:
        node[last] = value


# Running


@lru_cache(maxsize=4)
def shipped(*, with_system_policy: bool) -> Documents:
    """The shipped definitions, and the built-in system policy unless a case leaves it out."""
    paths = [each for each in shipped_paths() if with_system_policy or "system" not in each]
    documents, problems = files.read_all(paths)
    if problems:
        raise BadCase("; ".join(wording.problem_text(each) for each in problems))
    return parsed(documents, Context(), shipped=True)


@lru_cache(maxsize=1)
def defaults_table() -> ServerDefaults:
    """The server-default table of the minor version that the commands take by default."""
    table = server_defaults(DEFAULT_MINOR)
    assert isinstance(table, ServerDefaults)
    return table


def inline(document: SourceDocument, at: Path, index: int) -> SourceDocument:
    """The part of a case's file at `at` as a document of its own, places and source texts kept."""
    size = len(at)

    def below(table: Mapping[Path, Any]) -> dict[Path, Any]:
        return {path[size:]: found for path, found in table.items() if path[:size] == at}

    data = pointer.read(document.data, at)
    return SourceDocument(
        document.origin, index, data, below(document.positions), below(document.texts)
    )


def documents_of(case: Case) -> list[SourceDocument]:
    """Policies, assets and interfaces of a case, inline ones and those of files beside it."""
    found: list[SourceDocument] = []
    for key in DOCUMENTS:
        found += listed(case, key, len(found))
    return found


def listed(case: Case, key: str, before: int = 0) -> list[SourceDocument]:
    """The documents of one list, numbered behind those that come before."""
    found: list[SourceDocument] = []
    for index, each in enumerate(case.given.get(key) or ()):
        if isinstance(each, str):
            read, problems = files.read_all([str(case.file.parent / each)])
            if problems:
                raise BadCase("; ".join(wording.problem_text(one) for one in problems))
            found += read
        else:
            found.append(inline(case.document, (key, index), before + len(found) + 1))
    return found


def schemas_for(case: Case, given: Sequence[KindSchema]) -> list[KindSchema]:
    """What the case's own CRDs say, and of other kinds those that were given beside it."""
    shapes = Shapes()
    own: list[KindSchema] = []
    for document in listed(case, CRDS):
        found, problems = read_schemas(document, shapes)
        if problems:
            raise BadCase("\n".join(wording.problem_text(each) for each in problems))
        own += found
    kinds = {(each.group, each.kind) for each in own}
    return own + [each for each in given if (each.group, each.kind) not in kinds]


def place_of(case: Case) -> Place:
    """The namespace of a case and its labels."""
    labels = case.given.get("namespaceLabels") or {}
    namespace, time = case.given.get("namespace"), case.given.get("time")
    return Place(str(namespace or "default"), labels, str(time or ""))


def catalog_of(case: Case, schemas: Sequence[KindSchema] = ()) -> Catalog:
    """The catalog of a case's documents beside the shipped ones; BadCase when one is no good."""
    given = case.given
    combination = given.get("ruleCombination") or GUARDED
    if combination not in COMBINATIONS:
        raise BadCase(f"{case.file}: ruleCombination is one of {', '.join(COMBINATIONS)}")
    context = Context(workload_type=given.get("workloadType"), namespace=place_of(case).namespace)
    own = shipped(with_system_policy=given.get("systemPolicy") is not False)
    choices = Choices(combination, words_of(case), context)
    known = schemas_for(case, schemas)
    catalog, problems = assemble(own, documents_of(case), choices, defaults_table(), schemas=known)
    if catalog is None:
        errors = [each for each in problems if each.severity == "error"]
        raise BadCase("\n".join(wording.problem_text(each) for each in errors))
    return catalog


def words_of(case: Case) -> Vocabulary:
    """The words of the installation that a case is tried in, by the names of `podgate serve`."""
    given = case.given.get("settings") or {}
    known = {each.name for each in fields(Vocabulary)}
    found: dict[str, Any] = {}
    for key, value in given.items():
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", str(key)).lower()
        if name not in known:
            raise BadCase(f"{case.file}: settings has no {key}")
        found[name] = tuple(value) if isinstance(value, list) else value
    if "injected" in found:
        injected, problems = parse_injected(inline(case.document, ("settings", "injected"), 1))
        if problems:
            raise BadCase("; ".join(wording.problem_text(each) for each in problems))
        found["injected"] = injected
    if "trusted" in found:
        trusted, problems = parse_trusted(inline(case.document, ("settings", "trusted"), 1))
    else:
        trusted, problems = trusted_list(None)
    if problems:
        raise BadCase("; ".join(wording.problem_text(each) for each in problems))
    found["trusted"] = trusted
    if "features" in found:
        found["features"] = frozenset(found["features"])
    return Vocabulary(**found)


def references_for(case: Case) -> References:
    """What the case says of other objects: claims, claim templates, priority classes."""
    listed = [("references", each) for each in case.given.get("references") or ()]
    return references_of(listed, place_of(case))


def run(case: Case, schemas: Sequence[KindSchema] = ()) -> Outcome:
    """Judge what the case submits."""
    catalog, references = catalog_of(case, schemas), references_for(case)
    if case.offline:
        return run_manifest(case, catalog, references)
    return run_request(case, catalog, references)


def run_manifest(case: Case, catalog: Catalog, references: References) -> Outcome:
    """The manifest as `podgate apply` judges it: the raw file is the intent."""
    raw = case.given["object"]
    verdict = judge(raw, str(case.file), catalog, references, place_of(case))
    return Outcome(verdict.decision, raw, verdict.object, verdict.patch)


def run_request(case: Case, catalog: Catalog, references: References) -> Outcome:
    """A request in the named stage; without one in both, as an API server asks."""
    request = request_of(case)
    submitted = request.object
    stage = case.given["request"].get("stage")
    decision = judge_review(request, catalog, references, jq.evaluator())
    if stage is None and isinstance(decision, Allowed):
        final = replace(request, object=decision.object, stage=Stage.VALIDATE)
        second = judge_review(final, catalog, references, jq.evaluator())
        if isinstance(second, Denied):
            decision = second
    if isinstance(decision, Denied):
        return Outcome(decision, submitted, None, ())
    return Outcome(decision, submitted, decision.object, decision.patch)


def request_of(case: Case) -> Request:
    """The request that a case describes."""
    body = case.given["request"]
    refuse_unknown(body, REQUEST_KEYS, case.file, "request")
    document, place = body.get("object"), place_of(case)
    metadata = document.get("metadata") or {}
    group, _, version = str(document.get("apiVersion")).rpartition("/")
    resource = body.get("resource") or {}
    return Request(
        group,
        version,
        str(document.get("kind")),
        str(body.get("operation") or ("UPDATE" if body.get("old") is not None else "CREATE")),
        document,
        old=body.get("old"),
        resource=str(resource.get("resource") or ""),
        resource_group=str(resource.get("group") or ""),
        resource_version=str(resource.get("version") or ""),
        subresource=str(body.get("subresource") or ""),
        namespace=metadata.get("namespace") or place.namespace,
        name=str(metadata.get("name") or metadata.get("generateName") or ""),
        user=str(body.get("user") or "someone@example.com"),
        groups=tuple(body.get("groups") or ()),
        extra={key: tuple(held) for key, held in (body.get("extra") or {}).items()},
        field_manager=str(body.get("fieldManager") or ""),
        replaces=body.get("replaces") is True,
        dry_run=body.get("dryRun") is True,
        stage=Stage(body.get("stage") or "mutate"),
        namespace_labels=place.labels,
        time=place.time or clock.moment(),
    )


# Comparing


def violation_facts(violation: Violation) -> dict[str, Any]:
    """One violation as a case writes it."""
    source = violation.source
    return {
        "field": violation.field,
        "path": pointer.display(violation.path),
        "rule": violation.rule,
        "reason": violation.reason,
        "value": violation.value,
        "allowed": violation.allowed,
        "policy": source.policy if source else None,
        "scope": source.scope if source else None,
        "key": violation.key,
        "message": wording.violation_text(violation),
    }


def changes_of(outcome: Outcome) -> dict[str, Any]:
    """Every place that differs from what was submitted with its new value; null: taken out."""
    ops = diff(outcome.submitted, outcome.object)
    return {
        pointer.display(pointer.decode(op["path"], indices=True)): op.get("value") for op in ops
    }


def facts(outcome: Outcome) -> dict[str, Any]:
    """Everything an `expect` may speak of, in its words."""
    decision = outcome.decision
    found: dict[str, Any] = {"allowed": isinstance(decision, Allowed)}
    if isinstance(decision, Allowed):
        found["judged"] = decision.judged
        found["object"] = outcome.object
        found["patch"] = list(outcome.patch)
        found["changes"] = changes_of(outcome)
        found["violations"] = []
    else:
        found["violations"] = [violation_facts(each) for each in decision.violations]
    found["warnings"] = sorted({each.reason for each in decision.warnings})
    found["audit"] = [violation_facts(each) for each in decision.audit]
    return found


def compare(expect: Mapping[str, Any], outcome: Outcome) -> list[str]:
    """Every difference between what is expected and what came, readable; empty when none."""
    seen = facts(outcome)
    wanted = dict(expect)
    wanted.setdefault("violations", [])
    wanted.setdefault("audit", [])
    wanted.setdefault("warnings", [])
    if wanted["warnings"] == ANY:
        del wanted["warnings"]
    else:
        wanted["warnings"] = sorted(wanted["warnings"])
    differences = []
    for key, value in wanted.items():
        if key in ("violations", "audit"):
            same = same_violations(value, seen[key])
            got: Any = [narrowed(each, value, i) for i, each in enumerate(seen[key])]
        else:
            same, got = key in seen and seen[key] == value, seen.get(key)
        if not same:
            differences.append(difference(key, value, got))
    return differences


def same_violations(wanted: Sequence[Mapping[str, Any]], seen: Sequence[Mapping[str, Any]]) -> bool:
    """As many, in order, each with the listed facts."""
    return len(wanted) == len(seen) and all(
        all(found.get(key) == value for key, value in each.items())
        for each, found in zip(wanted, seen, strict=True)
    )


def narrowed(
    found: Mapping[str, Any], wanted: Sequence[Mapping[str, Any]], index: int
) -> dict[str, Any]:
    """The facts that the expectation lists at this position, the telling ones where it has none."""
    keys = list(wanted[index]) if index < len(wanted) else WRITTEN
    return {key: found[key] for key in keys}


def difference(key: str, wanted: Any, got: Any) -> str:
    """A unified diff of the two as YAML; a sentence for a single value, or where nothing came."""
    if isinstance(wanted, bool):
        return f"{key}: expected {str(wanted).lower()}, came {str(got).lower()}"
    if got is None:
        return f"{key}: expected, but the object is refused"
    lines = unified_diff(
        text_of(wanted).splitlines(),
        text_of(got).splitlines(),
        f"expected {key}",
        f"actual {key}",
        lineterm="",
        n=5,
    )
    return "\n".join(lines)


# Rewriting

WRITTEN = ("field", "path", "reason", "value", "allowed")


def text_of(value: Any) -> str:
    """A value as YAML, small maps and lists on one line."""
    return yaml.dump(
        value,
        Dumper=Plain,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=110,
    )


class Plain(yaml.SafeDumper):
    """YAML without anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        """Nothing is shared."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Lists stand below their key."""
        super().increase_indent(flow, False)


def proposal(case: Case, outcome: Outcome) -> dict[str, Any]:
    """An `expect` that the outcome meets, in the form that the case uses already."""
    seen, before = facts(outcome), case.expect or {}
    found: dict[str, Any] = {"allowed": seen["allowed"]}
    if seen["allowed"]:
        forms = [key for key in ("object", "patch", "changes") if key in before] or ["changes"]
        found.update({key: seen[key] for key in forms})
        if not seen["judged"]:
            found["judged"] = False
    else:
        found["violations"] = list(proposed(seen["violations"], before.get("violations")))
    if before.get("warnings") == ANY:
        found["warnings"] = ANY
    elif seen["warnings"]:
        found["warnings"] = seen["warnings"]
    if seen["audit"]:
        found["audit"] = list(proposed(seen["audit"], before.get("audit")))
    return found


def proposed(seen: Iterable[Mapping[str, Any]], before: Any) -> Iterator[dict[str, Any]]:
    """Violations with the facts that the case lists already, else with the telling ones."""
    listed = before or ()
    for index, each in enumerate(seen):
        keys = listed[index] if index < len(listed) else (*WRITTEN, "key")
        yield {key: each[key] for key in keys if key in keys and each[key] not in (None, "")}


def rewrite(case: Case, outcome: Outcome) -> None:
    """Put the outcome into the case's file as its `expect`; everything else stays as it is."""
    text = text_of({"expect": proposal(case, outcome)})
    # Earlier rewrites of the same file may have moved lines, so places are read anew.
    document = one_document(case.file, kubernetes=False)
    lines = case.file.read_text().splitlines()
    holder = (*case.at, "expect")
    if pointer.read(document.data, case.at) is not pointer.ABSENT and holder in document.positions:
        line, column = document.position(holder)
        start, end = line - 1, block_end(lines, line - 1, column - 1)
        head = lines[start][: column - 1]
    else:
        start = end = len(lines)
        head = ""
        if case.at:
            line, column = document.position((*case.at, "name"))
            head = " " * (column - 1)
            start = end = block_end(lines, line - 1, column - 2)
    pad = " " * len(head)
    new = [f"{pad}{each}" if each else each for each in text.splitlines()]
    if new and head.strip():
        new[0] = head + new[0][len(head) :]
    case.file.write_text("\n".join([*lines[:start], *new, *lines[end:]]) + "\n")


def block_end(lines: Sequence[str], start: int, indent: int) -> int:
    """The first line after `start` that is indented no deeper than `indent`."""
    for index in range(start + 1, len(lines)):
        stripped = lines[index].lstrip()
        if stripped and len(lines[index]) - len(stripped) <= indent:
            return index
    return len(lines)
