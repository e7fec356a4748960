//! The claim alone, at the instants and in the orders that the engine does not bring about, or that only its effects show.

use crate::bench::{at, ms, node};
use redlock_core::machine::{
    Answer, Claim, Effect, EndReason, ExtendBar, Quorum, Reach, ReleaseVerdict, Terms, Verb, Vote,
};
use redlock_core::{Drift, Instant, NodeId};
use std::time::Duration;

const TTL: Duration = ms(10_000);
/// TTL less the drift.
const DEADLINE: u64 = 9_898;

/// A claim on three nodes that hands out what it asks for at once, unless `holds_back`.
struct Rig {
    claim: Claim,
    effects: Vec<Effect>,
    holds_back: bool,
}

fn terms() -> Terms {
    Terms {
        quorum: Quorum::majority(3),
        drift: Drift::DEFAULT,
        ttl: TTL,
        node_timeout: ms(500),
        attempt_timeout: ms(500),
        max_hold: None,
        expiring_lead: None,
        jitter: 0,
        fenced: false,
    }
}

impl Rig {
    fn new(terms: Terms, reach: [Reach; 3]) -> Self {
        let mut effects = Vec::new();
        let claim = Claim::new(terms, reach, at(0), &mut effects);
        let mut rig = Self { claim, effects, holds_back: false };
        rig.hand_out(at(0));
        rig
    }

    /// Held from 0 ms on, with all nodes' votes but those of `silent`.
    fn held(terms: Terms, silent: &[u8]) -> Self {
        let mut rig = Self::new(terms, [Reach::Ready; 3]);
        for index in (0..3).filter(|index| !silent.contains(index)) {
            rig.answer(index, Verb::Set, Answer::Yes, at(0));
        }
        assert!(rig.claim.is_held());
        rig
    }

    fn hand_out(&mut self, now: Instant) {
        let asked: Vec<Effect> = self.effects.clone();
        for effect in asked {
            if let (Effect::Send(node, verb), false) = (effect, self.holds_back) {
                self.claim.handed_out(node, verb, now, &mut self.effects);
            }
        }
    }

    /// The effects of one input.
    fn input(&mut self, now: Instant, input: impl FnOnce(&mut Claim, &mut Vec<Effect>)) -> Vec<Effect> {
        self.effects.clear();
        input(&mut self.claim, &mut self.effects);
        self.hand_out(now);
        self.effects.clone()
    }

    fn answer(&mut self, index: u8, verb: Verb, answer: Answer, now: Instant) -> Vec<Effect> {
        self.input(now, |claim, effects| claim.answered(node(index), verb, answer, now, effects))
    }

    fn broken(&mut self, index: u8, reach: Reach, now: Instant) -> Vec<Effect> {
        self.input(now, |claim, effects| claim.broken(node(index), reach, now, effects))
    }

    fn ready(&mut self, index: u8, now: Instant) -> Vec<Effect> {
        self.input(now, |claim, effects| claim.ready(node(index), Reach::Ready, now, effects))
    }

    fn timeout(&mut self, now: Instant) -> Vec<Effect> {
        self.input(now, |claim, effects| claim.timeout(now, effects))
    }

    fn release(&mut self, now: Instant) -> Vec<Effect> {
        self.input(now, |claim, effects| claim.release(now, effects))
    }

    /// The extension's verb for each node.
    fn extend(&mut self, ttl: Duration, now: Instant) -> [Verb; 3] {
        let effects = self.input(now, |claim, effects| {
            claim.extend(ttl, now, effects).unwrap();
        });
        let verbs: Vec<Verb> = sends(&effects).into_iter().map(|(_, verb)| verb).collect();
        verbs.try_into().unwrap()
    }
}

fn sends(effects: &[Effect]) -> Vec<(NodeId, Verb)> {
    let send = |effect: &Effect| match effect {
        Effect::Send(node, verb) => Some((*node, *verb)),
        _ => None,
    };
    effects.iter().filter_map(send).collect()
}

