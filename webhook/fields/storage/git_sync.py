"""Reads and writes the settings of git-sync containers, versions 3 and 4."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.fields.items.attributes import Unreadable
from webhook.objects.path import Path
from webhook.pods.pod_view import Container, mapping, sequence
from webhook.policy.policy import Default

REFERENCE = Unreadable("a reference", "the value itself, without $(…) or valueFrom")
ROOT = "/git"
"""The default root of checkouts in version 4."""
PINNED = re.compile(r"[0-9a-f]{7,64}")
VARIABLES = {
    "GITSYNC_REPO": "repo",
    "GIT_SYNC_REPO": "repo",
    "GITSYNC_REF": "ref",
    "GIT_SYNC_BRANCH": "branch",
    "GIT_SYNC_REV": "rev",
    "GITSYNC_ROOT": "root",
    "GIT_SYNC_ROOT": "root",
    "GITSYNC_USERNAME": "username",
    "GIT_SYNC_USERNAME": "username",
    "GITSYNC_PASSWORD": "password",
    "GIT_SYNC_PASSWORD": "password",
}
FLAGS = ("repo", "ref", "branch", "rev", "root", "username")
KEY_FILE = "/etc/git-secret/ssh"


def repository_of(image: str) -> str:
    """An image without its tag and digest."""
    name = image.partition("@")[0]
    head, slash, last = name.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}"


def is_git_image(image: Any, known: tuple[str, ...]) -> bool:
    """Return whether an image is one of the known ones. A known one without a tag matches every tag."""
    if not isinstance(image, str):
        return False
    plain = repository_of(image)
    return any(each == image or (each == repository_of(each) == plain) for each in known)


@dataclass(slots=True)
class Sync:
    """The settings of one container: attributes with their native value and path, and its root."""

    stated: dict[str, tuple[Any, Path]] = field(default_factory=dict)
    root: str = ROOT
    altered: str = ""


def arguments(container: Container, member: str) -> Iterator[tuple[str, Path]]:
    """Yield the texts of `command` or `args`, with their paths."""
    path = (*container.path, member)
    for index, each in enumerate(sequence(container.body.get(member), path)):
        if isinstance(each, str):
            yield each, (*path, index)


def flags(container: Container) -> dict[str, tuple[Any, Path]]:
    """The flags of the command line, the last of a name; `--name value` and `--name=value`."""
    found: dict[str, tuple[Any, Path]] = {}
    pending = ""
    for member in ("command", "args"):
        for text, path in arguments(container, member):
            if pending:
                found[pending], pending = (text, path), ""
                continue
            name, equals, value = text.lstrip("-").partition("=")
            if not text.startswith("-") or name not in FLAGS:
                continue
            if equals:
                found[name] = (value, path)
            else:
                pending = name
    return found


def variables(container: Container) -> dict[str, tuple[Any, Path]]:
    """Return the variables by their flag. Those of version 4 come first.

    A value is a text, or the map of its source.
    """
    path = (*container.path, "env")
    found: dict[str, tuple[Any, Path]] = {}
    newer: set[str] = set()
    for index, entry in enumerate(sequence(container.body.get("env"), path)):
        body = mapping(entry, (*path, index))
        variable = str(body.get("name"))
        name = VARIABLES.get(variable)
        if name is None or (name in newer and variable.startswith("GIT_SYNC_")):
            continue
        if variable.startswith("GITSYNC_"):
            newer.add(name)
        key = "valueFrom" if body.get("valueFrom") is not None else "value"
        value = body.get(key)
        found[name] = ("" if value is None else value, (*path, index, key))
    return found


def visible(value: Any) -> Any:
    """Return a literal text, Unreadable for a reference or a composed text."""
    if not isinstance(value, str):
        return REFERENCE
    return REFERENCE if "$(" in value else value


def read_settings(container: Container) -> Sync:
    """Return the settings of a container, from flags or else from variables."""
    settings = {**variables(container), **flags(container)}
    settings = {name: each for name, each in settings.items() if each[0] != ""}
    sync = Sync()
    if isinstance(settings.get("root", (None,))[0], str):
        sync.root = settings["root"][0]
    hidden = next((member for member in ("envFrom", "command") if container.body.get(member)), "")
    sync.altered = hidden
    if "repo" in settings:
        sync.stated["repository"] = visible(settings["repo"][0]), settings["repo"][1]
    elif hidden:
        sync.stated["repository"] = REFERENCE, (*container.path, hidden)
    for name in ("branch", "ref", "rev"):
        if name in settings:
            value = visible(settings[name][0])
            pinned = isinstance(value, str) and PINNED.fullmatch(value)
            is_revision = name == "rev" or (name == "ref" and pinned)
            if not (name == "rev" and value == "HEAD"):
                sync.stated["revision" if is_revision else "branch"] = value, settings[name][1]
    sync.stated |= credentials(settings)
    return sync


def credentials(settings: Mapping[str, tuple[Any, Path]]) -> dict[str, tuple[Any, Path]]:
    """The Secret and its keys, or the plain name of the user."""
    found: dict[str, tuple[Any, Path]] = {}
    for name, attribute in (("username", "secretKeyOfUser"), ("password", "secretKeyOfPassword")):
        if name not in settings:
            continue
        value, path = settings[name]
        if isinstance(value, str) and name == "username":
            found[f"secretRef.{attribute}"] = value, path
        held = value.get("secretKeyRef") if isinstance(value, dict) else None
        if isinstance(held, dict) and isinstance(held.get("name"), str):
            found["secretRef.name"] = held["name"], (*path, "secretKeyRef", "name")
            if isinstance(held.get("key"), str):
                found[f"secretRef.{attribute}"] = held["key"], (*path, "secretKeyRef", "key")
    if "password" in settings:
        found["secretRef.authenticationMethod"] = "password", settings["password"][1]
    return found


def sync_container(
    name: str, image: str, volume: str, attributes: Mapping[str, Default]
) -> dict[str, Any]:
    """Return a container that checks out once, configured by variables of version 4.

    A revision overrides a branch, because version 4 takes only one of them.
    """

    def text(attribute: str) -> str:
        return str(attributes[attribute].value) if attribute in attributes else ""

    env: list[dict[str, Any]] = [{"name": "GITSYNC_REPO", "value": text("repository")}]
    if revision := text("revision"):
        # Only a commit differs from a branch by form; the older name marks other revisions.
        variable = "GITSYNC_REF" if PINNED.fullmatch(revision) else "GIT_SYNC_REV"
        env.append({"name": variable, "value": revision})
    elif branch := text("branch"):
        env.append({"name": "GITSYNC_REF", "value": branch})
    env.append({"name": "GITSYNC_ROOT", "value": ROOT})
    env += credentials_of(text)
    return {
        "name": name,
        "image": image,
        "args": ["--one-time"],
        "env": env,
        "volumeMounts": [{"name": volume, "mountPath": ROOT}],
    }


def credentials_of(text: Any) -> list[dict[str, Any]]:
    """The variables of the credentials, if an item has any."""
    secret, user = text("secretRef.name"), text("secretRef.secretKeyOfUser")
    if not secret:
        return [{"name": "GITSYNC_USERNAME", "value": user}] if user else []
    keys = (
        ("GITSYNC_USERNAME", user or "User"),
        ("GITSYNC_PASSWORD", text("secretRef.secretKeyOfPassword") or "Password"),
    )
    return [
        {"name": variable, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
        for variable, key in keys
    ]
