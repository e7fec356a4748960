//! The judge is judged.

use super::*;

const fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

const fn grant(process: u32, number: u32) -> Grant {
    Grant { process, actor: 0, number }
}

fn at(millis: u64, what: What) -> Record {
    Record { at: ms(millis), what }
}

fn fenced(start: u64, grant: Grant, until: u64, fence: Option<u64>) -> Record {
    let what = What::Enter {
        grant,
        flavour: Flavour::Blocking,
        resources: vec!["door".into()],
        until: ms(until),
        fence,
        style: "release".into(),
    };
    at(start, what)
}

fn enter(start: u64, grant: Grant, until: u64) -> Record {
    fenced(start, grant, until, None)
}

fn leave(end: u64, grant: Grant) -> Record {
    at(end, What::Leave { grant })
}

fn lost(seen: u64, grant: Grant, until: u64, reason: Loss) -> Record {
    at(seen, What::Lost { grant, until: ms(until), reason })
}

#[test]
fn one_after_the_other_is_fine() {
    let (a, b) = (grant(1, 1), grant(2, 1));
    let report = check(&[enter(0, a, 100), leave(10, a), enter(10, b, 110), leave(12, b)]);
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.grants, report.ends.left), (2, 2));
    assert!(check(&[]).is_clean());
}

#[test]
fn two_at_once_are_found_whoever_wrote_first() {
    let (a, b) = (grant(1, 1), grant(2, 1));
    for records in [
        [enter(0, a, 100), leave(50, a), enter(40, b, 140), leave(45, b)],
        [enter(40, b, 140), leave(45, b), enter(0, a, 100), leave(50, a)],
    ] {
        let report = check(&records);
        let [overlap] = &report.overlaps[..] else { panic!("{report:?}") };
        assert_eq!((overlap.first.grant, overlap.second.grant), (a, b));
        assert!(!report.is_clean());
    }
}

#[test]
fn a_long_one_is_held_against_all_that_come_within() {
    let (a, b) = (grant(1, 1), grant(2, 1));
    let second = grant(2, 2);
    let records = [
        enter(0, a, 100),
        enter(10, b, 99),
        leave(20, b),
        enter(30, second, 99),
        leave(40, second),
        leave(50, a),
    ];
    let seconds: Vec<Grant> = check(&records).overlaps.iter().map(|overlap| overlap.second.grant).collect();
    assert_eq!(seconds, [b, second]);
}

#[test]
fn another_resource_is_no_overlap_and_one_of_several_is() {
    let (a, b) = (grant(1, 1), grant(2, 1));
    let with = |names: &[&str]| {
        let mut records = [enter(0, a, 100), leave(50, a), enter(40, b, 140), leave(45, b)];
        if let What::Enter { resources, .. } = &mut records[2].what {
            *resources = names.iter().map(|name| (*name).to_owned()).collect();
        }
        check(&records).overlaps.len()
    };
    assert_eq!(with(&["side"]), 0);
    assert_eq!(with(&["side", "door"]), 1);
}

#[test]
fn who_was_killed_is_believed_until_its_last_deadline() {
    let (a, b) = (grant(1, 1), grant(2, 1));
    let killed = [
        enter(0, a, 100),
        at(60, What::Until { grant: a, until: ms(160) }),
        at(90, What::Dead { process: 1 }),
    ];
    let with = |start| check(&[&killed[..], &[enter(start, b, 300), leave(start + 1, b)]].concat());
    assert_eq!(with(159).overlaps.len(), 1);
    let report = with(160);
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.ends.killed, 1);
}

#[test]
fn a_promise_can_be_taken_back_before_it_is_killed() {
    let (a, b) = (grant(1, 1), grant(2, 1));
    let taken_back = at(20, What::Until { grant: a, until: ms(20) });
    let records =
        [enter(0, a, 100), taken_back, at(30, What::Dead { process: 1 }), enter(40, b, 99), leave(41, b)];
    assert!(check(&records).is_clean());
}

#[test]
fn who_lost_it_by_time_is_believed_until_the_deadline_even_if_it_did_not_look() {
    let (a, b) = (grant(1, 1), grant(2, 1));
    let with = |reason| check(&[enter(0, a, 100), lost(10, a, 100, reason), enter(50, b, 99), leave(51, b)]);
    assert_eq!(with(Loss::Expired).overlaps.len(), 1);
    assert!(with(Loss::Closed).is_clean(), "its own client was closed, and released it");
    assert_eq!(with(Loss::Gone).faults.len(), 1, "nobody deletes another's lock here");
}

#[test]
fn who_woke_up_too_late_to_believe_anything_excludes_nobody() {
    let (a, b) = (grant(1, 1), grant(2, 1));
    let late = [fenced(200, a, 100, Some(1)), lost(200, a, 100, Loss::Expired)];
    let report = check(&[&late[..], &[fenced(150, b, 300, Some(2)), leave(250, b)]].concat());
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.ends.expired, 1);
}

#[test]
fn every_grant_has_an_end() {
    let a = grant(1, 1);
    assert_eq!(check(&[enter(0, a, 100)]).faults.len(), 1, "it has none");
    assert_eq!(
        check(&[enter(0, a, 100), at(9, What::Dead { process: 2 })]).faults.len(),
        1,
        "another was killed"
    );
    assert_eq!(check(&[leave(0, a)]).faults.len(), 1, "it was never granted");
    assert_eq!(check(&[enter(0, a, 100), leave(5, a), leave(6, a)]).faults.len(), 1, "it has two");
    assert_eq!(check(&[enter(0, a, 9), enter(1, a, 9), leave(2, a)]).faults.len(), 1, "it began twice");
}

#[test]
fn what_was_granted_was_recorded() {
    let a = grant(1, 1);
    let with =
        |grants| check(&[enter(0, a, 100), leave(5, a), at(9, What::Done { process: 1, actor: 0, grants })]);
    assert!(with(1).is_clean());
    assert_eq!(with(2).faults.len(), 1);
}

#[test]
fn fences_only_grow() {
    let with = |fences: [Option<u64>; 3]| {
        let visits = fences.into_iter().zip(1..).flat_map(|(fence, number)| {
            let start = u64::from(number) * 10;
            [fenced(start, grant(1, number), start + 9, fence), leave(start + 5, grant(1, number))]
        });
        let report = check(&visits.collect::<Vec<_>>());
        (report.fence_regressions.len(), report.fenced)
    };
    assert_eq!(with([Some(1), Some(2), Some(5)]), (0, 3));
    assert_eq!(with([Some(1), None, Some(1)]), (1, 2), "the same again");
    assert_eq!(with([Some(5), Some(4), Some(4)]), (2, 3), "both are below the first");
    assert_eq!(with([None, None, None]), (0, 0));
}

#[test]
fn grants_are_counted_by_phase() {
    let (a, b) = (grant(1, 1), grant(1, 2));
    let phases = [
        at(0, What::Phase(Phase::Quiet)),
        at(10, What::Phase(Phase::Chaos)),
        at(20, What::Phase(Phase::Quiet)),
    ];
    let visits = [enter(5, a, 9), leave(6, a), enter(20, b, 29), leave(21, b)];
    assert_eq!(
        check(&[&phases[..], &visits[..]].concat()).phases,
        [(Phase::Quiet, 1), (Phase::Chaos, 0), (Phase::Quiet, 1)]
    );
}

#[test]
fn what_a_worker_saw_broken_is_told() {
    let report = check(&[at(3, What::Broken { process: 7, text: "is_held() after the deadline".into() })]);
    assert_eq!(report.faults, [(ms(3), "process 7: is_held() after the deadline".to_owned())]);
}
