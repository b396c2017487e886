"""What people do to objects, in many ways, and what must come of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import Any

from tests.e2e.soak.drift import generation, settled, wanted
from tests.e2e.soak.patches import EVIL, FORMS, GOOD, edits
from tests.e2e.soak.person import Person, SurpriseError, expected, refused, run, side
from tests.e2e.soak.things import Thing

LOCKED = "item WAVE is locked"
"""What is said where the policy that changes all the time differs from what was written."""


def create(person: Person) -> str:
    """Make an object: a bare create, or one of the ways to apply."""
    bare, server = person.random.random() < 0.3, person.random.random() < 0.5
    thing = person.pool.reserve(person.random, server)
    if thing is None:
        return ""
    try:
        told = made(person, thing, bare)
        if LOCKED in told:
            # What is locked changed between the two passes.
            told = made(person, thing, bare)
        if told:
            person.pool.drop(thing)
        return expected(told, "create" if bare else f"{side(thing)} create")
    finally:
        thing.lock.release()


def made(person: Person, thing: Thing, bare: bool) -> str:
    """What was said against an object that is made."""
    if bare:
        return person.send("POST", thing.sort.path(), thing.document)
    return person.apply(thing, thing.document)


def create_broken(person: Person) -> str:
    """Try to make what breaks a rule."""
    sort = person.random.choice(person.pool.sorts)
    thing = Thing(sort, person.pool.name("bad"), person.random.random() < 0.5)
    document = sort.spoilt(thing.name)
    if person.random.random() < 0.3:
        told = person.send("POST", sort.path(), document)
    else:
        told = person.apply(thing, document)
    return refused(told, sort.rule)


def apply_again(person: Person) -> str:
    """Apply the manifest, and once it is left alone the same again, which must write nothing."""
    with person.borrowed() as thing:
        if thing is None:
            return ""
        expected(person.apply(thing, thing.document), "")
        before = settled(person, thing)
        if before is None:
            return "apply, not settled"
        expected(person.apply(thing, thing.document), "")
        after = person.stored(thing)
        if wanted(before) != wanted(after):
            raise SurpriseError(f"drift of {thing.target}: {wanted(before)} is now {wanted(after)}")
        if not thing.sort.restless and generation(before) != generation(after):
            raise SurpriseError(f"{thing.target} was written again: {generation(after)}")
        return f"{side(thing)} apply twice"


def scale(person: Person) -> str:
    """`kubectl scale`, now and then to more than may be."""
    with person.borrowed() as thing:
        if thing is None or not thing.sort.replicas:
            return ""
        much = person.random.random() < 0.3
        count = 9 if much else person.random.choice(thing.sort.replicas)
        told = run(person, thing, "scale", f"--replicas={count}")
        return refused(told, "scale.replicas") if much else expected(told, "scale")


def set_image(person: Person) -> str:
    """`kubectl set image`, now and then to one that is not among the options."""
    with person.borrowed() as thing:
        if thing is None or not thing.sort.pod:
            return ""
        bad = person.random.random() < 0.3
        image = EVIL if bad else person.random.choice(GOOD)
        done = person.kubectl(
            "set", "image", f"--namespace={thing.sort.space}", thing.target, f"main={image}"
        )
        told = done.stderr if done.returncode else ""
        return refused(told, "image") if bad else expected(told, "set image")


def restart(person: Person) -> str:
    """`kubectl rollout restart`."""
    with person.borrowed() as thing:
        if thing is None or not thing.sort.restarts:
            return ""
        # kubectl refuses a second one within the same second.
        time.sleep(1)
        done = person.kubectl("rollout", "restart", f"--namespace={thing.sort.space}", thing.target)
        return expected(done.stderr if done.returncode else "", "rollout restart")


def patch(person: Person) -> str:
    """One of three forms; of the pod where it can be changed, else of a label."""
    with person.borrowed() as thing:
        if thing is None:
            return ""
        place, number = thing.sort.path(thing.name), str(person.random.randrange(1000))
        if not thing.sort.pod:
            body: Any = {"metadata": {"labels": {"example.com/seen": number}}}
            return expected(person.send("PATCH", place, body, FORMS["merge"]), "label")
        form = person.random.choice([*FORMS])
        bad = person.random.random() < 0.3
        body, rule = edits(form, bad, number, thing.sort.pod)
        told = person.send("PATCH", place, body, FORMS[form])
        return refused(told, rule) if bad else expected(told, f"{form} patch")


def delete(person: Person) -> str:
    """Delete an object, without waiting for what hangs on it."""
    with person.borrowed() as thing:
        if thing is None:
            return ""
        person.pool.ended[thing.sort.space, thing.name] = time.time()
        told = run(person, thing, "delete", "--wait=false")
        person.pool.drop(thing)
        return expected(told, "delete")


WEIGHTS: dict[Callable[[Person], str], int] = {
    create: 5,
    create_broken: 2,
    apply_again: 4,
    scale: 3,
    set_image: 3,
    restart: 1,
    patch: 6,
    delete: 3,
}


def choose(random: Random) -> Callable[[Person], str]:
    """One of all deeds, the frequent ones more often."""
    return random.choices([*WEIGHTS], [*WEIGHTS.values()])[0]
