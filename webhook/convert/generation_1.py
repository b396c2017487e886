"""Converts a policy of the first generation. Members that cannot be expressed are reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from webhook.convert.document import DraftDocument, restore_texts
from webhook.convert.generation_1_fields import (
    ATTRIBUTES,
    GPU,
    ROLES,
    SCALAR_ATTRIBUTES,
    SPECIAL,
    TABLE,
    TYPES,
    VOLUMES,
    Successor,
)
from webhook.convert.write_policy import write_head
from webhook.objects import quantity
from webhook.objects.path import Path
from webhook.policy import rules, values
from webhook.policy.body_items import EXCLUDE
from webhook.policy.leaves import FIELD_NAMES, LeafType, attribute_names, items_of, leaf_type
from webhook.policy.names import closest, join, rule_word
from webhook.policy.policy import EVERYWHERE, level_path, role_level
from webhook.policy.report import Report, label
from webhook.policy.rule_objects import ITEM_RULES
from webhook.policy.table import TABLE as FIELDS

GLOBAL_NAMESPACE = "runai"
NESTED_VERSION = "run.ai/v1alpha1"
SECRET = "SECRET:"  # noqa: S105 - the word that begins a reference to a secret
ITEM_MEMBERS = ("rules", "itemRules", "items")
KEPT_RULES = ("required", "canEdit", "min", "max", "step", "options")
SPEC: Path = ("spec",)
Rewrite = Callable[[Any], Any] | None
NFS, HOST_PATH = "storage.nfs", "storage.hostPath"
WHOLE_GPUS, PART_OF_GPU = "compute.gpuDevicesRequest", "compute.gpuPortionRequest"


def convert_policy(report: Report) -> DraftDocument:
    """Convert an old policy, as far as it can be expressed."""
    draft_document, data = DraftDocument(), report.document.data
    metadata = report.mapping(data.get("metadata"), ("metadata",))
    namespace = str(metadata.get("namespace") or GLOBAL_NAMESPACE)
    if not metadata.get("namespace"):
        found, fix = "no namespace, read as the global one", "write metadata.namespace"
        report.warn(("metadata",), "converted-choice", found, fix)
    is_global = namespace == GLOBAL_NAMESPACE
    name = str(metadata.get("name") or "policy")
    write_head(draft_document, name, "" if is_global else namespace, ("metadata",))
    if is_global:
        draft_document.put(("spec", "scope"), "cluster", ("metadata", "namespace"))
    else:
        fix = "exclude this namespace from the global policy if only one of them should apply"
        found = "a policy of a project replaced the global one as a whole; now both apply"
        report.warn(("metadata", "namespace"), "converted-choice", found, fix)
    draft_document.put(("spec", "workloadTypes"), [TYPES[data["kind"]]], ("kind",))
    if data["kind"] == "DeploymentPolicy":
        found = "workloads of the kind DeploymentWorkload, which served inference"
        report.warn(("kind",), "converted-choice", found, "correct spec.workloadTypes if need be")
    spec = report.mapping(data.get("spec"), ("spec",))
    if data.get("spec") is None:
        report.error((), "missing-value", "no spec", "write spec: with fields below")
    Converter(report, draft_document, nested=data["apiVersion"] == NESTED_VERSION).fields(spec)
    return draft_document


def simple(raw: Any) -> Any:
    """Return a value of v1alpha1, which has one more level: {value: {value: 1}}."""
    if isinstance(raw, dict):
        if set(raw) == {"value"}:
            return simple(raw["value"])
        return {key: simple(each) for key, each in raw.items()}
    return raw


class Converter:
    """Reads the spec field by field and writes the successor of each."""

    def __init__(self, report: Report, draft_document: DraftDocument, *, nested: bool) -> None:
        self.report = report
        self.draft_document = draft_document
        self.nested = nested

    def lost(self, path: Path, what: str, why: str, reason: str = "not-expressed") -> None:
        """Report something that policies cannot express today, or not exactly."""
        self.report.error(path, reason, what, why)

    def raw(self, raw: Any, path: Path) -> Any:
        """Return raw data with source texts, without the extra level of nesting."""
        plain = restore_texts(self.report.document, raw, path)
        return simple(plain) if self.nested else plain

    def fields(self, spec: Mapping[Any, Any], level: str = EVERYWHERE, path: Path = SPEC) -> None:
        """Convert every field of the spec, or of one role."""
        for key, raw in spec.items():
            here = (*path, key)
            if raw is None:
                continue
            if key in ROLES and level == EVERYWHERE:
                self.fields(self.report.mapping(raw, here), role_level(key), here)
            elif not isinstance(raw, dict):
                why = TABLE[key].why if key in TABLE else ""
                self.lost(here, label(key), why or "it has no value, rules or items")
            elif key == GPU:
                self.gpu(raw, level, here)
            elif key == VOLUMES:
                self.volumes(raw, level, here)
            else:
                self.field(key, raw, level, here)

    def field(self, key: Any, raw: dict[Any, Any], level: str, path: Path) -> None:
        """Convert one field, by its row or by a name that still exists."""
        row = TABLE.get(key) or same_name(key)
        if row is None:
            meant = closest(str(key), (*TABLE, *SPECIAL, *ROLES))
            why = f"did you mean {meant}?" if meant else "it is not known"
            self.lost(path, label(key), why)
        elif row.why:
            self.lost(path, label(key), row.why)
        elif row.to not in FIELDS.fields:
            why = f"it is {row.to} today, which this version does not know"
            self.lost(path, label(key), why, "field-not-known")
        elif FIELDS.fields[row.to].items is not None:
            self.convert_items(row.to, raw, row.level or level, path)
        else:
            self.scalar(row.to, raw, row.level or level, path, row.rewrite)

    def unknown(self, raw: Mapping[Any, Any], path: Path, known: tuple[str, ...]) -> None:
        """Report unknown members."""
        for key in raw:
            if key not in known:
                self.lost((*path, key), label(key), f"known here: {', '.join(known)}")

    # Single values

    def scalar(
        self, field: str, raw: dict[Any, Any], level: str, path: Path, rewrite: Rewrite = None
    ) -> None:
        """Convert `value` to the default, `rules` to rules."""
        self.unknown(raw, path, ("value", "rules"))
        leaf = leaf_type(field)
        if raw.get("value") is not None:
            self.default(leaf, raw["value"], level, (*path, "value"), rewrite)
        given = self.report.mapping(raw.get("rules"), (*path, "rules"))
        at = self.at("rules", level, field)
        self.rules(leaf, given, (*path, "rules"), at, rewrite)

    def at(self, section: str, level: str, field: str, *more: str) -> Path:
        """Return the path of a field in the result."""
        return ("spec", section, *level_path(level), *field.split("."), *more)

    def default(
        self, leaf: LeafType, raw: Any, level: str, path: Path, rewrite: Rewrite = None
    ) -> None:
        """Convert one default value."""
        value = self.value(leaf, self.raw(raw, path), rewrite)
        self.draft_document.put(self.at("defaults", level, leaf.path), value, path)

    def value(self, leaf: LeafType, raw: Any, rewrite: Rewrite = None) -> Any:
        """Return a value in today's notation: quoted numbers become numbers."""
        raw = rewrite(raw) if rewrite else raw
        return number(leaf, raw) if leaf.value in ("integer", "number") else type_value(leaf, raw)

    def rules(
        self,
        leaf: LeafType,
        given: Mapping[Any, Any],
        path: Path,
        at: Path,
        rewrite: Rewrite = None,
    ) -> None:
        """Convert the rules of one value."""
        for key, raw in given.items():
            name, here = rule_word(key), (*path, key)
            if raw is None:
                continue
            if name not in KEPT_RULES or name not in leaf.legal:
                what = f"{label(key)} of {leaf.path}"
                allowed = ", ".join(each for each in KEPT_RULES if each in leaf.legal)
                self.lost(
                    here, what, f"it takes {f'only {allowed}' if allowed else 'no rules'} today"
                )
                continue
            self.draft_document.put(
                (*at, name), self.argument(leaf, name, raw, here, rewrite), here
            )

    def argument(self, leaf: LeafType, name: str, raw: Any, path: Path, rewrite: Rewrite) -> Any:
        """Return the argument of a rule."""
        plain = self.raw(raw, path)
        if rules.TABLE[name].argument == "boolean":
            return plain == "true" if isinstance(plain, str) else plain
        if name != "options" or not isinstance(plain, list):
            return self.value(leaf, plain, rewrite)
        return [self.option(leaf, each, rewrite) for each in plain]

    def option(self, leaf: LeafType, raw: Any, rewrite: Rewrite) -> Any:
        """Return one allowed value."""
        given = raw if isinstance(raw, dict) else {"value": raw}
        value = given.get("value")
        if rewrite and leaf.is_array:
            element = rewrite(value)
            value = element[0] if isinstance(element, list) and len(element) == 1 else value
        else:
            value = self.value(leaf, value, rewrite)
        shown = {key: each for key, each in given.items() if key == "displayed"}
        return {"value": value, **shown}

    # GPUs: whole GPUs and fractions are two fields today

    def gpu(self, raw: dict[Any, Any], level: str, path: Path) -> None:
        """Convert `gpu`: fractions to the portion, whole numbers to the devices."""
        self.unknown(raw, path, ("value", "rules"))
        given = self.report.mapping(raw.get("rules"), (*path, "rules"))
        default = self.amount(raw.get("value"), (*path, "value"))
        bounds = {
            each: amount
            for each, bound in given.items()
            if rule_word(each) in ("min", "max", "step")
            and (amount := self.amount(bound, (*path, "rules", each))) is not None
        }
        numbers = [each for each in (default, *bounds.values()) if each is not None]
        fractions = [each for each in numbers if each.denominator != 1]
        mixed = bool(fractions) and any(each > 1 for each in numbers)
        main = default if default is not None else next(iter(fractions), Fraction(1))
        is_part = bool(fractions) and (not mixed or main.denominator != 1)
        main_field = PART_OF_GPU if is_part else WHOLE_GPUS
        if raw.get("value") is not None:
            self.gpu_default(main_field, raw["value"], level, (*path, "value"))
        for key, bound in given.items():
            name, here = rule_word(key), (*path, "rules", key)
            field = main_field
            if mixed and key in bounds:
                field = PART_OF_GPU if bounds[key].denominator != 1 else WHOLE_GPUS
            elif mixed and bound in ((True,) if name == "canEdit" else (None, False)):
                continue
            elif mixed:
                why = f"whole GPUs and parts of one are two fields today; it became one of {field}"
                self.lost(here, f"{label(key)} of gpu", why, "converted-inexactly")
            self.gpu_rule(field, {key: bound}, level, (*path, "rules"), name)

    def amount(self, raw: Any, path: Path) -> Fraction | None:
        """Return a number of GPUs, exactly."""
        try:
            return Fraction(quantity.parse_decimal(self.raw(raw, path))) / quantity.NANO
        except ValueError:
            return None

    def gpu_default(self, field: str, raw: Any, level: str, path: Path) -> None:
        """Convert the default number of GPUs."""
        if self.check_field(field, "value of gpu", path):
            self.default(leaf_type(field), raw, level, path)

    def gpu_rule(
        self, field: str, given: Mapping[Any, Any], level: str, path: Path, name: str | None
    ) -> None:
        """Convert one rule on the number of GPUs."""
        if self.check_field(field, f"{name} of gpu", (*path, *given)):
            self.rules(leaf_type(field), given, path, self.at("rules", level, field))

    def check_field(self, field: str, what: str, path: Path) -> bool:
        """Whether a field exists. A missing one is reported."""
        if field not in FIELDS.fields:
            why = f"it is {field} today, which this version does not know"
            self.lost(path, what, why, "field-not-known")
        return field in FIELDS.fields

    # Volumes: NFS and host paths are two fields today

    def volumes(self, raw: dict[Any, Any], level: str, path: Path) -> None:
        """Convert volumes. An item with `nfsServer` is an NFS export, any other a host path."""
        self.unknown(raw, path, ITEM_MEMBERS)
        for field in (NFS, HOST_PATH):
            is_first = field == NFS
            self.convert_items(field, {"rules": raw.get("rules")}, level, path, reports=is_first)
        items = self.report.mapping(raw.get("items"), (*path, "items"))
        for name, item in items.items():
            body = item.get("value") if isinstance(item, dict) else None
            is_nfs = isinstance(body, dict) and bool(simple(body.get("nfsServer")))
            if name == "DEFAULTS" and not is_nfs and isinstance(body, dict):
                for field, own in self.volume_attributes(body):
                    self.convert_items(field, {"items": {name: {"value": own}}}, level, path)
            else:
                field = NFS if is_nfs else HOST_PATH
                self.convert_items(field, {"items": {name: item}}, level, path)
        attributes = self.report.mapping(raw.get("itemRules"), (*path, "itemRules"))
        for name, own_rules in attributes.items():
            if name == "nfsServer" and isinstance(own_rules, dict) and own_rules.get("required"):
                why = "it applies to NFS only now; forbid storage.hostPath too"
                place = (*path, "itemRules", name, "required")
                self.lost(place, "nfsServer required of every volume", why, "converted-inexactly")
            for field, own in self.volume_attributes({name: own_rules}):
                self.convert_items(field, {"itemRules": own}, level, path)

    def volume_attributes(self, given: Mapping[Any, Any]) -> list[tuple[str, dict[Any, Any]]]:
        """Split the attributes of all volumes by the two fields that can have them."""
        by_field: dict[str, dict[Any, Any]] = {NFS: {}, HOST_PATH: {}}
        for name, raw in given.items():
            holders = [field for field in by_field if attribute(field, name)] or [NFS]
            for field in holders:
                by_field[field][name] = raw
        return [(field, own) for field, own in by_field.items() if own]

    # Items

    def convert_items(
        self, field: str, raw: Mapping[Any, Any], level: str, path: Path, *, reports: bool = True
    ) -> None:
        """Convert `rules`, `itemRules` and `items` of a field with items."""
        mute = None if reports else Report(self.report.document)
        kept, self.report = self.report, mute or self.report
        self.unknown(raw, path, ITEM_MEMBERS)
        self.item_list_rules(field, raw.get("rules"), level, (*path, "rules"))
        given = self.report.mapping(raw.get("itemRules"), (*path, "itemRules"))
        for key, own_rules in given.items():
            self.attribute_rules(field, key, own_rules, level, (*path, "itemRules", key))
        items = self.report.mapping(raw.get("items"), (*path, "items"))
        for key, item in items.items():
            self.item(field, str(key), item, level, (*path, "items", key))
        self.report = kept

    def item_list_rules(self, field: str, raw: Any, level: str, path: Path) -> None:
        """Convert rules of the list as a whole. Only canAdd still exists."""
        for key, argument in self.report.mapping(raw, path).items():
            name, here = rule_word(key), (*path, key)
            if name in ITEM_RULES and isinstance(argument, bool):
                self.draft_document.put(
                    self.at("rules", level, field, "instances", name), argument, here
                )
            elif argument is not None:
                what = f"{label(key)} of all {field}"
                self.lost(here, what, "a list of items takes only canAdd today")

    def attribute_rules(self, field: str, key: Any, raw: Any, level: str, path: Path) -> None:
        """Convert the rules of one attribute of the items."""
        name = attribute(field, key)
        if name is None or not (legal := leaf_type(join(field, name)).legal):
            why = "no such attribute is known" if name is None else "this attribute takes no rules"
            self.lost(path, f"rules on {label(key)} of {field}", why)
            return
        leaf = leaf_type(join(field, name))
        assert legal
        at = self.at("rules", level, field, "attributes", *name.split("."))
        self.rules(leaf, self.report.mapping(raw, path), path, at)

    def item(self, field: str, key: str, raw: Any, level: str, path: Path) -> None:
        """Convert a default item, or the attribute defaults, which are named DEFAULTS."""
        body = self.report.mapping(raw, path)
        self.unknown(body, path, ("value", "rules"))
        row = FIELDS.fields[field]
        given = self.attributes(field, body.get("value"), (*path, "value"))
        if key == "DEFAULTS":
            if given and not items_of(row).attribute_defaults:
                self.lost(path, f"DEFAULTS of {field}", "its items take no defaults for attributes")
                return
            for name, (value, here) in given.items():
                at = self.at("defaults", level, field, "attributes", *name.split("."))
                self.draft_document.put(at, value, here)
            return
        item = DraftDocument()
        item.put((items_of(row).key,), key, path)
        for name, (value, here) in given.items():
            item.put(tuple(name.split(".")), value, here)
        if body.get("value") is not None:
            self.draft_document.append(
                self.at("defaults", level, field, "instances"), item.data, path
            )
        self.lock(field, key, body.get("rules"), level, (*path, "rules"))

    def lock(self, field: str, key: str, raw: Any, level: str, path: Path) -> None:
        """Lock an item that can be neither changed nor removed."""
        given = self.report.mapping(raw, path)
        self.unknown(given, path, ("canRemove", "canEdit", "required"))
        closed = [name for name in ("canRemove", "canEdit") if given.get(name) is False]
        if given.get("required") is True:
            self.lost((*path, "required"), f"required of item {key}", "lock the item instead")
        if not closed:
            return
        self.draft_document.append(self.at("rules", level, field, "instances", "locked"), key, path)
        if len(closed) == 1:
            other = "changing" if closed == ["canRemove"] else "removing"
            why = f"locked forbids {other} it as well; remove the lock if that is too much"
            self.lost(path, f"{closed[0]}: false alone of item {key}", why, "converted-inexactly")

    def attributes(self, field: str, raw: Any, path: Path) -> dict[str, tuple[Any, Path]]:
        """Return the attributes of an item by today's names, with their paths."""
        if raw is None:
            return {}
        plain = self.raw(raw, path)
        if not isinstance(plain, dict):
            name = SCALAR_ATTRIBUTES.get(field)
            if name is None:
                self.lost(path, f"an item of {field} that is no map", "give its attributes by name")
                return {}
            return self.scalar_item(field, name, plain, path)
        found: dict[str, tuple[Any, Path]] = {}
        for key, each in plain.items():
            name = attribute(field, key)
            if name is None or name == EXCLUDE:
                what = f"{label(key)} of an item of {field}"
                self.lost((*path, key), what, "it has no successor")
            else:
                value = self.value(leaf_type(join(field, name)), each)
                found[name] = (value, (*path, key))
        return found

    def scalar_item(
        self, field: str, name: str, plain: Any, path: Path
    ) -> dict[str, tuple[Any, Path]]:
        """Convert an item that is one value. For environment variables it can name a secret."""
        text = values.plain_text(plain, None) if not isinstance(plain, list) else ""
        secret = attribute(field, "secret")
        if secret and text.startswith(SECRET):
            holder, comma, key = text.removeprefix(SECRET).partition(",")
            if comma and holder and key:
                return {secret: ({"name": holder.strip(), "key": key.strip()}, path)}
            self.lost(path, "a reference to a secret without key", "write secret: {name, key}")
            return {}
        return {name: (text, path)}


