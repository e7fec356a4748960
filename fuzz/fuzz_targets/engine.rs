#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(wrong) = redlock_proof::fuzz::engine(bytes) {
        panic!("{wrong}");
    }
});
