//! What the engine takes from the heap.

use redlock_benches::{Dialect, Rig};

#[test]
fn a_warm_cycle() {
    for dialect in [Dialect::Delifeq, Dialect::Script] {
        let mut rig = Rig::new(5, dialect);
        for _ in 0..1000 {
            let request = rig.request();
            rig.cycle(request);
        }
        for _ in 0..3 {
            let request = rig.request();
            let counted = allocation_counter::measure(|| rig.cycle(request));
            println!("{dialect:?}: {counted:?}");
        }
    }
}

#[test]
fn a_held_lock() {
    let mut rig = Rig::new(5, Dialect::Delifeq);
    let requests: Vec<_> = (0..10_000).map(|_| rig.request()).collect();
    let mut locks = Vec::with_capacity(10_000);
    let counted = allocation_counter::measure(|| {
        for request in requests {
            locks.push(rig.acquire(request));
        }
    });
    println!("{counted:?}");
}
