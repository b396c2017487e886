"""Who acts in a soak: a user of the cluster, how they ask, and what they take for an answer."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.e2e.api import Api, StatusError
from tests.e2e.objects import Json
from tests.e2e.soak.things import Pool, Thing
from tests.e2e.testbed.cluster import Cluster


class SurpriseError(Exception):
    """Something came otherwise than it must."""


@dataclass(slots=True)
class Person:
    """Who acts: a user of the cluster with a connection of their own."""

    user: str
    api: Api
    cluster: Cluster
    pool: Pool
    random: Random

    def kubectl(self, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
        """kubectl as this user; it may fail."""
        return self.cluster.kubectl(*arguments, user=self.user, check=False, **more)

    @contextmanager
    def borrowed(self) -> Iterator[Thing | None]:
        """Some object that is nobody else's for now."""
        thing = self.pool.borrow(self.random)
        try:
            yield thing
        finally:
            if thing:
                thing.lock.release()

    def apply(self, thing: Thing, document: Json) -> str:
        """Apply on the client's or the server's side, as it always was; what was said against it."""
        server = ("--server-side", "--force-conflicts") if thing.server else ()
        asked = ("apply", *server, "--filename=-")
        done = self.kubectl(*asked, input=json.dumps(document))
        return done.stderr if done.returncode else ""

    def send(self, method: str, path: str, body: Any, content: str = "json") -> str:
        """Ask the API server itself; what was said against it."""
        try:
            self.api.request(method, path, body, f"application/{content}")
        except StatusError as error:
            return f"{error.status.get('code')} {error}"
        return ""

    def stored(self, thing: Thing) -> Json:
        """The object as it is now."""
        return self.api.request("GET", thing.sort.path(thing.name))


def run(person: Person, thing: Thing, verb: str, *more: str) -> str:
    """A kubectl command about one object; what was said against it."""
    done = person.kubectl(verb, f"--namespace={thing.sort.space}", thing.target, *more)
    return done.stderr if done.returncode else ""


def side(thing: Thing) -> str:
    """How it is applied, in a word."""
    return "server-side" if thing.server else "client-side"


def expected(told: str, name: str) -> str:
    """The name of a deed that nobody objected to."""
    if told:
        raise SurpriseError(f"not done: {told}")
    return name


def refused(told: str, rule: str) -> str:
    """The name of what was tried in vain, as it broke a rule."""
    if f"- {rule} at " not in told:
        raise SurpriseError(f"breaks {rule}, and was answered: {told or 'allowed'}")
    return "refused"
