//! Time of the engine alone: `cargo bench --manifest-path benches/Cargo.toml`.

use criterion::{Criterion, criterion_group, criterion_main};
use redlock_benches::{Dialect, Rig};

fn cycles(criterion: &mut Criterion) {
    for nodes in [3, 5, 9] {
        for dialect in [Dialect::Delifeq, Dialect::Script] {
            let mut rig = Rig::new(nodes, dialect);
            criterion.bench_function(
                &format!("acquire and release, {nodes} nodes, {dialect:?}"),
                |bencher| {
                    bencher.iter(|| {
                        let request = rig.request();
                        rig.cycle(request);
                    });
                },
            );
        }
    }
}

/// Replies in the forms that take the whole way: scanned, then decoded.
fn decode(criterion: &mut Criterion) {
    let mut rig = Rig::new(1, Dialect::Delifeq);
    criterion.bench_function("decode a push of an invalidated key", |bencher| {
        bencher.iter(|| rig.hear(b">2\r\n$10\r\ninvalidate\r\n*1\r\n$8\r\nresource\r\n"));
    });
    criterion.bench_function("decode the same in two pieces", |bencher| {
        bencher.iter(|| {
            rig.hear(b">2\r\n$10\r\ninvalid");
            rig.hear(b"ate\r\n*1\r\n$8\r\nresource\r\n");
        });
    });
}

fn polls(criterion: &mut Criterion) {
    let mut rig = Rig::new(5, Dialect::Delifeq);
    let mut locks = Vec::new();
    let counted = allocation_counter::measure(|| {
        for _ in 0..10_000 {
            let request = rig.request();
            locks.push(rig.acquire(request));
        }
    });
    println!("{} bytes for a held lock over five nodes", counted.bytes_current / 10_000);
    criterion.bench_function("empty poll, 10 000 held locks", |bencher| bencher.iter(|| rig.empty_poll()));
    criterion.bench_function("acquire and release beside 10 000 held locks", |bencher| {
        bencher.iter(|| {
            let request = rig.request();
            rig.cycle(request);
        });
    });
}

criterion_group!(benches, cycles, decode, polls);
criterion_main!(benches);
