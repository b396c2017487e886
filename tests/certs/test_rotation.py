"""What is due when, and that a client with a published bundle never refuses a served leaf."""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store

from certs import authority, rotation, secret
from certs.names import Names
from certs.pair import KeyPair, certificates_in
from certs.state import Action, Observed, Plan, Policy, Reason, State
from tests.certs.handshake import attempt

NOW = datetime.now(UTC).replace(microsecond=0)
DAY = timedelta(days=1)
NAMES = Names.of(["podgate.podgate.svc"], ["127.0.0.1"])
POLICY = Policy()
NOTHING = Observed()


def start(now: datetime = NOW) -> State:
    return rotation.plan(None, now, NAMES, POLICY, NOTHING).state


def changes(
    state: State, now: datetime, observed: Observed = NOTHING, names: Names = NAMES
) -> list[str]:
    return [str(change) for change in rotation.plan(state, now, names, POLICY, observed).changes]


def accepts(bundle: bytes, leaf: KeyPair, now: datetime) -> bool:
    store = Store(x509.load_pem_x509_certificates(bundle))
    verifier = (
        PolicyBuilder().store(store).time(now).build_server_verifier(x509.DNSName(NAMES.dns[0]))
    )
    try:
        verifier.verify(leaf.certificate.x509, [])
    except x509.verification.VerificationError:
        return False
    return True


def published(state: State, now: datetime) -> dict[str, datetime]:
    return {ca.fingerprint: now for ca in certificates_in(rotation.bundle(state))}


def in_phase_one(now: datetime = NOW) -> State:
    """A CA past two thirds of its life with a fresh leaf, and the next CA in the bundle."""
    old = start(now - 250 * DAY)
    return rotation.plan(old, now, NAMES, POLICY, NOTHING).state


def in_phase_two(now: datetime = NOW) -> State:
    state = in_phase_one(now)
    observed = Observed(published(state, now - DAY))
    return rotation.plan(state, now, NAMES, POLICY, observed).state


def test_from_nothing_come_a_ca_and_a_leaf() -> None:
    made = rotation.plan(None, NOW, NAMES, POLICY, NOTHING)
    assert [change.action for change in made.changes] == [Action.CREATE_CA, Action.ISSUE_LEAF]
    assert {change.reason for change in made.changes} == {Reason.ABSENT}
    assert accepts(rotation.bundle(made.state), made.state.leaf, NOW)


def test_nothing_is_due_for_a_fresh_state() -> None:
    state = start()
    assert rotation.plan(state, NOW, NAMES, POLICY, NOTHING) == Plan(state)
    assert changes(state, NOW + 59 * DAY) == []


def test_a_leaf_is_renewed_at_two_thirds_of_its_life() -> None:
    assert changes(start(), NOW + 60 * DAY) == ["issue a leaf: two thirds of its life are over"]


def test_other_names_bring_a_new_leaf_of_the_same_ca() -> None:
    state, other = start(), Names.of(["other.svc"])
    made = rotation.plan(state, NOW, other, POLICY, NOTHING)
    assert [change.reason for change in made.changes] == [Reason.NAMES]
    assert made.state.ca == state.ca
    assert made.state.leaf.subject_names == other


@pytest.mark.parametrize("broken", ["certificate", "key", "mixed"])
def test_a_broken_leaf_is_replaced(broken: str) -> None:
    state, other = start(), start()
    leaf = {
        "certificate": KeyPair(b"x", state.leaf.key_pem),
        "key": KeyPair(state.leaf.certificate_pem, b"x"),
        "mixed": KeyPair(state.leaf.certificate_pem, other.leaf.key_pem),
    }[broken]
    assert changes(replace(state, leaf=leaf), NOW) == ["issue a leaf: the one there cannot be used"]


def test_a_leaf_of_another_ca_is_replaced() -> None:
    state = replace(start(), leaf=start().leaf)
    assert changes(state, NOW) == ["issue a leaf: it is not signed by the current CA"]


def test_an_expired_leaf_is_replaced() -> None:
    assert changes(start(), NOW + 100 * DAY) == ["issue a leaf: the one there has expired"]


@pytest.mark.parametrize("ahead", [timedelta(hours=2), 40 * DAY])
def test_what_a_clock_that_was_ahead_has_made_is_replaced_at_once(ahead: timedelta) -> None:
    early = start(NOW + ahead)
    assert not accepts(rotation.bundle(early), early.leaf, NOW)
    mended = rotation.plan(early, NOW, NAMES, POLICY, NOTHING).state
    assert accepts(rotation.bundle(mended), mended.leaf, NOW)
    assert changes(mended, NOW) == []


