"""Controllers that an installation trusts besides those of the profiles: exact users, owner kinds.

- users: ["system:serviceaccount:things-system:things-operator"]
  kinds: [{group: example.com, kind: Thing}]   # the kinds of the owners

All service accounts of a namespace (`system:serviceaccount:NAMESPACE:*`) are accepted only if the
namespace is ungoverned by name. In other namespaces a tenant may create them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.evaluation.trusted_mutators import all_are, exact, is_kind
from webhook.objects.path import Path, display

ACCOUNTS: Final = "system:serviceaccount:"
# It has the accounts of the garbage collector, of add-ons and of everything else that runs there.
NEVER: Final = "kube-system"
KEYS: Final = ("users", "kinds")


@dataclass(frozen=True, slots=True)
class TrustedController:
    """One entry: exact users, namespaces whose service accounts are all trusted, owner kinds."""

    users: frozenset[str]
    namespaces: frozenset[str]
    kinds: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class TrustedControllers:
    """An installation's list. An empty one trusts nobody."""

    entries: tuple[TrustedController, ...] = ()

    def trusts(self, user: str, owner: tuple[str, str]) -> bool:
        """Return whether the user may create objects for owners of this group and kind."""
        namespace = namespace_of(user)
        return any(
            owner in each.kinds and (user in each.users or namespace in each.namespaces)
            for each in self.entries
        )


def namespace_of(user: str) -> str | None:
    """Return the namespace of a service account, None for other users."""
    if not user.startswith(ACCOUNTS):
        return None
    namespace, _, name = user.removeprefix(ACCOUNTS).partition(":")
    return namespace if name and ":" not in name else None


def parse_controllers(
    document: SourceDocument, ungoverned: frozenset[str]
) -> tuple[TrustedControllers, tuple[Problem, ...]]:
    """Return the list in a document, and all its problems. `ungoverned` are names of namespaces."""
    problems = tuple(faults(document, ungoverned))
    if problems:
        return TrustedControllers(), problems
    return TrustedControllers(tuple(map(controller_of, document.data))), ()


def controller_of(entry: dict[str, Any]) -> TrustedController:
    """Convert an entry without faults."""
    patterns = {each for each in entry["users"] if each.endswith("*")}
    return TrustedController(
        frozenset(entry["users"]) - patterns,
        frozenset(each.split(":")[2] for each in patterns),
        frozenset((each.get("group", ""), each["kind"]) for each in entry["kinds"]),
    )


def faults(document: SourceDocument, ungoverned: frozenset[str]) -> Iterator[Problem]:
    """Yield every problem of the document, with its path."""

    def problem(path: Path, found: str, fix: str) -> Problem:
        line, column = document.position(path)
        shown = display(path) if path else ""
        return Problem(document.origin, shown, found, fix, "trusted-controllers", line, column)

    if not isinstance(document.data, list):
        yield problem((), "no list of trusted controllers", "write a list, `- users: […]` each")
        return
    for index, each in enumerate(document.data):
        if not isinstance(each, dict) or not set(each) <= set(KEYS):
            yield problem((index,), "an unknown member", f"write {' and '.join(KEYS)}")
            continue
        users = each.get("users")
        if not isinstance(users, list) or not users:
            yield problem((index, "users"), "no list of users", "write a list of user names")
            users = []
        for number, user in enumerate(users):
            fault = user_fault(user, ungoverned)
            if fault is not None:
                yield problem((index, "users", number), *fault)
        if not all_are(is_kind, each.get("kinds")):
            fix = "write {group: …, kind: …} for each kind of owner"
            yield problem((index, "kinds"), "no list of kinds", fix)


def user_fault(user: Any, ungoverned: frozenset[str]) -> tuple[str, str] | None:
    """Return the problem of one user and the fix, None if there is none."""
    if exact(user):
        return None
    parts = user.split(":") if isinstance(user, str) else []
    if len(parts) != 4 or parts[:2] != ["system", "serviceaccount"] or parts[3] != "*":
        fix = f"write a whole user name, or {ACCOUNTS}NAMESPACE:* for an ungoverned namespace"
        return "no exact user name", fix
    namespace = parts[2]
    if not namespace or set(namespace) & set("* \t\n"):
        return "no exact namespace", "write the name of the namespace"
    if namespace == NEVER:
        return f"all service accounts of {NEVER}", "write the exact name of each controller in it"
    if namespace not in ungoverned:
        found = f"all service accounts of {namespace}, which may be governed"
        return found, "write the exact name of each controller, or exclude the namespace (--exempt)"
    return None
