"""The Judge interface between HTTP and decisions, and the judge that decides by a catalog.

Call `prepare` for a review until it returns Ready, then `decide` until it returns a decision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from webhook.admission.facts import ask_jq, find_facts, questions_of
from webhook.admission.own_documents import review_document
from webhook.admission.request_class import classify_request
from webhook.catalog.catalog import Catalog
from webhook.decision.decide import decide
from webhook.devices.kinds import CLASS, DOMAIN, GROUP
from webhook.evaluation.outcome import Decision, Denied, NeededObject
from webhook.evaluation.references import ClaimKey, Claims, References
from webhook.evaluation.request import Request, RequestClass, Stage
from webhook.jq.expressions import Evaluator
from webhook.jq.external import Facts
from webhook.policy.envelope import Context
from webhook.policy.policy import Policy
from webhook.policy.policy_spec import Selector
from webhook.policy.selectors import NAME_LABEL


@dataclass(frozen=True, slots=True)
class Ready:
    """A request with its class and the results of jq: all inputs of a decision."""

    request: Request
    facts: Facts | None = None


@dataclass(frozen=True, slots=True)
class NeedsNamespace:
    """Policies select by labels of the request's namespace: add them and call `prepare` again."""


@dataclass(frozen=True, slots=True)
class NeedsFacts:
    """Facts must come from another process. `ask` waits for it, so call it in a thread."""

    ask: Callable[[], Ready]


@dataclass(frozen=True, slots=True)
class NeedsObjects:
    """Objects that a decision did not find, known only after deciding: claims, or one to look up.

    Watched claims arrive by themselves: wait until `has` returns true, and decide again with the
    same Ready. Add a looked-up object to the request, and prepare it again.
    """

    claims: frozenset[ClaimKey] = frozenset()
    object: NeededObject | None = None


@dataclass(frozen=True, slots=True)
class JudgeStatus:
    """The state of a judge.

    `documents` counts the documents in force by kind, including shipped ones. `newest_at` is the
    Unix time until which the cluster's documents are known to be the newest, 0 if unknown.
    `workers` is the state of each worker of the Pod.
    """

    policies: int = 0
    documents: Mapping[str, int] = field(default_factory=dict)
    selects_namespaces: bool = False
    newest_at: float = 0.0
    workers: Sequence[Mapping[str, Any]] = ()


class Judge(Protocol):
    """Decides on reviews by one catalog. The HTTP side calls it from any thread.

    It raises only bugs, which get HTTP 500, and Overdue once the request was cancelled. It keeps
    nothing of a request.
    """

    def prepare(self, request: Request) -> Ready | NeedsNamespace | NeedsFacts:
        """Find out what a request needs. Never waits. Called again once labels or objects are added."""

    def decide(self, ready: Ready, *, final: bool) -> Decision | NeedsObjects:
        """Decide. With `final` the caller waits for claims no longer: missing ones are unknown."""

    def has(self, claims: frozenset[ClaimKey]) -> bool:
        """Return whether all of these claims are known. Never waits."""

    def status(self) -> JudgeStatus:
        """Return the state of the judge. Reads files."""


class RequestClaims(Claims, Protocol):
    """The claims for one request. `missed` are those that were looked up and not found."""

    missed: set[ClaimKey]


class WatchedClaims(Protocol):
    """Watched claims."""

    def find_claims(self) -> RequestClaims:
        """The claims for one request."""

    def watched_types(self) -> frozenset[str]:
        """Return the watched kinds, whose new objects arrive by themselves."""

    def device_classes(self) -> Mapping[str, Any] | None:
        """Return briefs of all DeviceClasses by name; None if they are not known."""


class Workers(Protocol):
    """The shared state of the workers of a Pod."""

    def heard(self) -> float:
        """Return the Unix time until which the documents are known to be the newest."""

    def acknowledgements(self) -> list[dict[str, Any]]:
        """Return the state of each worker."""


