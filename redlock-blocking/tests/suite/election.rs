//! Who leads: campaigns, terms, and what comes after each.

use super::{Make, client, eventually, is_down, is_quiet, ms, no_key, now, timed};
use core::time::Duration;
use redlock_blocking::{AcquireErrorKind, Fence, Guard, LostReason, Redlock};
use std::thread;

const LONG: Duration = Duration::from_secs(30);

/// A campaign that has to be won, whatever happens before that.
fn leads(election: &mut redlock_blocking::Election) -> Guard {
    election.campaign_for(LONG).unwrap().unwrap()
}

pub fn one_leads_and_the_next_follows_a_resignation(make: &Make<'_>) {
    let cluster = make(3);
    // By itself each would look again only after seconds.
    let slow = |_| {
        let builder = Redlock::builder().nodes(cluster.urls()).retry_delay(ms(5_000), ms(5_000));
        let redlock = builder.connect().unwrap();
        super::all_ready(&redlock);
        redlock
    };
    let [first, second] = [0, 1].map(slow);
    let mut elections = [first.elect("job").ttl(LONG), second.elect("job").ttl(LONG)];
    let [mine, theirs] = &mut elections;
    let term = leads(mine);
    let (resigned, elected, next) = thread::scope(|scope| {
        let other = scope.spawn(|| {
            let next = leads(theirs);
            (now(), next)
        });
        // It has seen that somebody leads.
        eventually("the other one waits", || second.nodes().iter().all(|node| node.in_flight == 0));
        thread::sleep(ms(200));
        assert!(term.is_held() && !other.is_finished(), "two lead");
        let resigned = now();
        assert!(term.release().unwrap().is_clean());
        let (elected, next) = other.join().unwrap();
        (resigned, elected, next)
    });
    let took = elected.saturating_duration_since(resigned);
    assert!(took < ms(2_500), "told, not found out: {took:?}");
    assert!(next.is_held());
    assert!(mine.campaign_for(ms(100)).unwrap().is_none(), "two lead");
}

pub fn a_leader_whose_keys_are_gone_is_followed_and_campaigns_again(make: &Make<'_>) {
    let cluster = make(3);
    let (first, second) = (client(&*cluster), client(&*cluster));
    let (mut mine, mut theirs) = (first.elect("job").ttl(LONG), second.elect("job").ttl(LONG));
    let term = leads(&mut mine);
    super::same_everywhere(&*cluster, "job");
    is_quiet(&first);
    let next = thread::scope(|scope| {
        let other = scope.spawn(|| leads(&mut theirs));
        (0..3).for_each(|node| cluster.remove(node, "job"));
        let (reason, took) = timed(|| term.wait_lost(LONG));
        assert_eq!(reason, Some(LostReason::TokenGone));
        assert!(took < LONG / 3, "told, not found out at the deadline: {took:?}");
        other.join().unwrap()
    });
    assert!(!term.is_held() && next.is_held());
    drop(term);
    thread::scope(|scope| {
        let again = scope.spawn(|| leads(&mut mine));
        thread::sleep(ms(50));
        assert!(!again.is_finished(), "two lead");
        drop(next);
        assert!(again.join().unwrap().is_held());
    });
}

pub fn epochs_grow_whoever_leads(make: &Make<'_>) {
    let cluster = make(3);
    let (first, second) = (client(&*cluster), client(&*cluster));
    let (mut mine, mut theirs) =
        (first.elect("job").ttl(LONG).fenced(), second.elect("job").ttl(LONG).fenced());
    assert_eq!(mine.epoch(), None);
    let mut last = Fence::new(0);
    for round in 0..6 {
        let election = if round % 2 == 0 { &mut mine } else { &mut theirs };
        let term = leads(election);
        let epoch = term.fence().unwrap();
        assert!(epoch > last, "{epoch} after {last}");
        assert_eq!(election.epoch(), Some(epoch));
        last = epoch;
    }
}

