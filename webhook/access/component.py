"""What all ways to read and write the components of one object share: forms, errors, pairing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from webhook.access.errors import AccessError, NotDefinedError
from webhook.access.status import Status
from webhook.documents.read_model import shown
from webhook.interface.document import ComponentModel, ScalePaths, SpecPaths
from webhook.jq.expressions import JqError

Form = Literal["template", "spec", "metadata", "fragments", "scale"]
FORMS: Final[dict[Form, str]] = {
    "template": "pod templates",
    "spec": "pod specs",
    "metadata": "pod metadata",
    "fragments": "fragments",
    "scale": "scales",
}
SPECS: Final[dict[Form, str]] = {
    "template": "pod_template_spec_path",
    "spec": "pod_spec_path",
    "metadata": "metadata_path",
    "fragments": "fragmented_pod_spec_definition",
}


@dataclass(frozen=True, slots=True)
class Replicas:
    """The numbers of one instance; None for what is not stated."""

    replicas: int | None = None
    minimum: int | None = None
    maximum: int | None = None


def spec_paths(model: ComponentModel) -> SpecPaths:
    """The component's specDefinition; raises NotDefinedError."""
    if model.spec_definition is None:
        raise NotDefinedError(model.name, "specDefinition")
    return model.spec_definition


def path_text(model: ComponentModel, form: Form) -> str:
    """The path of one of the forms that are one path; raises NotDefinedError."""
    text = getattr(spec_paths(model), SPECS[form])
    if not text:
        raise NotDefinedError(model.name, FORMS[form])
    return str(text)


def fragment_texts(model: ComponentModel) -> dict[str, str]:
    """The fragments' paths by their names, such as schedulerName; raises NotDefinedError."""
    paths = spec_paths(model).fragmented_pod_spec_definition
    if paths is None:
        raise NotDefinedError(model.name, FORMS["fragments"])
    texts = paths.model_dump(by_alias=True, exclude_none=True)
    return {key.removesuffix("Path"): text for key, text in texts.items() if text}


def scale_paths(model: ComponentModel) -> ScalePaths:
    """The component's scaleDefinition; raises NotDefinedError."""
    if model.scale_definition is None:
        raise NotDefinedError(model.name, FORMS["scale"])
    return model.scale_definition


class Access(ABC):
    """Reads and writes one object; ids and values are paired by position, as upstream does."""

    @property
    @abstractmethod
    def document(self) -> Any:
        """The object as it is now, with all that was written; raises AccessError."""

    @abstractmethod
    def ids(self, model: ComponentModel) -> list[str]:
        """The names of the instances; raises NotDefinedError and AccessError."""

    @abstractmethod
    def values(self, model: ComponentModel, form: Form) -> list[Any]:
        """The values of a form, in order; raises NotDefinedError and AccessError."""

    @abstractmethod
    def status(self, model: ComponentModel) -> Status:
        """The status; raises NotDefinedError and AccessError."""

    @abstractmethod
    def write(self, model: ComponentModel, form: Form, values: Sequence[Any]) -> None:
        """Replace the values of a form, in order; raises NotDefinedError and AccessError."""

    @abstractmethod
    def assign(self, text: str, value: Any) -> None:
        """Write one value at every place of a path; raises AccessError."""

    def instance_ids(self, model: ComponentModel) -> list[str]:
        """The names of the instances, [""] where the definition names none."""
        try:
            return self.ids(model)
        except NotDefinedError:
            return [""]
        except (AccessError, JqError) as error:
            text = f"the instances of `{shown(model.name)}` cannot be read: {error}"
            raise AccessError("ids-failed", text, component=model.name) from error

    def by_instance(self, model: ComponentModel, form: Form) -> dict[str, Any] | None:
        """The values of a form by instance; None where the definition has none of that form."""
        try:
            values = self.values(model, form)
        except NotDefinedError:
            return None
        except (AccessError, JqError) as error:
            text = f"the {FORMS[form]} of `{shown(model.name)}` cannot be read: {error}"
            raise AccessError("values-failed", text, form=form) from error
        ids = self.instance_ids(model)
        if len(ids) != len(values):
            text = f"{len(ids)} instances, but {len(values)} {FORMS[form]}"
            raise AccessError("count-mismatch", text, ids=len(ids), values=len(values))
        return dict(zip(ids, values, strict=True))

    def update(self, model: ComponentModel, form: Form, values: Mapping[str, Any]) -> None:
        """Replace the values of every instance; one that is missing in `values` is an error."""
        ids = self.instance_ids(model)
        for name in ids:
            if name not in values:
                text = f"no value for instance `{shown(name)}` among the {FORMS[form]}"
                raise AccessError("value-missing", text, id=name, form=form)
        self.write(model, form, [values[name] for name in ids])
