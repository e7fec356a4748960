//! How long a node has been up for sure: what decides when a restarted one may vote again (R25).
//!
//! A server that restarts without its memory has forgotten locks that are still held elsewhere; its vote could make a
//! second owner. Until every such lock has expired it gives none. What a server says of its own uptime follows its wall
//! clock, and may be that of another server behind the same address, so it is believed only where our own clock does not
//! contradict it.

use crate::time::Instant;
use core::time::Duration;

/// What is known of one node's time since its last start, on our own clock.
#[derive(Clone, Debug)]
pub(crate) struct Uptime {
    /// When this run id was first heard of; `None` before any, and for one that does not say.
    since: Option<Instant>,
    /// What it reported of its uptime, and when, if that can be believed.
    reported: Option<(Instant, Duration)>,
    /// The last byte that came while this run id was known to be there.
    last_byte: Option<Instant>,
    /// Its data may have been replaced since it was last heard (R23).
    is_replaced: bool,
}

/// When a node's votes count again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// From then on.
    From(Instant),
    /// It does not say who it is, so that a restart would not be noticed: never.
    Never,
}

impl Uptime {
    pub(crate) const fn new() -> Self {
        Self { since: None, reported: None, last_byte: None, is_replaced: false }
    }

    /// A handshake is done. `is_same` is whether the run id is the one of the handshake before, `is_known` whether it says
    /// one at all, `secs` what it reports.
    pub(crate) fn greeted(&mut self, is_same: bool, is_known: bool, secs: Option<i64>, now: Instant) {
        if !is_known {
            // What was heard before was another run, for all we know.
            (self.since, self.reported) = (None, None);
        } else if !is_same || self.is_replaced || self.since.is_none() {
            let believed = |up: &Duration| match self.last_byte {
                _ if self.is_replaced => false,
                // The first run at this address that we hear of.
                None => true,
                // Else longer than the old run's silence means another server, or a clock that was set.
                Some(last) => *up <= now.saturating_duration_since(last),
            };
            let up = secs.and_then(|secs| u64::try_from(secs).ok()).map(Duration::from_secs);
            self.reported = up.filter(believed).map(|up| (now, up));
            self.since = Some(now);
        }
        self.is_replaced = false;
        self.last_byte = Some(now);
    }

    /// A byte came on a connection whose handshake is done.
    pub(crate) const fn heard(&mut self, now: Instant) {
        self.last_byte = Some(now);
    }

    /// It said that it loads data, or copies another's: whatever it had may be gone.
    pub(crate) const fn replaced(&mut self) {
        self.is_replaced = true;
    }

    /// When it will have been up for `required`.
    pub(crate) fn counted(&self, required: Duration) -> Counted {
        let Some(since) = self.since else { return Counted::Never };
        let ours = since.saturating_add(required);
        let theirs = self.reported.map(|(at, up)| at.saturating_add(required.saturating_sub(up)));
        Counted::From(theirs.map_or(ours, |theirs| theirs.min(ours)))
    }
}

/// How long a node has to be up where no lock has a ttl above `max_ttl`: reported uptimes are whole seconds.
pub(crate) const fn required(max_ttl: Duration) -> Duration {
    let partial = if max_ttl.subsec_nanos() > 0 { 1 } else { 0 };
    Duration::from_secs(max_ttl.as_secs().saturating_add(partial).saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEED: Duration = Duration::from_secs(11);

    const fn at(secs: u64) -> Instant {
        Instant::from_secs(secs)
    }

    #[test]
    fn r25_the_wait_is_the_longest_ttl_rounded_up_and_a_second() {
        assert_eq!(required(Duration::from_secs(10)), NEED);
        assert_eq!(required(Duration::from_millis(9_001)), NEED);
        assert_eq!(required(Duration::from_millis(1)), Duration::from_secs(2));
        assert_eq!(required(Duration::MAX), Duration::from_secs(u64::MAX));
    }

    #[test]
    fn r25_the_first_run_at_an_address_is_believed() {
        let mut uptime = Uptime::new();
        assert_eq!(uptime.counted(NEED), Counted::Never);
        uptime.greeted(false, true, Some(4), at(100));
        assert_eq!(uptime.counted(NEED), Counted::From(at(107)));
        let mut uptime = Uptime::new();
        uptime.greeted(false, true, Some(1_000), at(100));
        assert_eq!(uptime.counted(NEED), Counted::From(at(100)), "it has been up for long");
    }

    #[test]
    fn r25_an_uptime_that_cannot_be_is_not_believed() {
        for secs in [None, Some(-3), Some(i64::MIN)] {
            let mut uptime = Uptime::new();
            uptime.greeted(false, true, secs, at(100));
            assert_eq!(uptime.counted(NEED), Counted::From(at(111)), "{secs:?}: our own time alone");
        }
        // The old run was heard 5 s ago: a new one cannot be up for 6.
        let mut uptime = Uptime::new();
        uptime.greeted(false, true, Some(1_000), at(50));
        uptime.heard(at(95));
        uptime.greeted(false, true, Some(6), at(100));
        assert_eq!(uptime.counted(NEED), Counted::From(at(111)));
        // For 5 it can.
        let mut uptime = Uptime::new();
        uptime.greeted(false, true, Some(1_000), at(50));
        uptime.heard(at(95));
        uptime.greeted(false, true, Some(5), at(100));
        assert_eq!(uptime.counted(NEED), Counted::From(at(106)));
    }

    #[test]
    fn r25_a_reconnect_to_the_same_run_changes_nothing() {
        let mut uptime = Uptime::new();
        uptime.greeted(false, true, Some(0), at(100));
        uptime.greeted(true, true, Some(9_000), at(105));
        assert_eq!(
            uptime.counted(NEED),
            Counted::From(at(111)),
            "a wall clock that was set forward is no uptime"
        );
    }

    #[test]
    fn r23_r25_data_that_may_have_been_replaced_starts_it_anew() {
        let mut uptime = Uptime::new();
        uptime.greeted(false, true, Some(1_000), at(100));
        uptime.replaced();
        uptime.greeted(true, true, Some(1_005), at(105));
        assert_eq!(uptime.counted(NEED), Counted::From(at(116)));
        uptime.replaced();
        uptime.greeted(true, true, Some(9), at(205));
        assert_eq!(uptime.counted(NEED), Counted::From(at(216)), "the process is older than its data");
    }

    #[test]
    fn r25_a_node_that_does_not_say_who_it_is_is_never_counted() {
        let mut uptime = Uptime::new();
        uptime.greeted(false, true, Some(1_000), at(100));
        uptime.greeted(false, false, None, at(105));
        assert_eq!(uptime.counted(NEED), Counted::Never);
    }
}
