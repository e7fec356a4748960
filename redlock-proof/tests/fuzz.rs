//! What the fuzzers have left is taken by the shipped code, with any toolchain.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

use redlock_proof::fuzz::TARGETS;
use std::fs;
use std::path::Path;

/// Every input of every target's corpus.
#[test]
fn the_corpus_holds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    for (name, target) in TARGETS {
        let mut inputs = 0;
        for entry in fs::read_dir(corpus.join(name)).unwrap() {
            let path = entry.unwrap().path();
            let wrong = target(&fs::read(&path).unwrap());
            wrong.unwrap_or_else(|wrong| panic!("{}: {wrong}", path.display()));
            inputs += 1;
        }
        assert!(inputs >= 10, "{name}: only {inputs} inputs");
    }
}

/// Inputs at random, for whoever has no fuzzer.
#[test]
fn bytes_at_random() {
    let mut dice = redlock_proof::simulate::Dice::seeded(7);
    for (name, target) in TARGETS {
        for _ in 0..300 {
            let bytes: Vec<u8> =
                (0..dice.below(400)).map(|_| u8::try_from(dice.below(256)).unwrap()).collect();
            target(&bytes).unwrap_or_else(|wrong| panic!("{name}: {bytes:?}: {wrong}"));
        }
    }
}
