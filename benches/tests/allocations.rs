//! What the engine takes from the heap. The figures are pinned, so that they only go down.

use redlock_benches::{Dialect, Rig};

/// None: what a lock leaves behind is the next one's.
const MOST_PER_CYCLE: [(Dialect, u64); 2] = [(Dialect::Delifeq, 0), (Dialect::Script, 0)];
/// Over five nodes, with 10 000 of them; the target is 1 KiB.
const MOST_PER_LOCK: i64 = 1476;

#[test]
fn a_warm_cycle_allocates_no_more_than_it_did() {
    for (dialect, most) in MOST_PER_CYCLE {
        let mut rig = Rig::new(5, dialect);
        for _ in 0..1000 {
            let request = rig.request();
            rig.cycle(request);
        }
        let request = rig.request();
        let counted = allocation_counter::measure(|| rig.cycle(request));
        println!("{dialect:?}: {} allocations, {} bytes", counted.count_total, counted.bytes_total);
        assert!(counted.count_total <= most, "{counted:?}");
        let request = rig.request();
        let again = allocation_counter::measure(|| rig.cycle(request));
        assert_eq!(again.count_total, counted.count_total, "the same again");
    }
}

#[test]
fn what_a_held_lock_keeps() {
    const LOCKS: usize = 10_000;
    let mut rig = Rig::new(5, Dialect::Delifeq);
    let mut locks = Vec::with_capacity(LOCKS);
    // The request, with the resource's name, is made inside: the lock keeps it.
    let counted = allocation_counter::measure(|| {
        for _ in 0..LOCKS {
            let request = rig.request();
            locks.push(rig.acquire(request));
        }
    });
    let per_lock = counted.bytes_current / i64::try_from(LOCKS).expect("a small number");
    println!("{per_lock} bytes for a held lock");
    assert!(per_lock <= MOST_PER_LOCK, "{per_lock}");
}
