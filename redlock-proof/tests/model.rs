//! The check is checked: every planted fault is found, and nothing is found where none is planted.
#![allow(clippy::panic, clippy::expect_used, reason = "tests")]

use redlock_proof::model::{Fault, Met, Model, models, planted, search};

/// Looks for the fault, and answers with the number of steps to what it leads to.
fn found(fault: Fault) -> usize {
    let planted =
        planted().into_iter().find(|planted| planted.fault == fault).expect("a model for each fault");
    let Some(trace) = search(&planted.model).violation else { panic!("{fault:?} was not found") };
    assert_eq!(trace.violation.property, planted.property, "{fault:?} violates something else:\n{trace}");
    assert_eq!(trace.steps.len(), trace.to_string().lines().count() - 1, "one line for each step:\n{trace}");
    trace.steps.len()
}

fn model(name: &str) -> Model {
    models().into_iter().find(|model| model.name() == name).expect("a model of that name")
}

#[test]
fn r8_one_token_for_every_attempt_is_found() {
    assert_eq!(found(Fault::OneToken), 19);
}

#[test]
fn r3_half_of_the_nodes_for_a_quorum_is_found() {
    assert_eq!(found(Fault::HalfQuorum), 6);
}

#[test]
fn r21_a_late_reply_credited_to_the_next_attempt_is_found() {
    found(Fault::LateReplyCredited);
}

#[test]
fn r7_a_release_skipped_where_the_answer_is_unknown_is_found() {
    found(Fault::AmbiguousNotReleased);
}

#[test]
fn r7_a_release_forgotten_after_a_reconnect_is_found() {
    found(Fault::OwedForgotten);
}

#[test]
fn r15_a_repair_counted_in_its_own_round_is_found() {
    found(Fault::RepairCounted);
}

#[test]
fn r15_a_repair_after_the_release_is_found() {
    found(Fault::RepairAfterRelease);
}

#[test]
fn r14a_a_shorter_extension_that_counts_from_its_answer_is_found() {
    found(Fault::ShorterFromAnswer);
}

#[test]
fn r14b_an_extension_stuck_in_a_dead_connection_and_forgotten_is_found() {
    found(Fault::StuckForgotten);
}

#[test]
fn r14_a_look_that_finds_the_token_and_prolongs_is_found() {
    found(Fault::LookProlongs);
}

#[test]
fn r14_a_look_without_the_token_that_changes_nothing_is_found() {
    found(Fault::LookDropped);
}

#[test]
fn r14_a_look_told_before_what_was_sent_before_it_is_found() {
    found(Fault::LookAhead);
}

#[test]
fn r25_a_vote_in_quarantine_is_found() {
    found(Fault::QuarantineIgnored);
}

#[test]
fn r25_two_hold_the_lock_after_a_restart_without_the_guard() {
    found(Fault::Unguarded);
}

#[test]
fn fence_counters_raised_without_looking_are_found() {
    found(Fault::RaisedBlindly);
}

#[test]
fn fence_the_largest_counter_without_a_quorum_that_holds_it_is_found() {
    found(Fault::FenceNotHeld);
}

#[test]
fn fence_a_counter_that_restarts_from_zero_is_found() {
    found(Fault::CounterFromZero);
}

#[test]
fn fence_a_repair_that_puts_an_old_number_is_found() {
    found(Fault::RepairPutsFence);
}

#[test]
fn fence_a_late_grant_that_moves_it_is_found() {
    found(Fault::FenceMoves);
}

#[test]
fn fence_a_counter_beyond_it_that_is_taken_for_holding_it_is_found() {
    found(Fault::BeyondCounted);
}

#[test]
fn r13_a_term_that_outlives_its_deadline_is_found() {
    found(Fault::TermOutlives);
}

#[test]
fn election_a_stale_epoch_that_is_taken_is_found() {
    found(Fault::StaleEpochTaken);
}

#[test]
fn election_a_candidate_that_never_campaigns_again_is_found() {
    found(Fault::LoserGivesUp);
    found(Fault::CalledOffForgotten);
    found(Fault::EndedForgotten);
}

