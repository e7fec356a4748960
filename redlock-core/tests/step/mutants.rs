//! What no other test noticed when a line of the machines was changed (`cargo mutants`), and what was found near it.

use crate::bench::*;
use redlock_core::{Event, LostReason, ReleaseOutcome};

/// A node that was away from before the acquire until after it was granted has not seen the token; the release goes there all
/// the same, since belief about what reached a node is never needed for it.
#[test]
fn r18_a_lock_that_was_held_is_released_also_where_its_set_was_never_sent() {
    let mut bench = Bench::new(3);
    bench.cut(2);
    bench.try_acquire("orders");
    bench.reply(0, OK);
    bench.reply(1, OK);
    let (lock, _) = bench.acquired();
    // Longer than the node timeout: the SET is not sent any more.
    bench.at(1_800);
    bench.up(2);
    bench.forget();
    assert!(bench.is_held(lock));
    bench.release(lock);
    assert_eq!(bench.sent_to_all(), ["DELEX orders IFEQ T1"]);
    bench.reply(2, ZERO);
    bench.reply(0, ONE);
    bench.reply(1, ONE);
    assert_eq!(bench.released(), ReleaseOutcome::Released);
}

/// The latest answer counts, of whatever command: two nodes that refused the SET late, and one that no longer has the token,
/// leave two of five.
#[test]
fn r14_a_late_refusal_of_the_set_counts_as_a_node_without_the_token() {
    let mut bench = Bench::new(5);
    bench.try_acquire("orders");
    (0..3).for_each(|node| bench.reply(node, OK));
    let (lock, _) = bench.acquired();
    (3..5).for_each(|node| bench.reply(node, NIL));
    assert!(bench.is_held(lock));
    bench.extend(lock, 5_000);
    bench.reply(0, NIL);
    assert!(!bench.is_held(lock));
    let told = bench.told();
    let lost = |event: &Event| matches!(event, Event::Lost { reason: LostReason::TokenGone, .. });
    assert!(told.iter().any(lost), "{told:?}");
}