@dataclass(frozen=True, slots=True)
class CatalogJudge:
    """A judge with one catalog. A request uses no other.

    `evaluator` returns the jq evaluator of this process, `moment` the time in Kubernetes' format.
    `context` is how the installation reads documents. Without `claims` no claim is known.
    """

    catalog: Catalog
    evaluator: Callable[[], Evaluator]
    moment: Callable[[], str]
    context: Context = Context()  # noqa: RUF009 - frozen
    claims: WatchedClaims | None = None
    workers: Workers | None = None
    selecting: tuple[Policy, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Find the policies that select by labels."""
        selecting = tuple(filter(selects_by_labels, self.catalog.policies))
        object.__setattr__(self, "selecting", selecting)

    def prepare(self, request: Request) -> Ready | NeedsNamespace | NeedsFacts:
        """Find the class of the sender, then what the decision needs for it."""
        if request.stage is Stage.DOCUMENTS:
            return NeedsFacts(lambda: Ready(request))  # its paths are tried with jq
        request = classify(request, self.catalog)
        if self.lacks_labels(request):
            return NeedsNamespace()
        asked = questions_of(request, self.catalog)
        if not asked:
            return Ready(request)
        return NeedsFacts(lambda: Ready(request, ask_jq(asked, self.evaluator())))

    def lacks_labels(self, request: Request) -> bool:
        """Return whether the decision may depend on namespace labels that the request lacks.

        Never if no policy selects by labels there, nor for children of controllers, which pass.
        """
        name = request.namespace
        if not self.selecting or not name or request.namespace_labels:
            return False
        if request.request_class is RequestClass.EXEMPT:
            return False
        return any(depends_on_labels(each, name) for each in self.selecting)

    def decide(self, ready: Ready, *, final: bool) -> Decision | NeedsObjects:
        """Decide on a request that is ready."""
        request = ready.request
        if request.stage is Stage.DOCUMENTS:
            compile_jq = self.evaluator().compile_jq
            return review_document(request, self.catalog, self.context, compile_jq)
        name = request.namespace
        # The API server gives every namespace this label, so it needs no lookup.
        namespaces = {name: {**request.namespace_labels, NAME_LABEL: name} if name else {}}
        if self.catalog.exceptions:
            request = replace(request, time=self.moment())
        if self.claims is None:
            decision = decide_ready(request, self.catalog, References(namespaces), ready.facts)
        else:
            found = self.claims.find_claims()
            references = References(namespaces, found, self.claims.device_classes())
            decision = decide_ready(request, self.catalog, references, ready.facts)
            # A new domain is compared with the template that it names; it is no fault if there is none yet.
            if found.missed and request.kind != DOMAIN:
                if not final and any(
                    kind in self.claims.watched_types() for kind, _, _ in found.missed
                ):
                    return NeedsObjects(frozenset(found.missed))
                decision = replace(decision, unresolved=frozenset(found.missed))
        if isinstance(decision, Denied) and decision.needs is not None:
            return NeedsObjects(object=decision.needs)
        return decision

    def has(self, claims: frozenset[ClaimKey]) -> bool:
        """Return whether all of these claims are known."""
        if self.claims is None:
            return False
        found = self.claims.find_claims()
        return all(found.get(key) is not None for key in claims)

    def status(self) -> JudgeStatus:
        """Return the documents in force, and the state of the Pod's workers."""
        counts = self.catalog.documents()
        selects = bool(self.selecting)
        if self.workers is None:
            return JudgeStatus(counts["policy"], counts, selects)
        heard, used = self.workers.heard(), self.workers.acknowledgements()
        return JudgeStatus(counts["policy"], counts, selects, heard, used)


def decide_review(
    request: Request,
    catalog: Catalog,
    references: References,
    evaluator: Evaluator | None = None,
) -> Decision:
    """Decide on a request as an API server sends it, for callers that may wait for jq."""
    request = classify(request, catalog)
    facts = find_facts(request, catalog, evaluator)
    return decide_ready(request, catalog, references, facts)


def classify(request: Request, catalog: Catalog) -> Request:
    """Return the request with the class of its sender."""
    found = classify_request(request, catalog)
    return request if found is request.request_class else replace(request, request_class=found)


def decide_ready(
    request: Request, catalog: Catalog, references: References, facts: Facts | None
) -> Decision:
    """Decide on a request that has its class and its facts."""
    decision = decide(request, catalog, references, facts)
    completed = request.request_class in (RequestClass.FULL, RequestClass.OWNED)
    # The mutating webhook gets no classes.
    completed = completed and (request.group, request.kind) != (GROUP, CLASS)
    if completed and request.stage is Stage.VALIDATE and isinstance(decision, Denied):
        return replace(decision, completed=True)
    return decision


def selects_by_labels(policy: Policy) -> bool:
    """Return whether a policy selects namespaces by labels other than the name."""
    selector = policy.namespace_selector
    return selector is not None and any(key != NAME_LABEL for key, _, _ in selector.requirements)


def depends_on_labels(policy: Policy, namespace: str) -> bool:
    """Return whether labels other than the name decide if the policy applies to the namespace."""
    if policy.namespace_selector is None or namespace in policy.exclude_namespaces:
        return False
    wanted = policy.namespace_selector.requirements
    by_name = Selector(tuple(each for each in wanted if each[0] == NAME_LABEL))
    return by_name.matches({NAME_LABEL: namespace})