def test_a_leaf_alone_that_is_not_valid_yet_is_issued_again_by_the_same_ca() -> None:
    state = start()
    leaf = authority.issue_server(state.ca, NAMES, NOW + DAY, POLICY.leaf_life)
    found = rotation.plan(replace(state, leaf=leaf), NOW, NAMES, POLICY, NOTHING)
    assert [each.reason for each in found.changes] == [Reason.EARLY]
    assert found.state.ca == state.ca
    assert accepts(rotation.bundle(found.state), found.state.leaf, NOW)


def test_clocks_that_differ_a_little_replace_nothing() -> None:
    assert changes(start(NOW + timedelta(minutes=4)), NOW) == []


def test_phase_one_adds_the_next_ca_while_the_old_signs() -> None:
    state = in_phase_one()
    assert state.next_ca is not None
    assert len(certificates_in(rotation.bundle(state))) == 2
    assert state.leaf.certificate.signed_by(state.ca.certificate)
    assert changes(state, NOW + 20 * DAY) == []


def test_phase_two_waits_until_every_client_has_had_the_bundle() -> None:
    state = in_phase_one()
    later = NOW + timedelta(minutes=9)
    assert changes(state, later, Observed(published(state, NOW))) == []
    settled = changes(state, NOW + timedelta(minutes=10), Observed(published(state, NOW)))
    assert settled == [
        "let the next CA sign: every client has had the new bundle long enough",
        "issue a leaf: it is not signed by the current CA",
    ]


def test_phase_two_keeps_the_old_ca_in_the_bundle_without_its_key() -> None:
    state = in_phase_two()
    assert len(state.previous) == 1
    assert state.next_ca is None
    assert state.leaf.certificate.signed_by(state.ca.certificate)
    assert len(certificates_in(rotation.bundle(state))) == 2


def test_phase_three_waits_for_every_replica() -> None:
    state, later = in_phase_two(), NOW + DAY
    new = state.leaf.fingerprint
    assert changes(state, later, Observed(replicas_on=frozenset())) == []
    assert changes(state, later, Observed(replicas_on=frozenset({new, "old"}))) == []
    assert changes(state, NOW, Observed(replicas_on=frozenset({new}))) == []
    done = rotation.plan(state, later, NAMES, POLICY, Observed(replicas_on=frozenset({new})))
    assert [change.reason for change in done.changes] == [Reason.UNUSED]
    assert rotation.bundle(done.state) == state.ca.certificate_pem


@pytest.mark.parametrize("phase", [in_phase_one, in_phase_two])
def test_a_real_handshake_succeeds_in_both_overlap_phases(
    phase: Callable[[], State], tmp_path: Path
) -> None:
    state, other = phase(), start()
    for name in ("podgate.podgate.svc", "127.0.0.1"):
        assert attempt(state.leaf, rotation.bundle(state), name, tmp_path) == b"hello"
    assert not accepts(rotation.bundle(other), state.leaf, NOW)


def test_every_leaf_of_a_change_is_good_with_the_bundle_of_the_other_side(tmp_path: Path) -> None:
    one = in_phase_one()
    two = rotation.plan(one, NOW, NAMES, POLICY, Observed(published(one, NOW - DAY))).state
    for leaf in (one.leaf, two.leaf):
        for state in (one, two):
            assert attempt(leaf, rotation.bundle(state), "127.0.0.1", tmp_path) == b"hello"


def test_a_lost_ca_key_is_overcome_with_overlap() -> None:
    whole = start()
    lost = replace(whole, ca=KeyPair(whole.ca.certificate_pem, b""))
    made = rotation.plan(lost, NOW, NAMES, POLICY, NOTHING)
    assert [str(change) for change in made.changes] == [
        "add the next CA to the bundle: the one there cannot be used"
    ]
    assert made.state.leaf == whole.leaf
    assert changes(made.state, NOW + 70 * DAY) == []


def test_a_lost_ca_key_and_a_broken_leaf_end_the_wait() -> None:
    whole = start()
    lost = replace(whole, ca=KeyPair(whole.ca.certificate_pem, b""), leaf=KeyPair(b"", b""))
    made = rotation.plan(lost, NOW, NAMES, POLICY, NOTHING)
    assert Reason.STUCK in [change.reason for change in made.changes]
    assert accepts(rotation.bundle(made.state), made.state.leaf, NOW)


