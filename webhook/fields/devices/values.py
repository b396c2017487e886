"""Values of the `devices` fields, and the claims that they are read from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from webhook.devices.claim_view import ClaimView
from webhook.devices.classes import DeviceClasses
from webhook.objects.path import ABSENT, Path, read

ALL_MATCHING: Final = "all that match"
"""Why the allocation mode All gives a number without a bound."""


class DeviceValue(NamedTuple):
    """One value of a field, at its path in the object that has the claim.

    `value` is native, a list of texts for fields of lists, and None where nothing is set and a
    default would go. `key` is what it is of: the name of a request, or the index of a
    configuration. `device_class` is the class whose configuration it is from, "" for the claim's
    own, `unbounded` why a number has no bound. Only `writable` paths take a default, only `needed`
    ones are those that `required` asks for.
    """

    path: Path
    value: Any = None
    key: str = ""
    device_class: str = ""
    unbounded: str = ""
    writable: bool = True
    needed: bool = True


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim, and the classes that its values depend on.

    `of_class`: it has the configurations of a device class under review, and no requests.
    `kept` are results by what they were computed from.
    """

    view: ClaimView
    classes: DeviceClasses
    of_class: bool = False
    kept: dict[Path, Any] = field(default_factory=dict, compare=False)


def native_of(body: Any, at: Path) -> Any:
    """Return what is at a path, None for nothing."""
    value = read(body, at)
    return None if value is ABSENT or value == "" else value