fn is_round_done(effect: &Effect) -> bool {
    matches!(effect, Effect::RoundDone { .. })
}

#[test]
fn r8a_a_set_that_was_queued_waits_for_the_next_connection_only_where_one_is_made() {
    for (reach, vote) in [(Reach::Connecting, None), (Reach::Down, Some(Vote::Unsent))] {
        let mut effects = Vec::new();
        let mut claim = Claim::new(terms(), [Reach::Ready; 3], at(0), &mut effects);
        claim.broken(node(0), reach, at(10), &mut effects);
        assert_eq!(claim.vote(node(0)), vote, "{reach:?}");
    }
}

#[test]
fn r5_nodes_that_turn_out_to_be_away_decide_the_attempt() {
    let mut rig = Rig::new(terms(), [Reach::Ready, Reach::Connecting, Reach::Connecting]);
    for (index, lost) in [(1, false), (2, true)] {
        let effects = rig
            .input(at(10), |claim, effects| claim.reach_changed(node(index), Reach::Down, at(10), effects));
        assert_eq!(effects.iter().any(|effect| matches!(effect, Effect::AttemptLost(_))), lost);
    }
}

#[test]
fn r8a_a_node_that_is_ready_too_late_is_waited_for_no_longer() {
    let mut rig = Rig::new(terms(), [Reach::Ready, Reach::Ready, Reach::Connecting]);
    rig.answer(0, Verb::Set, Answer::Yes, at(1));
    rig.answer(1, Verb::Set, Answer::Yes, at(1));
    assert_eq!(rig.claim.next_timeout(), Some(at(500)));
    let mut late = rig.claim.clone();
    assert!(sends(&rig.ready(2, at(500))).is_empty());
    assert!(rig.claim.next_timeout() > Some(at(500)));
    late.timeout(at(500), &mut Vec::new());
    assert!(late.next_timeout() > Some(at(500)));
}

#[test]
fn r14_a_late_refusal_of_the_set_is_told_of_its_node() {
    let mut rig = Rig::held(terms(), &[2]);
    assert!(!rig.claim.is_gone(node(2)));
    rig.answer(2, Verb::Set, Answer::No, at(10));
    assert!(rig.claim.is_gone(node(2)));
}

#[test]
fn r25_whose_vote_does_not_count_is_told() {
    let rig = Rig::new(terms(), [Reach::Quarantined, Reach::Ready, Reach::Ready]);
    assert!(rig.claim.is_muted(node(0)) && !rig.claim.is_muted(node(1)));
}

#[test]
fn a_plain_yes_to_a_fenced_set_is_no_vote() {
    let mut rig = Rig::new(Terms { fenced: true, ..terms() }, [Reach::Ready; 3]);
    rig.answer(0, Verb::Set, Answer::Yes, at(1));
    assert_eq!(rig.claim.vote(node(0)), Some(Vote::Ambiguous));
}

#[test]
fn a_raise_that_waits_is_taken_back_and_a_node_that_is_away_does_not_hold_the_fence() {
    let mut rig = Rig::new(Terms { fenced: true, ..terms() }, [Reach::Ready; 3]);
    rig.holds_back = true;
    rig.answer(0, Verb::Set, Answer::Counters { lowest: 7, highest: 7 }, at(1));
    let effects = rig.answer(1, Verb::Set, Answer::Counters { lowest: 3, highest: 3 }, at(1));
    assert_eq!(sends(&effects), [(node(1), Verb::Raise { fence: 7 })]);
    for (reach, vote) in [(Reach::Connecting, None), (Reach::Down, Some(Vote::Failed))] {
        let mut claim = rig.claim.clone();
        claim.broken(node(1), reach, at(2), &mut Vec::new());
        assert_eq!(claim.vote(node(1)), vote, "{reach:?}");
    }
    let effects = rig.input(at(2), |claim, effects| claim.abandon(at(2), effects));
    assert!(effects.contains(&Effect::Withdraw(node(1))), "{effects:?}");
    assert!(!effects.contains(&Effect::Withdraw(node(0))), "nothing is queued there: {effects:?}");
}