def test_an_unreadable_ca_is_replaced_by_the_next_or_a_new_one() -> None:
    waiting = in_phase_one()
    assert waiting.next_ca is not None
    made = rotation.plan(
        replace(waiting, ca=KeyPair(b"x", b"x")), NOW, NAMES, POLICY, NOTHING
    ).state
    assert made.ca == waiting.next_ca
    made = rotation.plan(replace(start(), ca=KeyPair(b"", b"")), NOW, NAMES, POLICY, NOTHING).state
    assert accepts(rotation.bundle(made), made.leaf, NOW)


def test_a_leaf_in_the_place_of_a_ca_is_no_ca() -> None:
    state = start()
    first = rotation.plan(replace(state, ca=state.leaf), NOW, NAMES, POLICY, NOTHING).changes[0]
    assert (first.action, first.reason) == (Action.CREATE_CA, Reason.BROKEN)


def test_a_broken_next_ca_is_made_again_when_due_and_dropped_when_not() -> None:
    broken = KeyPair(b"x", b"x")
    assert changes(replace(in_phase_one(), next_ca=broken), NOW) == [
        "add the next CA to the bundle: two thirds of its life are over"
    ]
    assert changes(replace(start(), next_ca=broken), NOW) == [
        "drop a CA from the bundle: the one there cannot be used"
    ]


def test_a_cluster_that_slept_for_years_starts_anew_at_once() -> None:
    now = NOW + 2000 * DAY
    made = rotation.plan(start(), now, NAMES, POLICY, NOTHING).state
    assert made.previous == ()
    assert accepts(rotation.bundle(made), made.leaf, now)


def test_days_left_are_told_for_each_part_and_zero_for_a_broken_one() -> None:
    state = in_phase_two()
    assert rotation.days_left(state, NOW) == {"leaf": 90.0, "ca": 365.0}
    assert rotation.days_left(in_phase_one(), NOW)["next_ca"] == 365.0
    assert rotation.days_left(state, NOW + 91 * DAY)["leaf"] == -1.0
    assert rotation.days_left(replace(state, leaf=KeyPair(b"x", b"")), NOW)["leaf"] == 0.0


@pytest.mark.parametrize("make", [start, in_phase_one, in_phase_two])
def test_a_state_survives_its_secrets(make: Callable[[], State]) -> None:
    state = make()
    authority_data, serving_data = secret.authority_data(state), secret.serving_data(state)
    assert secret.read(authority_data, serving_data) == state
    assert serving_data["ca.crt"] == rotation.bundle(state)
    assert state.ca.key_pem not in serving_data.values()


def test_lost_or_broken_secrets_are_found_and_mended() -> None:
    state = in_phase_two()
    assert secret.read({}, {}) is None
    without_leaf = secret.read(secret.authority_data(state), {})
    assert without_leaf is not None
    assert changes(without_leaf, NOW) == ["issue a leaf: there was none"]
    broken = dict.fromkeys(secret.authority_data(state), b"x")
    mended = rotation.plan(secret.read(broken, {}), NOW, NAMES, POLICY, NOTHING).state
    assert accepts(rotation.bundle(mended), mended.leaf, NOW)


@pytest.mark.parametrize("make", [start, in_phase_one, in_phase_two])
@pytest.mark.parametrize("left", [{}, {"ca.crt": b"x", "ca.key": b"x"}])
def test_a_lost_secret_of_the_ca_takes_no_trust_from_what_is_served(
    make: Callable[[], State], left: dict[str, bytes]
) -> None:
    """The bundle is published at once, replicas load another leaf a minute later."""
    before = make()
    state = secret.read(left, secret.serving_data(before))
    assert state is not None
    now = NOW
    seen: set[str] = set()
    for _ in range(6):
        state = rotation.plan(state, now, NAMES, POLICY, Observed(published(state, now))).state
        assert accepts(rotation.bundle(state), before.leaf, now)
        assert accepts(rotation.bundle(state), state.leaf, now)
        since = published(state, now)
        now += POLICY.settle
        state = rotation.plan(state, now, NAMES, POLICY, Observed(since)).state
        seen.add(state.leaf.fingerprint)
    assert len(seen - {before.leaf.fingerprint}) == 1, "one leaf of a CA with a key"
    settled = rotation.plan(
        state,
        now,
        NAMES,
        POLICY,
        Observed(published(state, now), frozenset({state.leaf.fingerprint})),
    ).state
    assert settled.previous == ()