#[test]
fn election_one_who_has_led_and_does_not_rest_is_found() {
    found(Fault::NoRest);
    found(Fault::DelayIgnored);
}

/// The exception that is documented where fences are offered: the model can break the order of fences by it, so it would
/// see other ways too.
#[test]
fn fence_a_counter_lost_with_a_clock_behind_breaks_the_order() {
    found(Fault::ClockBehind);
    found(Fault::ClockBehindNamed);
}

/// What finds a fault finds nothing where there is none.
#[test]
fn the_shipped_machines_pass_the_models_of_the_faults() {
    let small = [
        Fault::RaisedBlindly,
        Fault::FenceNotHeld,
        Fault::BeyondCounted,
        Fault::FenceMoves,
        Fault::CounterFromZero,
        Fault::QuarantineIgnored,
        Fault::OwedForgotten,
        Fault::RepairAfterRelease,
        Fault::LookProlongs,
        Fault::LookDropped,
        Fault::LookAhead,
        Fault::TermOutlives,
        Fault::StaleEpochTaken,
        Fault::LoserGivesUp,
        Fault::CalledOffForgotten,
        Fault::EndedForgotten,
        Fault::NoRest,
        Fault::DelayIgnored,
    ];
    for planted in planted().into_iter().filter(|planted| small.contains(&planted.fault)) {
        let outcome = search(&planted.model.sound());
        let violation = outcome.violation.map(|trace| trace.to_string()).unwrap_or_default();
        assert_eq!(violation, "", "{:?}", planted.fault);
    }
}

#[test]
fn every_fault_has_its_model() {
    let planted = planted();
    assert_eq!(planted.len(), 29);
    for (index, one) in planted.iter().enumerate() {
        assert!(
            planted.iter().skip(index + 1).all(|other| other.fault != one.fault),
            "{:?} twice",
            one.fault
        );
    }
}

/// Taking states for one that differ by names alone hides nothing: the shortest way to each fault has as many steps without.
#[test]
fn renaming_hides_nothing() {
    let small = [
        Fault::HalfQuorum,
        Fault::AmbiguousNotReleased,
        Fault::OwedForgotten,
        Fault::RepairCounted,
        Fault::RepairAfterRelease,
        Fault::ShorterFromAnswer,
        Fault::QuarantineIgnored,
        Fault::LookDropped,
        Fault::LookAhead,
        Fault::TermOutlives,
        Fault::RaisedBlindly,
        Fault::FenceNotHeld,
        Fault::CounterFromZero,
    ];
    for planted in planted().into_iter().filter(|planted| small.contains(&planted.fault)) {
        let with = search(&planted.model);
        let without = search(&planted.model.without_renaming());
        let steps = |outcome: &redlock_proof::model::Outcome| {
            outcome.violation.as_ref().map(|trace| trace.steps.len())
        };
        assert_eq!(steps(&with), steps(&without), "{:?}", planted.fault);
        assert!(with.states <= without.states, "{:?}", planted.fault);
    }
}

#[test]
fn the_shipped_machines_pass_the_smallest_models() {
    for name in ["connect", "fence-clocks", "attempts", "election-watch"] {
        let outcome = search(&model(name));
        assert!(outcome.violation.is_none(), "{name}:\n{}", outcome.violation.expect("a trace"));
        assert_eq!(outcome.missing, [], "{name} is too weak");
        assert!(outcome.states > 100_000, "{name} has {} states only", outcome.states);
    }
}

#[test]
fn the_search_is_the_same_every_time() {
    let planted = planted();
    let model =
        &planted.iter().find(|planted| planted.fault == Fault::QuarantineIgnored).expect("planted").model;
    let (one, other) = (search(model), search(model));
    assert_eq!((one.states, one.transitions), (other.states, other.transitions));
    assert_eq!(
        one.violation.map(|trace| (trace.violation.property, trace.steps)),
        other.violation.map(|trace| (trace.violation.property, trace.steps))
    );
}

#[test]
fn a_model_in_which_nothing_happens_is_too_weak() {
    let outcome = search(&model("connect").idle());
    assert!(outcome.violation.is_none());
    assert!(outcome.missing.contains(&Met::Granted), "{:?}", outcome.missing);
}
