"""People at work: each does one thing after another and tells what came otherwise than it must."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random

from tests.e2e.api import Api, StatusError
from tests.e2e.soak import deeds
from tests.e2e.soak.person import Person, SurpriseError
from tests.e2e.soak.things import Pool
from tests.e2e.testbed.cluster import Cluster

USERS = ("alice", "bob", "carol")
GROUP = "people"


@dataclass(slots=True)
class Crowd:
    """The people, what they did by name of the deed, and what surprised them."""

    cluster: Cluster
    pool: Pool
    seed: int
    pause: float
    done: Counter[str] = field(default_factory=Counter)
    surprises: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def work(self, seconds: float) -> None:
        """Have all of them work for a while, and wait for the last deed of each."""
        threads = [
            threading.Thread(target=self.live, args=(user, Random(f"{self.seed} {user}")))
            for user in USERS
        ]
        for each in threads:
            each.start()
        time.sleep(seconds)
        self.ended.set()
        for each in threads:
            each.join()

    def live(self, user: str, random: Random) -> None:
        """One deed after another."""
        with contextlib.closing(Api(self.cluster, user)) as api:
            person = Person(user, api, self.cluster, self.pool, random)
            while not self.ended.wait(self.pause * random.random()):
                deed = deeds.choose(random)
                try:
                    name = deed(person)
                except SurpriseError as surprise:
                    name = "surprise"
                    self.surprises.append(f"{user}, {deed.__name__}: {surprise}")
                except StatusError as error:
                    name = f"answer {error.status.get('code')}"
                    self.surprises.append(f"{user}, {deed.__name__}: {error.status}")
                except Exception as error:
                    self.surprises.append(f"{user}, {deed.__name__}: {error!r}")
                    return
                if name:
                    self.done[name] += 1