#[test]
fn r16_an_extension_may_reach_the_end_of_max_hold_and_not_beyond() {
    let hold = Drift::DEFAULT.validity(TTL);
    let mut rig = Rig::held(Terms { max_hold: Some(hold), ..terms() }, &[]);
    assert_eq!(rig.claim.clone().extend(TTL, at(1), &mut Vec::new()), Err(ExtendBar::BeyondMaxHold));
    rig.extend(TTL, at(0));
}

#[test]
fn r14_nothing_is_extended_from_the_deadline_on_nor_after_the_end() {
    let mut rig = Rig::held(terms(), &[]);
    let mut effects = Vec::new();
    assert_eq!(rig.claim.clone().extend(TTL, at(DEADLINE), &mut effects), Err(ExtendBar::NotHeld));
    rig.release(at(100));
    assert_eq!(rig.claim.extend(TTL, at(101), &mut effects), Err(ExtendBar::NotHeld));
    assert!(effects.is_empty());
}

#[test]
fn r14_the_deadline_wins_a_tie_against_an_answer() {
    let mut rig = Rig::held(terms(), &[]);
    let verbs = rig.extend(TTL, at(DEADLINE - 1));
    let effects = rig.answer(2, verbs[2], Answer::No, at(DEADLINE));
    assert!(effects.contains(&Effect::Lost(EndReason::TokenGone)), "{effects:?}");
}

#[test]
fn r14_a_round_is_sent_again_only_while_it_is_undecided_and_in_time() {
    // Decided by the other two; its last node refuses the form.
    let mut rig = Rig::held(terms(), &[]);
    let verbs = rig.extend(TTL, at(100));
    rig.answer(0, verbs[0], Answer::Yes, at(101));
    rig.answer(1, verbs[1], Answer::Yes, at(101));
    assert!(sends(&rig.answer(2, verbs[2], Answer::FormRefused, at(102))).is_empty());
    // At the end of its time.
    for (now, count) in [(599, 1), (600, 0)] {
        let mut rig = Rig::held(terms(), &[]);
        rig.extend(TTL, at(100));
        rig.broken(2, Reach::Connecting, at(110));
        assert_eq!(sends(&rig.ready(2, at(now))).len(), count, "{now}");
    }
}

#[test]
fn r15_only_a_node_that_refused_this_round_is_repaired() {
    let mut rig = Rig::held(terms(), &[2]);
    rig.answer(2, Verb::Set, Answer::No, at(1));
    let verbs = rig.extend(TTL, at(100));
    rig.answer(0, verbs[0], Answer::Yes, at(101));
    assert!(sends(&rig.answer(1, verbs[1], Answer::Yes, at(101))).is_empty(), "it may have it by now");
    let effects = rig.answer(2, verbs[2], Answer::No, at(102));
    assert!(matches!(sends(&effects)[..], [(_, Verb::Repair { .. })]), "{effects:?}");
}

#[test]
fn r14_nodes_that_are_down_decide_a_round_at_once() {
    let mut rig = Rig::held(terms(), &[]);
    rig.extend(TTL, at(100));
    assert!(!rig.broken(0, Reach::Down, at(110)).iter().any(is_round_done));
    assert!(rig.broken(1, Reach::Down, at(110)).iter().any(is_round_done));
    // Those that connect again may still be in time.
    let mut rig = Rig::held(terms(), &[]);
    rig.extend(TTL, at(100));
    assert!(!rig.broken(0, Reach::Connecting, at(110)).iter().any(is_round_done));
    assert!(!rig.broken(1, Reach::Connecting, at(110)).iter().any(is_round_done));
    assert!(rig.timeout(at(600)).iter().any(is_round_done));
}

