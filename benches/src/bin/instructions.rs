//! Runs warm cycles for callgrind, which counts what is inside `Rig::cycle` (`benches/instructions`).

use redlock_benches::{Dialect, Rig};

fn main() {
    let dialect = match std::env::args().nth(1).as_deref() {
        Some("script") => Dialect::Script,
        _ => Dialect::Delifeq,
    };
    let count = std::env::args().nth(2).and_then(|count| count.parse().ok()).unwrap_or(1000);
    let mut rig = Rig::new(5, dialect);
    for _ in 0..count {
        let request = rig.request();
        rig.cycle(request);
    }
}
