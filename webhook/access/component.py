"""Forms and the base class for reading and writing the components of one object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from webhook.access.errors import AccessError, NotDefinedError
from webhook.access.status import Status
from webhook.documents.read_model import show_value
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
    """The numbers of one instance, None if not set."""

    replicas: int | None = None
    minimum: int | None = None
    maximum: int | None = None


def spec_paths(model: ComponentModel) -> SpecPaths:
    """Return the component's specDefinition. Raises NotDefinedError."""
    if model.spec_definition is None:
        raise NotDefinedError(model.name, "specDefinition")
    return model.spec_definition


def path_text(model: ComponentModel, form: Form) -> str:
    """Return the path of a form with one path. Raises NotDefinedError."""
    text = getattr(spec_paths(model), SPECS[form])
    if not text:
        raise NotDefinedError(model.name, FORMS[form])
    return str(text)


def fragment_texts(model: ComponentModel) -> dict[str, str]:
    """Return the paths of fragments by name, such as schedulerName. Raises NotDefinedError."""
    paths = spec_paths(model).fragmented_pod_spec_definition
    if paths is None:
        raise NotDefinedError(model.name, FORMS["fragments"])
    texts = paths.model_dump(by_alias=True, exclude_none=True)
    return {key.removesuffix("Path"): text for key, text in texts.items() if text}


def scale_paths(model: ComponentModel) -> ScalePaths:
    """Return the component's scaleDefinition. Raises NotDefinedError."""
    if model.scale_definition is None:
        raise NotDefinedError(model.name, FORMS["scale"])
    return model.scale_definition


class Access(ABC):
    """Reads and writes one object. Ids and values are paired by position, like upstream."""

    @property
    @abstractmethod
    def document(self) -> Any:
        """Return the object with everything that was written. Raises AccessError."""

    @abstractmethod
    def ids(self, model: ComponentModel) -> list[str]:
        """Return the names of the instances. Raises NotDefinedError and AccessError."""

    @abstractmethod
    def values(self, model: ComponentModel, form: Form) -> list[Any]:
        """Return the values of a form, in order. Raises NotDefinedError and AccessError."""

    @abstractmethod
    def status(self, model: ComponentModel) -> Status:
        """Return the status. Raises NotDefinedError and AccessError."""

    @abstractmethod
    def write(self, model: ComponentModel, form: Form, values: Sequence[Any]) -> None:
        """Replace the values of a form, in order. Raises NotDefinedError and AccessError."""

    @abstractmethod
    def assign(self, text: str, value: Any) -> None:
        """Write one value to every result of a path. Raises AccessError."""

    def instance_ids(self, model: ComponentModel) -> list[str]:
        """Return the names of the instances, [""] if the definition has none."""
        try:
            return self.ids(model)
        except NotDefinedError:
            return [""]
        except (AccessError, JqError) as error:
            text = f"the instances of `{show_value(model.name)}` cannot be read: {error}"
            raise AccessError("ids-failed", text, component=model.name) from error

    def by_instance(self, model: ComponentModel, form: Form) -> dict[str, Any] | None:
        """Return the values of a form by instance, None if the definition does not have the form."""
        try:
            values = self.values(model, form)
        except NotDefinedError:
            return None
        except (AccessError, JqError) as error:
            text = f"the {FORMS[form]} of `{show_value(model.name)}` cannot be read: {error}"
            raise AccessError("values-failed", text, form=form) from error
        ids = self.instance_ids(model)
        if len(ids) != len(values):
            text = f"{len(ids)} instances, but {len(values)} {FORMS[form]}"
            raise AccessError("count-mismatch", text, ids=len(ids), values=len(values))
        return dict(zip(ids, values, strict=True))

    def update(self, model: ComponentModel, form: Form, values: Mapping[str, Any]) -> None:
        """Replace the values of every instance. Raises an error if `values` lacks one."""
        ids = self.instance_ids(model)
        for name in ids:
            if name not in values:
                text = f"no value for instance `{show_value(name)}` among the {FORMS[form]}"
                raise AccessError("value-missing", text, id=name, form=form)
        self.write(model, form, [values[name] for name in ids])
