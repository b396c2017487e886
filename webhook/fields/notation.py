"""Notations: how an object writes a field's value if that is not the field's own form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from webhook.objects.path import Path
from webhook.policy.values import Codec


class PathValue(NamedTuple):
    """One path of a workload field, its value (None: absent), and its written default.

    `key` identifies the path across an update, where list items may have moved. The value is the
    sum of `added_up` values; the path is that of the first.
    """

    path: Path
    value: Any
    key: str = ""
    computed: bool = False
    added_up: int = 1


@dataclass(frozen=True, slots=True)
class Beside:
    """The value that a key next to a path must have, or may lack, once the path is written.

    `filled` is the API server's value while the path is unset.
    """

    key: str
    value: str
    filled: str | None = None

    def of(self, path_value: Path) -> Path:
        """Return the path of the neighbour."""
        return (*path_value[:-2], self.key)


@dataclass(frozen=True, slots=True)
class Form:
    """How one field is written on one kind.

    `codec` reads native values and writes them (None: absence says it). `gather` tells what several
    places say, `together` that they are one value. `lands` is what goes to a place that now holds
    something (None: nothing does). `only_true`: false is no more than the absence of true. `beside`
    is a neighbour that has to go with what is written; `filled` makes of what a server fills in
    what `gather` makes of it.
    """

    codec: Codec
    gather: Callable[[Sequence[PathValue]], list[PathValue]] = list
    lands: Callable[[Path, Any, Any], Any] = lambda path, value, now: value
    together: bool = False
    only_true: bool = False
    unlimited: bool = False
    beside: Beside | None = None
    filled: Callable[[Any], Any] = lambda value: value


def number_as_text(codec: Codec) -> Codec:
    """Return a codec for numbers and booleans as text, as in annotations and labels."""

    def write(value: Any, raw: Any) -> str:
        native = codec.write(value, raw)
        return codec.show(value) if native is None or isinstance(native, bool) else str(native)

    return replace(codec, write=write)


UNITS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}
# A number is looked at from its beginning alone, and once, so that long texts cost no more.
AMOUNT = re.compile(r"(?<![0-9.])([0-9]++\.?[0-9]*+|\.[0-9]++)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
DURATION = re.compile(rf"[+-]?(0|({AMOUNT.pattern})+)", re.ASCII)
LONGEST = 64


def parse_duration(text: Any) -> int | Fraction:
    """The seconds of a Go duration such as 1m30s or 1.5h; raises ValueError."""
    if not isinstance(text, str) or len(text) > LONGEST or not DURATION.fullmatch(text):
        raise ValueError("a duration such as 30s")
    total = sum(
        (Fraction(number) * UNITS[unit] for number, unit in AMOUNT.findall(text)), Fraction()
    )
    total = -total if text[0] == "-" else total
    return int(total) if total.denominator == 1 else total


def seconds_as_duration(codec: Codec) -> Codec:
    """Whole seconds as a duration; fractions of a second are read exactly."""

    def show(value: Any) -> str:
        return codec.show(value) if isinstance(value, int) else str(float(value))

    return replace(codec, read=parse_duration, write=lambda value, raw: f"{value}s", show=show)


def plus_one(codec: Codec) -> Codec:
    """Return a codec for a number that counts one more than the field: a group's leader."""
    return replace(
        codec,
        read=lambda native: codec.read(native) - 1,
        write=lambda value, raw: codec.write(value + 1, None),
    )


def text_for_true(text: str) -> Callable[[Codec], Codec]:
    """Return a notation of a boolean that is true for this text, and false for another one."""

    def read(native: Any) -> bool:
        if not isinstance(native, str):
            raise ValueError(text)  # noqa: TRY004 - one error type for every codec
        return native == text

    return lambda codec: replace(
        codec, read=read, write=lambda value, raw: text if value is True else None
    )


METRICS = {"throughput": "rps"}
FIELDS_METRICS = {native: name for name, native in METRICS.items()}


def metric_names(codec: Codec) -> Codec:
    """Knative's word for throughput is rps; all other metrics have their own names."""

    def read(native: Any) -> str:
        name: str = codec.read(native)
        return FIELDS_METRICS.get(name, name)

    return replace(codec, read=read, write=lambda value, raw: METRICS.get(value, value))


DISRUPTION = "DisruptionTarget"


def disruption_action(rules: Any) -> Any:
    """The action of the first failure rule that speaks of disruptions; None without one."""
    for rule in rules if isinstance(rules, list) else ():
        conditions = rule.get("onPodConditions") if isinstance(rule, dict) else None
        for each in conditions if isinstance(conditions, list) else ():
            if not isinstance(each, dict) or each.get("type") != DISRUPTION:
                continue
            if each.get("status", "True") == "True":
                return rule.get("action")
    return None


