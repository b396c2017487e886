"""Refuses what users write at places that end in the pods and belong to a controller."""

from __future__ import annotations

from webhook.evaluation.request import Treatment
from webhook.evaluation.state import Evaluation
from webhook.objects.path import read
from webhook.pods.matching import matches


def judge_reserved(ev: Evaluation) -> None:
    """A value at such a place that its writer, whom the installation trusts, did not write.

    The pods are made under a name that is exempt, so that nobody judges it there.
    """
    if ev.request.treatment is Treatment.TRUSTED:
        return
    for definition in ev.definition.everyone:
        for reserved in definition.profile.reserved:
            for path, value, _ in matches((reserved.place,), ev.request.object):
                if path is None or value in (None, [], {}):
                    continue
                if not ev.updating or read(ev.old, path) != value:
                    ev.violate("", path, None, None, None, reason="reserved", key=reserved.writer)
