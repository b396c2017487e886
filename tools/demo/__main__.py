"""make demo: starts the webhook on this machine and shows its answers to four reviews."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Never

import orjson
import typer
from rich.console import Console

from tools.demo.report import Outcome, console, facts, print_chapter, say
from tools.demo.webhook import DemoError, Webhook, apply_patch, review_of, running
from webhook.admission.judge import decide_review
from webhook.admission.review import parse_review
from webhook.catalog.catalog import Catalog
from webhook.cli import loading
from webhook.decision.messages import violation_text
from webhook.evaluation.outcome import Allowed
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, Stage
from webhook.objects.path import display
from webhook.sources.files import read_all, shipped_folder
from webhook.sources.load import Sources

FOLDER = shipped_folder() / "examples" / "demo"
POLICIES = FOLDER / "policies.yaml"
NAMESPACE = "team-vision"


@dataclass(frozen=True, slots=True)
class Chapter:
    """One review of the demo: a manifest, and the expected result with its paths."""

    file: str
    title: str
    allowed: bool
    places: tuple[str, ...]
    dry_run: bool = False
    warns: bool = False


STORY = (
    Chapter(
        "deployment",
        "A Deployment that sets little is completed",
        True,
        ("spec.template.spec.initContainers[0]", "spec.template.spec.containers[1]"),
    ),
    Chapter(
        "pytorchjob",
        "A PyTorchJob is refused, with everything that is wrong with it",
        False,
        (
            "spec.pytorchReplicaSpecs.Master.",
            "spec.pytorchReplicaSpecs.Worker.",
            "spec.runPolicy.",
        ),
    ),
    Chapter(
        "raycluster",
        "A RayCluster, as a dry run, is completed at the head and in both groups",
        True,
        ("spec.headGroupSpec.", "spec.workerGroupSpecs[0].", "spec.workerGroupSpecs[1]."),
        dry_run=True,
    ),
    Chapter(
        "jobset",
        "A JobSet is completed, and a policy in warn mode warns",
        True,
        ("spec.replicatedJobs[0].", "spec.replicatedJobs[1]."),
        warns=True,
    ),
)


def demo() -> None:
    """Start the webhook on this machine, send it four reviews, and show what it answers.

    Needs no cluster and leaves nothing behind. Exit code 0: all answers are as expected, 1: some are not.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, raise_interrupt)
    try:
        faults = run_story(console())
    except (DemoError, loading.BadInput) as error:
        loading.complain(f"error: {error}" if str(error) else "error: the demo's policies")
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        loading.complain("interrupted: the webhook is stopped and its folder is removed")
        raise typer.Exit(130) from None
    for fault in faults:
        loading.complain(f"error: {fault}")
    raise typer.Exit(1 if faults else 0)


def raise_interrupt(number: int, frame: object) -> Never:
    """Other signals end the demo as Ctrl-C does."""
    raise KeyboardInterrupt


def run_story(out: Console) -> list[str]:
    """Run the whole demo; return what differs from the expected results."""
    begun = time.monotonic()
    catalog = loading.catalog_of(Sources((str(POLICIES),)))
    say(
        out,
        "The demo: the webhook on this machine, over HTTPS, without a cluster",
        style="bold",
    )
    faults = []
    with running([POLICIES]) as webhook:
        introduce(out, webhook, catalog)
        for number, chapter in enumerate(STORY, 1):
            outcome = play(chapter, webhook, catalog)
            print_chapter(out, f"{number}. {chapter.title}", outcome, catalog)
            faults += [f"{chapter.file}: {fault}" for fault in differences(chapter, outcome)]
        pid, folder = webhook.process.pid, webhook.folder
    say(out, "")
    say(out, f"Stopped the webhook (process {pid}) and removed {folder}.")
    verdict = (
        "Everything went as described" if not faults else "Something went otherwise than described"
    )
    say(out, f"{verdict}, in {time.monotonic() - begun:.1f} s.", style="bold")
    return faults


def introduce(out: Console, webhook: Webhook, catalog: Catalog) -> None:
    """Print what was started, and where the policies are."""
    names = [each.name for each in catalog.policies if each.scope != "system"]
    rows = {
        "certificates": f"made in {webhook.folder}: a CA, and a leaf for 127.0.0.1",
        "policies": f"{', '.join(names)} in {near(POLICIES)}, and the built-in system policy",
        "webhook": f"podgate serve at https://127.0.0.1:{webhook.port}, process "
        f"{webhook.process.pid}, ready after {webhook.seconds:.1f} s",
        "shown": "verdicts, patches, causes, warnings and audit annotations as the webhook answers "
        "them over HTTPS. Which policy set a value is not in an answer: this process "
        "evaluates the same review by the same policies, and checks that it comes to the same.",
    }
    say(out, "")
    facts(out, rows, 2)


def near(path: Path) -> str:
    """A path relative to this folder, if possible."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def play(chapter: Chapter, webhook: Webhook, catalog: Catalog) -> Outcome:
    """Send one review to /mutate, and the result to /mutate again and to /validate."""
    documents, _ = read_all([str(FOLDER / "manifests" / f"{chapter.file}.yaml")], kubernetes=True)
    review = review_of(documents[0].data, NAMESPACE, catalog, dry_run=chapter.dry_run)
    body = orjson.dumps(review)
    answer = webhook.post("mutate", body)
    request = parse_review(body, Stage.MUTATE)
    assert isinstance(request, Request)
    decision = decide_review(request, catalog, References())
    if not answer.is_allowed:
        return Outcome(request, answer, decision, None)
    final = apply_patch(review["request"]["object"], answer.patch)
    review["request"]["object"] = final
    completed = orjson.dumps(review)
    again, checked = webhook.post("mutate", completed), webhook.post("validate", completed)
    return Outcome(request, answer, decision, final, again, checked)


def differences(chapter: Chapter, outcome: Outcome) -> Iterator[str]:
    """How the answer differs from the expected result, or from the same decision in this process."""
    answer, decision = outcome.answer, outcome.decision
    words = {True: "allowed", False: "refused"}
    if answer.is_allowed is not chapter.allowed:
        yield f"{words[answer.is_allowed]}, and should be {words[chapter.allowed]}"
    if isinstance(decision, Allowed):
        same = list(decision.patch) == answer.patch
        found = [display(change.path) for change in decision.changes]
    else:
        messages = [violation_text(each) for each in decision.violations]
        same = messages == [cause["message"] for cause in answer.causes]
        found = [cause["field"] for cause in answer.causes]
    if not same:
        yield "the answer differs from the same decision in this process"
    for place in chapter.places:
        if not any(each.startswith(place) for each in found):
            yield f"nothing was found at {place}"
    if chapter.warns and not answer.response.get("warnings"):
        yield "there is no warning"
    if outcome.again is not None and (not outcome.again.is_allowed or outcome.again.patch):
        yield "the completed object is changed again"
    if outcome.checked is not None and not outcome.checked.is_allowed:
        yield "the completed object is refused by /validate"


if __name__ == "__main__":
    typer.run(demo)