def same_name(key: Any) -> Successor | None:
    """Return today's field with the same name, at the root or in one section."""
    if not isinstance(key, str):
        return None
    leaf, _ = FIELD_NAMES.resolve("", key)
    named = [each for each in FIELDS.fields if each.rpartition(".")[2] == key]
    found = leaf or (named[0] if len(named) == 1 else None)
    return Successor(key, found) if found else None


def attribute(field: str, key: Any) -> str | None:
    """Return today's attribute for a member of an item."""
    names = attribute_names(field)
    leaf, _ = names.resolve("", key)
    renamed = ATTRIBUTES.get(key) if isinstance(key, str) else None
    return leaf or (renamed if renamed and renamed.lower() in names.leaves else None)


def number(leaf: LeafType, raw: Any) -> Any:
    """Convert a number that was written as text, for CPU also with a suffix. Else return the text."""
    if not isinstance(raw, str):
        return raw
    read = quantity.parse if leaf.codec is values.CORES else quantity.parse_decimal
    try:
        exact = Fraction(read(raw)) / quantity.NANO
    except ValueError:
        return raw
    if exact.denominator == 1:
        return int(exact)
    return float(exact) if Fraction(str(float(exact))) == exact else raw


def type_value(leaf: LeafType, raw: Any) -> Any:
    """Return the text of a scalar."""
    if leaf.value == "string" and isinstance(raw, bool | int | float):
        return values.plain_text(raw, None)
    return raw
