"""The assemblers by the names that profiles use."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from webhook.pods.assemble import Assembler
from webhook.pods.assemblers.devfile import DevfileAssembler
from webhook.pods.assemblers.flux_operator import FluxAssembler
from webhook.pods.assemblers.kubevirt import KubeVirtAssembler
from webhook.pods.assemblers.nim import NimAssembler
from webhook.pods.assemblers.spark import SparkAssembler
from webhook.pods.assemblers.tekton import TektonAssembler
from webhook.pods.fragments import FragmentForm


class SharedAssembler(Assembler):
    """Assembles pods of the forms that all projects may use."""

    def own_forms(self) -> Mapping[str, FragmentForm]:
        return {}


ASSEMBLERS: Final[Mapping[str, Assembler]] = {
    "": SharedAssembler(),
    "devfile": DevfileAssembler(),
    "flux": FluxAssembler(),
    "kubevirt": KubeVirtAssembler(),
    "nim": NimAssembler(),
    "spark": SparkAssembler(),
    "tekton": TektonAssembler(),
}
FORMS_OF: Final[Mapping[str, Collection[str]]] = {
    name: each.forms.keys() for name, each in ASSEMBLERS.items()
}
"""The forms that a profile may use, by the name of its assembler."""
