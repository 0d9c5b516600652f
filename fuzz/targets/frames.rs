#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cql::fuzzing::frames(bytes));
