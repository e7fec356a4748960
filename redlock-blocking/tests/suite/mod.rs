//! What every cluster of nodes must let us do, whether its nodes are simulated or real servers.
//!
//! A behaviour is a function over a [`Make`], which starts clusters; `behaviours!` makes the tests of one kind of cluster
//! out of all of them. Their names say which rule or case they are for.
//!
//! Written against [`redlock_blocking`]; the asynchronous adapters' tests give that name to themselves, dressed up as it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::wildcard_enum_match_arm,
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "a test may fail by panicking, and each needs only a part of the suite"
)]

pub mod acquire;
pub mod cluster;
pub mod connect;
pub mod election;
pub mod faults;
pub mod fence;
pub mod hold;
pub mod proxy;
pub mod restart;
pub mod runs;
pub mod waiting;

use core::time::Duration;
use redlock_blocking::{Clock, Instant, NodeState, Redlock, SystemClock};
use std::thread;

pub use cluster::{Cluster, Make};

/// Makes a test of every behaviour; `$run`, one of [`runs`], runs one with each cluster of its kind.
#[macro_export]
macro_rules! behaviours {
    ($run:ident) => {
        /// The other half of a test that needs a process of its own; nothing by itself.
        #[test]
        fn a_child_process() {
            $crate::suite::hold::child();
        }
        $crate::behaviours! { $run, acquire:
            r2_all_nodes_are_set_and_release_leaves_no_key
            r8b_the_key_is_the_resource_and_the_value_names_the_client
            r9_waiting_wins_once_the_holder_is_gone
            r12_what_makes_no_sense_is_refused_with_nothing_sent
            b52_contention_is_told_in_full
            b10_a_slow_holder_does_not_remove_the_next_ones_lock
            b54_many_resources_leave_nothing_behind
            acquire_all_takes_all_or_none
            many_threads_share_one_client
        }
        $crate::behaviours! { $run, hold:
            r14_extend_moves_the_deadline_and_the_keys
            r14_extend_never_brings_a_lost_lock_back
            r14_keys_gone_from_a_majority_are_a_loss_at_once
            a_watched_lock_is_lost_with_its_keys
            a_watched_lock_that_is_renewed_is_lost_with_its_keys_and_not_before
            a_watched_lock_over_several_resources_is_lost_with_one
            where_nodes_cannot_tell_a_watched_lock_is_as_any_other
            r15_a_restarted_node_is_repaired
            r16_renewal_keeps_the_lock_over_many_ttls
            r16_max_hold_ends_the_renewal
            r17_loss_is_signalled_at_the_deadline_after_expiring
            r19_a_shared_lock_is_released_with_the_last_handle
            r20_drop_releases_without_waiting
            r20_a_process_that_ends_right_after_drop_has_released
            r20_close_releases_all
            r20_a_panic_in_a_callback_or_under_a_lock_ends_nothing_else
            r20_the_last_handle_closes_the_client
            b13_a_lock_that_ran_out_unseen_is_not_held
            callbacks_may_call_into_the_client
            events_tell_what_happens_and_are_bounded
            votes_are_told_node_by_node
            hold_releases_and_tells_a_loss
        }
        $crate::behaviours! { $run, faults:
            a_minority_killed_changes_nothing
            a_majority_killed_fails_fast_and_names_the_nodes
            r11_two_of_five_frozen_cost_nothing
            r18_flushed_scripts_change_nothing
            r20_a_lost_attempt_leaves_no_key
            b23_all_nodes_silent_ends_at_the_wait
            b22_any_fault_of_one_node_costs_nothing
            b38_connections_closed_while_idle_are_made_anew
            b38_a_node_restarted_again_and_again_comes_back
            b51_a_reply_lost_to_any_command_leaves_no_key
            b51_connections_killed_all_the_time_leave_no_key
            b18_a_stream_cut_at_any_byte_leaves_no_key_without_expiry
        }
        $crate::behaviours! { $run, fence:
            fences_grow_from_grant_to_grant_and_a_majority_holds_each
            a_plain_lock_has_no_fence_and_makes_no_counter
            plain_and_fenced_holders_exclude_each_other
            fences_grow_while_nodes_are_killed_and_come_back_empty
            numbers_beyond_doubles_are_kept_to_the_last_digit
            acquire_all_has_one_fence_above_all_its_counters
            retention_gives_counters_an_end_and_its_absence_takes_it_away
            r15_a_repaired_node_has_the_fence
            contending_clients_never_share_a_fence
        }
        $crate::behaviours! { $run, restart:
            r25_without_the_guard_a_restarted_node_lets_a_second_owner_in
            r25_with_the_guard_it_does_not
            r25_a_restarted_node_is_shown_as_quarantined_and_votes_again
        }
        $crate::behaviours! { $run, waiting:
            a_waiter_is_told_that_the_lock_is_free
            a_waiter_is_told_that_keys_are_deleted_or_expire
            waiters_of_one_client_take_turns_without_a_delay
            two_hundred_waiters_of_two_clients_all_get_it
            a_node_that_refuses_to_tell_costs_nothing
            r9_where_no_quorum_tells_the_retry_delay_rules
            a_node_that_restarts_is_asked_again
            r9_a_push_lost_with_its_connection_is_made_up_for
        }
        $crate::behaviours! { $run, election:
            one_leads_and_the_next_follows_a_resignation
            a_leader_whose_keys_are_gone_is_followed_and_campaigns_again
            epochs_grow_whoever_leads
            an_epoch_that_does_not_grow_is_refused
            who_has_led_rests_and_who_still_leads_waits
            a_campaign_that_is_called_off_leaves_nothing
            a_majority_that_is_down_is_waited_for
            a_campaign_that_cannot_be_won_says_why_and_pauses
        }
        $crate::behaviours! { $run, connect:
            r27_a_quorum_is_enough
            r27_a_lazy_client_can_be_used_at_once
            r27_refused_by_all_is_final_and_named
            r27_silence_ends_at_the_connect_timeout
            b35_a_wrong_password_is_told_and_never_shown
            r23_replicas_are_told
            b35_what_is_no_redis_is_told
            r12_one_server_twice_is_refused_with_both_names
            b37_localhost_and_names_connect
            r24_a_second_name_is_found_by_the_handshake
            b38_idle_connections_are_kept_alive
        }
    };
    ($run:ident, $module:ident: $($name:ident)*) => {
        mod $module {
            $(
                #[test]
                fn $name() {
                    $crate::suite::runs::$run(&$crate::suite::$module::$name);
                }
            )*
        }
    };
}

pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub fn now() -> Instant {
    SystemClock.now()
}

/// Polls until it is so; a test fails when it is not within so long that no busy machine explains it.
#[track_caller]
pub fn eventually(what: &str, is_so: impl FnMut() -> bool) {
    assert!(within(Duration::from_secs(10), is_so), "still not after 10 s: {what}");
}

/// Polls until it is so, or the span is over.
pub fn within(span: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let until = now().saturating_add(span);
    loop {
        if is_so() {
            return true;
        }
        if now() >= until {
            return false;
        }
        thread::sleep(ms(1));
    }
}

/// How long it took.
pub fn timed<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    let start = now();
    let result = work();
    (result, now().saturating_duration_since(start))
}

/// A client of all nodes that is connected to every one of them.
pub fn client(cluster: &dyn Cluster) -> Redlock {
    client_of(&cluster.urls())
}

pub fn client_of(urls: &[String]) -> Redlock {
    let redlock = Redlock::builder().nodes(urls).retry_delay(ms(5), ms(20)).connect().unwrap();
    all_ready(&redlock);
    redlock
}

pub fn all_ready(redlock: &Redlock) {
    eventually("all nodes are ready", || redlock.nodes().iter().all(|node| node.state == NodeState::Ready));
}

/// Waits until every node is ready and has answered all that it was asked.
pub fn is_quiet(redlock: &Redlock) {
    eventually("all is answered", || {
        redlock.nodes().iter().all(|node| node.state == NodeState::Ready && node.in_flight == 0)
    });
}

/// Waits until the client knows that this node is down.
pub fn is_down(redlock: &Redlock, node: usize) {
    eventually("the node is known to be down", || {
        matches!(redlock.nodes()[node].state, NodeState::Down { .. })
    });
}

/// Waits until no node that is up has this key.
#[track_caller]
pub fn no_key(cluster: &dyn Cluster, key: &str) {
    for node in 0..cluster.urls().len() {
        eventually(&format!("{key} is gone from node {node}"), || cluster.value(node, key).is_none());
    }
}

/// Waits until every node has this key, all with one value.
#[track_caller]
pub fn same_everywhere(cluster: &dyn Cluster, key: &str) -> Vec<u8> {
    let nodes = cluster.urls().len();
    eventually(&format!("{key} is on every node"), || {
        (0..nodes).all(|node| cluster.value(node, key).is_some())
    });
    let value = cluster.value(0, key).unwrap();
    for node in 1..nodes {
        assert_eq!(cluster.value(node, key), Some(value.clone()), "node {node}");
    }
    value
}
