//! When a lock is renewed, and for how long (R16).

use crate::time::{Drift, Instant};
use core::time::Duration;

/// The schedule of a lock's renewal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Renewal {
    /// The end of `max_hold`; [`Instant::MAX`] for none.
    end: Instant,
    /// What a renewal asks for: the ttl of the last successful extend, at first that of the acquire.
    ttl: Duration,
    /// Not before this: retries are at least max(node timeout, ttl / 20) apart.
    not_before: Instant,
    /// State of a xorshift generator; zero for no jitter.
    jitter: u32,
}

impl Renewal {
    /// A schedule that ends at `end`. `jitter` seeds the jitter, zero for none.
    #[must_use]
    pub const fn new(end: Instant, ttl: Duration, jitter: u32) -> Self {
        Self { end, ttl, not_before: Instant::ZERO, jitter }
    }

    /// The end of `max_hold`.
    #[must_use]
    pub const fn end(&self) -> Instant {
        self.end
    }

    /// A manual extension with that ttl was confirmed: renewals ask for it from now on.
    pub const fn use_ttl(&mut self, ttl: Duration) {
        self.ttl = ttl;
    }

    /// A renewal starts at `now`; the next is at least so far away.
    pub fn started(&mut self, now: Instant, node_timeout: Duration) {
        self.postponed(now, node_timeout);
        // xorshift32 (Marsaglia 2003, "Xorshift RNGs", triple 13, 17, 5); zero stays zero.
        self.jitter ^= self.jitter << 13;
        self.jitter ^= self.jitter >> 17;
        self.jitter ^= self.jitter << 5;
    }

    /// A renewal was due at `now` and not worth sending: look again after the distance of a retry.
    pub fn postponed(&mut self, now: Instant, node_timeout: Duration) {
        self.not_before = now.saturating_add(node_timeout.max(self.ttl / 20));
    }

    /// The renewal that started at `start` was confirmed: the next is no retry of it, which a node timeout that is longer than the
    /// lock would keep away until that is lost. Of two that are under way the later one keeps its distance.
    pub fn confirmed(&mut self, start: Instant, node_timeout: Duration) {
        let least = self.ttl / 20;
        if self.not_before <= start.saturating_add(node_timeout.max(least)) {
            self.not_before = start.saturating_add(least);
        }
    }

    /// When the next renewal is due: a third of the time from the newest confirmed start to the deadline in force, up to a
    /// tenth of that third earlier so that many locks taken at once do not stay in step.
    #[must_use]
    pub fn due(&self, newest_start: Instant, deadline: Instant) -> Instant {
        let third = deadline.saturating_duration_since(newest_start) / 3;
        let early = fraction(third / 10, self.jitter);
        newest_start.saturating_add(third.saturating_sub(early)).max(self.not_before)
    }

    /// The ttl of a renewal that starts at `now`, cut so that its deadline, after drift, is not beyond the end of `max_hold`;
    /// `None` if it is not worth sending: it would move the deadline later by less than a tenth of the full ttl, or no
    /// validity would be left of it.
    #[must_use]
    pub fn ttl_at(&self, now: Instant, deadline: Instant, drift: Drift) -> Option<Duration> {
        let left = self.end.saturating_duration_since(now);
        let ttl = self.ttl.min(drift.ttl_for_validity(left));
        let reached = now.saturating_add(drift.validity(ttl));
        let gain = reached.saturating_duration_since(deadline);
        (gain >= self.ttl / 10 && !drift.validity(ttl).is_zero()).then_some(ttl)
    }
}

/// `span` × `state` / 2³²: the generator's state as a fraction of the span, without floating point.
fn fraction(span: Duration, state: u32) -> Duration {
    let nanos = span.as_nanos().saturating_mul(u128::from(state)) >> 32;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn r16_due_after_a_third_of_what_is_in_force() {
        let renewal = Renewal::new(Instant::MAX, 10 * SECOND, 0);
        assert_eq!(renewal.due(Instant::from_secs(4), Instant::from_secs(13)), Instant::from_secs(7));
        let jittered = Renewal::new(Instant::MAX, 10 * SECOND, u32::MAX);
        let due = jittered.due(Instant::from_secs(4), Instant::from_secs(13));
        assert!(due >= Instant::from_millis(6_700) && due < Instant::from_secs(7), "{due:?}");
    }

    #[test]
    fn r16_retries_keep_their_distance() {
        let mut renewal = Renewal::new(Instant::MAX, 10 * SECOND, 0);
        renewal.started(Instant::from_secs(7), Duration::from_millis(100));
        assert_eq!(renewal.due(Instant::from_secs(4), Instant::from_secs(13)), Instant::from_millis(7_500));
        renewal.started(Instant::from_secs(8), Duration::from_millis(900));
        assert_eq!(renewal.due(Instant::from_secs(4), Instant::from_secs(13)), Instant::from_millis(8_900));
    }

    #[test]
    fn r16_after_a_confirmed_one_the_next_is_no_retry() {
        let (patience, at) = (20 * SECOND, Instant::from_secs);
        let mut renewal = Renewal::new(Instant::MAX, 10 * SECOND, 0);
        renewal.started(at(3), patience);
        assert_eq!(renewal.due(at(0), at(9)), at(23));
        renewal.confirmed(at(3), patience);
        assert_eq!(renewal.due(at(3), at(12)), at(6), "a third, as after the first");
        renewal.started(at(30), patience);
        renewal.confirmed(at(3), patience);
        assert_eq!(renewal.due(at(3), at(12)), at(50), "an older one says nothing of it");
        renewal.confirmed(at(30), patience);
        assert_eq!(
            renewal.due(at(30), at(30)),
            Instant::from_millis(30_500),
            "no busy loop where little is in force"
        );
    }

    /// The first numbers of xorshift32 after 1, as published.
    #[test]
    fn r16_the_jitter_differs_from_one_renewal_to_the_next() {
        let mut renewal = Renewal::new(Instant::MAX, 10 * SECOND, 1);
        for jitter in [270_369, 67_634_689, 2_647_435_461, 307_599_695] {
            renewal.started(Instant::from_secs(7), Duration::from_millis(100));
            assert_eq!(renewal.jitter, jitter);
        }
        let mut none = Renewal::new(Instant::MAX, 10 * SECOND, 0);
        none.started(Instant::from_secs(7), Duration::from_millis(100));
        assert_eq!(none.jitter, 0);
    }

    #[test]
    fn r16_b50_the_last_one_is_cut_to_the_end_of_max_hold() {
        let end = Instant::from_secs(10);
        let renewal = Renewal::new(end, 3 * SECOND, 0);
        let now = Instant::from_millis(8_500);
        let ttl = renewal.ttl_at(now, Instant::from_millis(9_400), Drift::DEFAULT).expect("worth sending");
        let reached = now.saturating_add(Drift::DEFAULT.validity(ttl));
        assert!(
            reached <= end && end.saturating_duration_since(reached) <= Duration::from_millis(1),
            "{reached:?}"
        );
        assert_eq!(
            renewal.ttl_at(now, Instant::from_millis(9_701), Drift::DEFAULT),
            None,
            "less than a tenth"
        );
        assert_eq!(renewal.ttl_at(end, end, Drift::DEFAULT), None);
    }
}