def test_a_foreign_leaf_beside_a_lost_ca_is_no_reason_to_trust_its_issuer() -> None:
    stranger = start().leaf
    serving = secret.serving_data(start()) | {
        "tls.crt": stranger.certificate_pem,
        "tls.key": stranger.key_pem,
    }
    state = secret.read({}, serving)
    assert state is not None
    bundle = rotation.bundle(rotation.plan(state, NOW, NAMES, POLICY, NOTHING).state)
    assert not accepts(bundle, stranger, NOW)


@dataclass
class World:
    """API servers and replicas that hear of a new bundle or leaf late, each at its own time.

    None goes back to older news once it has newer ones, as a watch or a mounted Secret does not.
    """

    state: State
    chance: random.Random
    slowest: timedelta
    bundles: list[bytes] = field(default_factory=list)
    leaves: list[KeyPair] = field(default_factory=list)
    news: deque[tuple[datetime, int, int, State]] = field(default_factory=deque)
    told: int = 0
    heard: list[int] = field(default_factory=lambda: [0] * 6)
    since: dict[str, datetime] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.bundles = [rotation.bundle(self.state)] * 3
        self.leaves = [self.state.leaf] * 3

    def tell(self, state: State, now: datetime) -> None:
        self.state = state
        self.told += 1
        for listener in range(6):
            self.news.append(
                (now + self.chance.random() * self.slowest, listener, self.told, state)
            )

    def pass_to(self, now: datetime) -> None:
        for item in [item for item in self.news if item[0] <= now]:
            self.news.remove(item)
            _, listener, number, state = item
            if number < self.heard[listener]:
                continue
            self.heard[listener] = number
            if listener < 3:
                self.bundles[listener] = rotation.bundle(state)
            else:
                self.leaves[listener - 3] = state.leaf
        held = [{ca.fingerprint for ca in certificates_in(bundle)} for bundle in self.bundles]
        everywhere = set.intersection(*held)
        self.since = {ca: self.since.get(ca, now) for ca in everywhere}

    def observed(self) -> Observed:
        return Observed(dict(self.since), frozenset(leaf.fingerprint for leaf in self.leaves))


@pytest.mark.parametrize(("ca_days", "leaf_days"), [(60, 14), (200, 30), (365, 14), (365, 90)])
def test_over_years_no_client_ever_refuses_a_leaf_that_is_served(
    ca_days: int, leaf_days: int
) -> None:
    chance = random.Random(ca_days * leaf_days)
    policy = Policy(ca_life=ca_days * DAY, leaf_life=leaf_days * DAY)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    end = now + 5 * 365 * DAY
    world = World(rotation.plan(None, now, NAMES, policy, NOTHING).state, chance, 2 * DAY)
    done: list[Action] = []
    checked: dict[tuple[bytes, bytes], datetime] = {}
    while now < end:
        now += timedelta(hours=chance.choice([1, 3, 12, 20]))
        world.pass_to(now)
        made = rotation.plan(world.state, now, NAMES, policy, world.observed())
        if made.changes:
            done += [change.action for change in made.changes]
            assert rotation.plan(made.state, now, NAMES, policy, world.observed()).changes == ()
            world.tell(made.state, now)
        assert world.state.leaf.certificate.days_left(now) > 2
        for bundle in set(world.bundles):
            for leaf in set(world.leaves):
                known = checked.get((bundle, leaf.certificate_pem))
                # A pair accepted before stays good until something in it ends.
                ends = min([leaf.not_after, *(ca.not_after for ca in certificates_in(bundle))])
                if known is None or now >= ends:
                    assert accepts(bundle, leaf, now), (now, leaf.not_after)
                    checked[bundle, leaf.certificate_pem] = now
    assert done.count(Action.SWITCH_CA) >= 6
    assert done.count(Action.DROP_CA) >= done.count(Action.SWITCH_CA) - 1
    assert Action.CREATE_CA not in done


def test_a_publisher_that_is_down_delays_the_switch_and_breaks_nothing() -> None:
    state, now = start(), NOW
    first = rotation.bundle(state)
    while now < NOW + 360 * DAY:
        now += DAY
        state = rotation.plan(state, now, NAMES, POLICY, NOTHING).state
        assert accepts(first, state.leaf, now)
    assert authority.can_sign(state.ca, now)
