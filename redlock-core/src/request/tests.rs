#![allow(clippy::unwrap_used, reason = "tests")]

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;

use super::{AcquireRequest, Checked, InvalidArgument, MOST_TTL, Shown, check_request, check_ttl};
use crate::config::{Config, ConfigBuilder};
use crate::time::Drift;

const ENTROPY: [u8; 16] = [0xA5; 16];

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn three() -> ConfigBuilder {
    Config::builder().nodes(["a", "b", "c"])
}

fn config() -> Config {
    three().build().unwrap()
}

fn request() -> AcquireRequest {
    AcquireRequest::new("r", ENTROPY)
}

#[test]
fn what_is_not_named_comes_from_the_configuration() {
    let config = three().default_ttl(ms(700)).default_wait(ms(300)).key_prefix("p:").build().unwrap();
    let want = Checked { ttl: ms(700), wait: ms(300), attempts: None, max_hold: None, expiring_lead: None };
    assert_eq!(check_request(&request(), &config), Ok(want));
    let named = request().ttl(ms(900)).try_once().attempts(3).auto_renew(Duration::MAX).expiring_lead(ms(5));
    let want = Checked {
        ttl: ms(900),
        wait: Duration::ZERO,
        attempts: Some(3),
        max_hold: Some(Duration::MAX),
        expiring_lead: Some(ms(5)),
    };
    assert_eq!(check_request(&named, &config), Ok(want));
}

#[test]
fn r12_a_ttl_of_which_nothing_is_left_is_refused() {
    for (ttl, drift, least) in [
        (Duration::ZERO, Drift::DEFAULT, ms(3)),
        (Duration::from_micros(999), Drift::DEFAULT, ms(3)),
        (ms(1), Drift::DEFAULT, ms(3)),
        (ms(2), Drift::DEFAULT, ms(3)),
        // The cut-off part does not save it.
        (Duration::from_micros(2_999), Drift::DEFAULT, ms(3)),
        (ms(4), Drift::from_parts_per_million(500_000), ms(5)),
        (ms(2), Drift::from_parts_per_million(0), ms(3)),
    ] {
        let config = three().drift(drift).build().unwrap();
        let error = InvalidArgument::TtlTooShort { ttl, least };
        assert_eq!(check_ttl(ttl, &config), Err(error.clone()));
        assert_eq!(check_request(&request().ttl(ttl), &config), Err(error));
        assert_eq!(check_ttl(least, &config), Ok(least));
    }
}

#[test]
fn r12_a_ttl_above_one_year_is_refused() {
    assert_eq!(check_ttl(MOST_TTL, &config()), Ok(MOST_TTL));
    for ttl in [MOST_TTL + ms(1), Duration::MAX] {
        let error = InvalidArgument::TtlTooLong { ttl, most: MOST_TTL };
        assert_eq!(check_ttl(ttl, &config()), Err(error.clone()));
        assert_eq!(check_request(&request().ttl(ttl).auto_renew(Duration::MAX), &config()), Err(error));
    }
}

#[test]
fn r12_sub_millisecond_parts_of_a_ttl_are_cut_off() {
    assert_eq!(check_ttl(Duration::from_nanos(1_500_999_999), &config()), Ok(ms(1_500)));
    let checked = check_request(&request().ttl(Duration::from_micros(5_999)), &config()).unwrap();
    assert_eq!(checked.ttl, ms(5));
}

#[test]
fn r25_a_ttl_above_the_restart_guard_is_refused() {
    let config = three().restart_guard(ms(30_000)).build().unwrap();
    assert_eq!(check_ttl(ms(30_000), &config), Ok(ms(30_000)));
    let error = InvalidArgument::TtlAboveRestartGuard { ttl: ms(30_001), max_ttl: ms(30_000) };
    assert_eq!(check_ttl(ms(30_001), &config), Err(error));
}

#[test]
fn r12_an_empty_resource_is_refused() {
    for empty in [AcquireRequest::new("", ENTROPY), AcquireRequest::all(["a", ""], ENTROPY)] {
        // A prefix does not make a name of it.
        let config = three().key_prefix("p:").build().unwrap();
        assert_eq!(check_request(&empty, &config), Err(InvalidArgument::EmptyResource));
    }
}

#[test]
fn r12_a_resource_over_64_kib_is_refused_its_prefix_counted_in() {
    let of = |len| AcquireRequest::new(vec![b'x'; len], ENTROPY);
    let error = |len| Err(InvalidArgument::ResourceTooLong { len, most: 65_536 });
    assert!(check_request(&of(65_536), &config()).is_ok());
    assert_eq!(check_request(&of(65_537), &config()), error(65_537));
    let config = three().key_prefix("p:").build().unwrap();
    assert!(check_request(&of(65_534), &config).is_ok());
    assert_eq!(check_request(&of(65_535), &config), error(65_537));
}