def read_disruption(native: Any) -> bool:
    """Whether failure rules end the job when a pod is disrupted."""
    if not isinstance(native, list):
        raise ValueError("a list of failure rules")  # noqa: TRY004 - one error type for every codec
    return bool(disruption_action(native) == "FailJob")


def disruption_rule(codec: Codec) -> Codec:
    """Return a codec for a boolean as a failure rule of a Job. Without the rule it is false."""
    condition = {"type": DISRUPTION, "status": "True"}
    rule = {"action": "FailJob", "onPodConditions": [condition]}
    return replace(
        codec, read=read_disruption, write=lambda value, raw: [rule] if value is True else None
    )


def rules_of_disruption(path_values: Sequence[PathValue]) -> list[PathValue]:
    """Treat failure rules without disruptions as an unset field."""
    return [
        each._replace(value=None)
        if isinstance(each.value, list) and disruption_action(each.value) is None
        else each
        for each in path_values
    ]


def after_others(path: Path, value: Any, now: Any) -> Any:
    """Append new failure rules: the first that matches counts."""
    return [*now, *value] if isinstance(now, list) else value


REPLACEMENT = Beside("podReplacementPolicy", "Failed")
"""Beside failure rules pods are replaced when they have failed, not while they terminate."""
REPLACEMENT_OF_JOB = replace(REPLACEMENT, filled="TerminatingOrFailed")


def among_failure_rules(beside: Beside) -> Callable[[Form], Form]:
    """A failure rule among others, with its neighbour."""
    return lambda form: replace(form, gather=rules_of_disruption, lands=after_others, beside=beside)


def read_presence(native: Any) -> bool:
    """A switch, or an object that is on by being there."""
    if isinstance(native, bool | dict):
        return native is not False
    raise ValueError("true, false or an object")


def any_true(path_values: Sequence[PathValue]) -> list[PathValue]:
    """Return the switches that are on, or else those that are off."""
    on = [each for each in path_values if each.value not in (None, False)]
    return on or [each for each in path_values if each.value is not None] or list(path_values)


ROUTES = {"httpRoutesEnabled": "http", "grpcRoutesEnabled": "grpc"}


def enabled_routes(path_values: Sequence[PathValue]) -> list[PathValue]:
    """Return the protocol of each switch that is on. A switch that is off has no value."""
    return [
        each._replace(value=ROUTES.get(str(each.path[-1])) if each.value is True else None)
        for each in path_values
    ]


def http_if_on(value: Any) -> Any:
    """Return the value of the switch that a server turns on."""
    return "http" if value is True else None


def route_of(path: Path, value: Any, now: Any) -> Any:
    """Return the value of a switch: on for the protocol, else off, because a server may turn it on."""
    return ROUTES.get(str(path[-1])) == value


def unlimited_zero(codec: Codec) -> Codec:
    """Return a codec in which 0 means no limit."""
    return replace(codec, show=lambda value: "0 (no limit)" if value == 0 else codec.show(value))


@dataclass(frozen=True, slots=True)
class Notation:
    """One row: how a notation of the profile changes the row's codec and form."""

    codec: Callable[[Codec], Codec] = lambda codec: codec
    form: Callable[[Form], Form] = lambda form: form


def only_true(form: Form) -> Form:
    """False is what everything else than the word for true amounts to."""
    return replace(form, only_true=True)


TABLE: dict[str, Notation] = {
    "text": Notation(number_as_text),
    "duration": Notation(seconds_as_duration),
    "plusOne": Notation(plus_one),
    "clusterLocal": Notation(text_for_true("cluster-local"), only_true),
    "metricName": Notation(metric_names),
    "disruptionRule": Notation(disruption_rule, among_failure_rules(REPLACEMENT)),
    "disruptionRuleOfJob": Notation(disruption_rule, among_failure_rules(REPLACEMENT_OF_JOB)),
    "anyTrue": Notation(
        lambda codec: replace(codec, read=read_presence),
        lambda form: replace(form, gather=any_true, together=True),
    ),
    "enabledRoute": Notation(
        form=lambda form: replace(
            form, gather=enabled_routes, lands=route_of, together=True, filled=http_if_on
        )
    ),
    "unlimitedZero": Notation(unlimited_zero, lambda form: replace(form, unlimited=True)),
    **{
        f"accessMode:{mode}": Notation(text_for_true(mode), only_true)
        for mode in ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
    },
}


def form_of(codec: Codec, names: Iterable[str] = ()) -> Form:
    """The form that the words of a profile make of a row's codec, the first word innermost."""
    form = Form(codec)
    for text in names:
        row = TABLE[text]
        form = row.form(replace(form, codec=row.codec(form.codec)))
    return form
