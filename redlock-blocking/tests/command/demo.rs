//! `redlock demo`.

use core::time::Duration;

use crate::support::{outcome, redlock};

#[test]
fn the_tour_ends_by_itself_without_an_overlap() {
    let outcome = outcome(redlock("demo --seconds 8"));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.took < Duration::from_secs(30), "{outcome:?}");
    assert!(outcome.stdout.contains(" 0 overlaps"), "{outcome:?}");
    assert!(outcome.stdout.contains("never two holders at once"), "{outcome:?}");
    assert!(!outcome.stdout.contains('\x1b'), "nobody watches: plain lines");
    // What the tour is there to show.
    let grants_while = |what: &str| -> u64 {
        let line = outcome.stdout.lines().find(|line| line.contains("grants,") && line.contains(what));
        line.unwrap_or_else(|| panic!("{outcome:?}")).split_whitespace().next().unwrap().parse().unwrap()
    };
    assert!(grants_while("all five") > 0, "{outcome:?}");
    assert!(grants_while("two of five") > 0, "{outcome:?}");
    assert!(grants_while("back with their memory") > 0, "{outcome:?}");
    assert!(grants_while("memory lost") > 0, "{outcome:?}");
    // One may have been granted just before the third one died.
    assert!(grants_while("three of five") <= 1, "{outcome:?}");
}

#[test]
fn the_checker_finds_two_holders_where_there_are_two() {
    let outcome = outcome(redlock("demo --plain --seconds 8 --unsafe-quorum 2"));
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stdout.contains("TWO HOLDERS AT ONCE"), "{outcome:?}");
}