#[test]
fn r12_empty_repeated_and_too_many_names_are_refused() {
    let none = AcquireRequest::all(Vec::<Bytes>::new(), ENTROPY);
    assert_eq!(check_request(&none, &config()), Err(InvalidArgument::NoResources));
    let twice = AcquireRequest::all(["a", "b", "a"], ENTROPY);
    let error = InvalidArgument::RepeatedResource { resource: Bytes::from_static(b"a") };
    assert_eq!(check_request(&twice, &config()), Err(error));
    let names = |count: u32| AcquireRequest::all((0..count).map(|index| index.to_string()), ENTROPY);
    assert_eq!(names(64).resources().len(), 64);
    assert!(check_request(&names(64), &config()).is_ok());
    assert_eq!(check_request(&names(65), &config()), Err(InvalidArgument::TooManyResources { most: 64 }));
    let endless = AcquireRequest::all(core::iter::repeat("a"), ENTROPY);
    assert_eq!(check_request(&endless, &config()), Err(InvalidArgument::TooManyResources { most: 64 }));
}

#[test]
fn r12_a_max_hold_below_the_ttl_is_refused() {
    let asked = |max_hold| {
        check_request(&request().ttl(Duration::from_micros(1_000_500)).auto_renew(max_hold), &config())
    };
    let error = InvalidArgument::MaxHoldBelowTtl { max_hold: ms(999), ttl: ms(1_000) };
    assert_eq!(asked(ms(999)), Err(error));
    assert!(asked(ms(1_000)).is_ok() && asked(Duration::MAX).is_ok());
    // The default ttl counts too.
    assert!(check_request(&request().auto_renew(ms(9_999)), &config()).is_err());
}

#[test]
fn r9_no_attempts_are_refused() {
    assert_eq!(check_request(&request().attempts(0), &config()), Err(InvalidArgument::NoAttempts));
    assert!(check_request(&request().attempts(1).try_once(), &config()).is_ok());
}

#[test]
fn b55_resources_are_bytes() {
    for resource in [&b"\0"[..], b"\xff\xfe", b"\r\n", b" ", b"{tag}x", "🔒".as_bytes()] {
        let request = AcquireRequest::new(resource.to_vec(), ENTROPY);
        assert!(check_request(&request, &config()).is_ok());
        assert_eq!(request.resources(), [resource]);
    }
}

#[test]
fn r26_debug_does_not_show_the_entropy() {
    let text = format!("{:?}", AcquireRequest::all(["a\n", "b"], ENTROPY).ttl(ms(5)));
    assert!(text.starts_with("AcquireRequest { resources: [`a\\n`, `b`], ttl: Some(5ms)"), "{text}");
    assert!(!text.contains("165") && !text.to_lowercase().contains("a5"), "{text}");
}

#[test]
fn texts_show_resources_escaped_and_shortened() {
    for (resource, want) in [
        (&b"invoice:42"[..], "`invoice:42`"),
        (b"a\r\n\xff\xfe\0", "`a\\r\\n\\xff\\xfe\\0`"),
        ("grün\u{202e}".as_bytes(), "`grün\\u{202e}`"),
    ] {
        assert_eq!(Shown(resource).to_string(), want);
    }
    let long = "ü".repeat(500);
    assert_eq!(Shown(long.as_bytes()).to_string(), format!("`{}`… (1000 bytes)", "ü".repeat(40)));
    let long = format!("x{long}");
    assert_eq!(Shown(long.as_bytes()).to_string(), format!("`x{}`… (1001 bytes)", "ü".repeat(39)));
    let error = InvalidArgument::RepeatedResource { resource: long.into() };
    assert!(error.to_string().len() < 200);
    assert_eq!(
        InvalidArgument::TtlTooLong { ttl: ms(31_536_000_001), most: MOST_TTL }.to_string(),
        "a ttl of 31536000.001s is above 365 days; shorten it and renew the lock"
    );
}

proptest! {
    #[test]
    fn r12_what_passes_is_whole_and_leaves_something(nanos in any::<u64>(), small in 0_u64..10_000_000, ppm in 0_u32..990_000) {
        let drift = Drift::from_parts_per_million(ppm);
        let config = three().drift(drift).build().unwrap();
        for ttl in [Duration::from_nanos(nanos), Duration::from_nanos(small)] {
            match check_ttl(ttl, &config) {
                Ok(sent) => {
                    prop_assert!(sent <= ttl && ttl - sent < ms(1) && sent.subsec_nanos() % 1_000_000 == 0);
                    prop_assert!(!drift.validity(sent).is_zero() && sent <= MOST_TTL);
                }
                Err(InvalidArgument::TtlTooShort { least, .. }) => {
                    prop_assert!(least > ttl);
                    prop_assert_eq!(check_ttl(least, &config), Ok(least));
                    prop_assert!(check_ttl(least - ms(1), &config).is_err());
                }
                Err(error) => prop_assert!(ttl > MOST_TTL, "{}", error),
            }
        }
    }

    #[test]
    fn no_resource_breaks_a_text(resource in prop::collection::vec(any::<u8>(), 0..200)) {
        let text: String = Shown(&resource).to_string();
        prop_assert!(!text.chars().any(char::is_control));
    }
}