pub fn an_epoch_that_does_not_grow_is_refused(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let mut election = redlock.elect("job").ttl(LONG).fenced();
    let known = leads(&mut election).fence().unwrap();
    // A late node, too, has counted by then.
    is_quiet(&redlock);
    no_key(&*cluster, "job");
    // As if the counters had been lost, and begun again from clocks that are behind.
    (0..3).for_each(|node| cluster.put(node, "job:fence", "7", None));
    let error = election.campaign().unwrap_err();
    assert_eq!(error.kind, AcquireErrorKind::StaleEpoch { known, granted: Fence::new(8) });
    assert!(error.to_string().contains("fence 8"), "{error}");
    no_key(&*cluster, "job");
    let ahead = (known.get() + 1_000).to_string();
    (0..3).for_each(|node| cluster.put(node, "job:fence", &ahead, None));
    assert!(leads(&mut election).fence().unwrap() > known);
}

pub fn who_has_led_rests_and_who_still_leads_waits(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = Redlock::builder().nodes(cluster.urls()).retry_delay(ms(5), ms(400)).connect().unwrap();
    let mut election = redlock.elect("job").ttl(LONG);
    let term = leads(&mut election);
    assert!(election.campaign_for(ms(50)).unwrap().is_none(), "its own term is not over");
    assert!(term.is_held());
    drop(term);
    let resigned = now();
    assert!(election.campaign_for(ms(50)).unwrap().is_none(), "it lets others come first");
    let term = leads(&mut election);
    let rested = now().saturating_duration_since(resigned);
    assert!(rested >= ms(400), "the rest is as long however often one asks: {rested:?}");
    assert!(term.is_held());
}

pub fn a_campaign_that_is_called_off_leaves_nothing(make: &Make<'_>) {
    let cluster = make(3);
    let (first, second) = (client(&*cluster), client(&*cluster));
    let (mut mine, mut theirs) = (first.elect("job").ttl(LONG), second.elect("job").ttl(LONG));
    let term = leads(&mut mine);
    for _ in 0..5 {
        assert!(theirs.campaign_for(ms(20)).unwrap().is_none());
    }
    drop(term);
    no_key(&*cluster, "job");
    assert!(leads(&mut theirs).is_held());
    no_key(&*cluster, "job");
    // Called off at moments at which it may have been granted.
    for micros in 0..20 {
        drop(theirs.campaign_for(Duration::from_micros(micros * 100)).unwrap());
    }
    no_key(&*cluster, "job");
    is_quiet(&second);
}

pub fn a_majority_that_is_down_is_waited_for(make: &Make<'_>) {
    let cluster = make(3);
    let redlock = client(&*cluster);
    let mut election = redlock.elect("job").ttl(ms(1_000));
    let term = leads(&mut election);
    cluster.kill(0);
    cluster.kill(1);
    assert_eq!(term.wait_lost(LONG), Some(LostReason::Expired));
    is_down(&redlock, 0);
    is_down(&redlock, 1);
    assert!(election.campaign_for(ms(600)).unwrap().is_none(), "no quorum, no leader");
    cluster.restart(0);
    cluster.restart(1);
    assert!(leads(&mut election).is_held());
}

pub fn a_campaign_that_cannot_be_won_says_why_and_pauses(make: &Make<'_>) {
    let cluster = make(3);
    (0..3).for_each(|node| cluster.set_password(node, "secret"));
    let redlock =
        Redlock::builder().nodes(cluster.urls()).retry_delay(ms(5), ms(200)).connect_lazy().unwrap();
    let mut election = redlock.elect("job").ttl(LONG);
    let error = election.campaign().unwrap_err();
    assert!(error.kind.is_no_quorum() && error.to_string().contains("login"), "{error}");
    let (error, took) = timed(|| election.campaign().unwrap_err());
    assert!(error.kind.is_no_quorum(), "{error}");
    assert!(took >= ms(200), "who calls again at once makes no more rounds: {took:?}");
    redlock.close();
    let (error, took) = timed(|| election.campaign().unwrap_err());
    assert_eq!(error.kind, AcquireErrorKind::Closed);
    assert!(took < ms(200), "what stays so is said at once: {took:?}");
    let other = client_without_password(&cluster.urls());
    assert!(matches!(other.elect("").campaign().unwrap_err().kind, AcquireErrorKind::Invalid(_)));
}

fn client_without_password(urls: &[String]) -> Redlock {
    Redlock::builder().nodes(urls).connect_lazy().unwrap()
}
