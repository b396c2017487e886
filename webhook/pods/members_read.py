"""Finds the members of status and metadata that a definition reads.

An update that changes only other members changes nothing. For example, Argo's controller runs the
templates that it finds in the status of a Workflow.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

from webhook.jq.external import ForeignProgram
from webhook.jq.path import Program
from webhook.pods.definition import Definition

Member = tuple[str, str]
"""A member of `status` or `metadata`, such as `("status", "storedTemplates")`; "" is all of it."""
METADATA = frozenset({"name", "namespace", "uid", "labels", "annotations"})
"""Members of the metadata that cannot change, or that are compared for every kind."""
WHOLE = ""
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
OPERATORS = re.compile(r"//|[-+*,()]")
ROOT = re.compile(r"\.([A-Za-z_]\w*)(?:\.([A-Za-z_]\w*))?")
NOT_OF_THE_ROOT = re.compile(r"\||(?:\d+|true|false|null|\"\"|)\s*(?:\||$)")


def members_read(definition: Definition) -> frozenset[Member]:
    """Return the members that a definition reads, beside labels and annotations."""
    if definition.members is None:
        found = (member for each in definition.everyone for member in members_of(each))
        definition.members = frozenset(found)
    return definition.members


def members_of(definition: Definition) -> Iterator[Member]:
    """Yield the members that one definition alone reads."""
    # Of an object that is itself a pod, or has a pod's metadata, labels and annotations are read.
    pods = {
        part for each in definition.interface.components for part in (each.template, each.metadata)
    }
    for program in programs_in((definition.interface.components, definition.profile)):
        if not (program in pods and program.text in (".", ".metadata")):
            yield from members_of_program(program)


def members_of_program(program: Program) -> Iterator[Member]:
    """Yield the members that one path reads; all of both where its text leaves a doubt."""
    operands = map(str.strip, OPERATORS.split(TEXT.sub('""', program.text)))
    for operand in operands:
        if found := ROOT.match(operand):
            part, member = found[1], found[2] or WHOLE
            if part == "status" or (part == "metadata" and member not in METADATA):
                yield part, member
        elif isinstance(program, ForeignProgram) or not NOT_OF_THE_ROOT.match(operand):
            yield from (("status", WHOLE), ("metadata", WHOLE))


def programs_in(value: Any) -> Iterator[Program]:
    """Yield every path that is in a value of dataclasses, mappings and lists."""
    if isinstance(value, Program):
        yield value
    elif dataclasses.is_dataclass(value):
        for each in dataclasses.fields(value):
            yield from programs_in(getattr(value, each.name))
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from programs_in(each)
    elif isinstance(value, tuple | list):
        for each in value:
            yield from programs_in(each)