#[test]
fn r14_what_no_round_may_send_again_is_decided_when_its_connection_breaks() {
    let mut rig = Rig::held(terms(), &[]);
    rig.extend(TTL, at(100));
    // A later one is on its way to all nodes: the first is not sent again, connecting or not.
    rig.extend(TTL, at(110));
    assert_eq!(rig.broken(0, Reach::Connecting, at(120)).iter().filter(|e| is_round_done(e)).count(), 0);
    assert_eq!(rig.broken(1, Reach::Connecting, at(120)).iter().filter(|e| is_round_done(e)).count(), 1);
}

#[test]
fn r14_a_round_is_given_up_at_the_end_of_its_time_and_once() {
    let mut rig = Rig::held(terms(), &[]);
    rig.extend(TTL, at(100));
    assert!(!rig.timeout(at(500)).iter().any(is_round_done), "not before");
    assert!(rig.timeout(at(600)).iter().any(is_round_done));
    assert!(!rig.timeout(at(700)).iter().any(is_round_done), "its answers are outstanding, it is decided");
}

#[test]
fn r16_a_renewal_starts_when_it_is_due_unless_too_many_rounds_are_open() {
    let mut rig = Rig::held(Terms { max_hold: Some(Duration::MAX), ..terms() }, &[]);
    let mut crowded = rig.claim.clone();
    let due = rig.claim.next_timeout().unwrap();
    assert_eq!(sends(&rig.timeout(due)).len(), 3);
    for _ in 0..Claim::OPEN_ROUNDS {
        crowded.extend(TTL, at(3_000), &mut Vec::new()).unwrap();
    }
    let mut effects = Vec::new();
    crowded.timeout(due, &mut effects);
    assert!(sends(&effects).is_empty(), "{effects:?}");
    assert!(crowded.next_timeout() > Some(due));
}

#[test]
fn r7_a_repair_that_is_unanswered_at_the_end_keeps_its_release_owed() {
    let mut rig = Rig::held(terms(), &[]);
    let verbs = rig.extend(TTL, at(100));
    rig.answer(0, verbs[0], Answer::Yes, at(101));
    rig.answer(2, verbs[2], Answer::No, at(101));
    let effects = rig.answer(1, verbs[1], Answer::Yes, at(101));
    assert!(matches!(sends(&effects)[..], [(_, Verb::Repair { .. })]), "{effects:?}");
    rig.release(at(200));
    assert!(rig.claim.is_releasing());
    rig.broken(2, Reach::Down, at(210));
    rig.answer(0, Verb::Release, Answer::Yes, at(210));
    rig.answer(1, Verb::Release, Answer::Yes, at(210));
    rig.timeout(at(1_000_000));
    assert!(rig.claim.owes(node(2)) && !rig.claim.owes(node(0)));
    assert!(!rig.claim.is_releasing() && !rig.claim.is_finished());
}

#[test]
fn r23_a_release_is_not_sent_again_to_a_node_that_is_about_to_be_left() {
    let mut rig = Rig::held(terms(), &[]);
    rig.release(at(100));
    assert!(sends(&rig.answer(0, Verb::Release, Answer::Replaced, at(101))).is_empty());
    assert!(rig.claim.owes(node(0)));
    let again = rig.answer(1, Verb::Release, Answer::FormRefused, at(101));
    assert_eq!(sends(&again), [(node(1), Verb::Release)]);
}

#[test]
fn r19_gone_by_counts_the_nodes_alone_that_may_still_have_it() {
    let mut rig = Rig::new(terms(), [Reach::Ready; 3]);
    rig.answer(0, Verb::Set, Answer::Yes, at(5));
    rig.answer(1, Verb::Set, Answer::Yes, at(1));
    rig.answer(2, Verb::Set, Answer::No, at(5));
    rig.release(at(100));
    rig.answer(0, Verb::Release, Answer::Yes, at(101));
    rig.answer(2, Verb::Release, Answer::No, at(101));
    let effects = rig.answer(1, Verb::Release, Answer::NotApplied, at(101));
    assert_eq!(effects, [Effect::ReleaseDone(ReleaseVerdict::Unknown { gone_by: at(10_002) })]);
}
