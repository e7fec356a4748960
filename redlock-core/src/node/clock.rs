//! A node's wall clock against ours, which never steps.
//!
//! Servers expire keys by their wall clock. One that jumps forward drops locks early, and one that jumps back keeps them
//! too long; the allowance for drift covers neither. Asked for its time now and then, a node gives it away.

use crate::time::Instant;
use core::time::Duration;

/// How often a node is asked, while it is asked anything at all.
const INTERVAL: Duration = Duration::from_secs(10);

/// What a clock that is slewed, not stepped, may gain or lose: ten times what `adjtime` does.
const SLEW_PER_SECOND: Duration = Duration::from_millis(5);

/// Smaller steps are within what scheduling and the drift allowance (2 ms) hide.
const LEAST_STEP: Duration = Duration::from_millis(10);

/// What is known of one node's clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClockWatch {
    last: Option<Sample>,
    /// When it was asked last, or is next.
    asked: Option<Instant>,
    is_outstanding: bool,
    /// It does not let us ask.
    is_refused: bool,
    is_off: bool,
}

/// One answer: when it was asked and answered by our clock, and what it said.
#[derive(Clone, Copy, Debug)]
struct Sample {
    sent: Instant,
    heard: Instant,
    micros: i128,
}

/// A wall clock that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// By how much at least.
    pub(crate) by: Duration,
    /// Whether forward.
    pub(crate) is_forward: bool,
}

impl ClockWatch {
    pub(crate) fn new(is_on: bool) -> Self {
        Self { is_off: !is_on, ..Self::default() }
    }

    /// A connection is new, or to another server: what was outstanding is not answered, and a new process may be another
    /// machine's.
    pub(crate) const fn greeted(&mut self, is_same: bool, now: Instant) {
        self.is_outstanding = false;
        if !is_same {
            self.last = None;
            self.is_refused = false;
        }
        if self.asked.is_none() {
            self.asked = Some(now);
        }
    }

    /// Whether it is time to ask.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        !self.is_off
            && !self.is_refused
            && !self.is_outstanding
            && self.asked.is_some_and(|asked| now >= asked.saturating_add(INTERVAL))
    }

    /// It is asked now.
    pub(crate) const fn asked(&mut self, now: Instant) {
        self.asked = Some(now);
        self.is_outstanding = true;
    }

    /// It will not say.
    pub(crate) const fn refused(&mut self) {
        self.is_outstanding = false;
        self.is_refused = true;
    }

    /// It said this, in seconds and microseconds since 1970. Answers with the step since it was last asked, if there was
    /// one for sure: the time between two answers is known only up to the time that they were on the way.
    pub(crate) fn said(&mut self, secs: i64, micros: i64, now: Instant) -> Option<Step> {
        self.is_outstanding = false;
        let sent = self.asked?;
        let micros = i128::from(secs) * 1_000_000 + i128::from(micros);
        let sample = Sample { sent, heard: now, micros };
        let last = self.last.replace(sample)?;
        let passed = sample.micros - last.micros;
        let least = micros_of(sent.saturating_duration_since(last.heard));
        let most = micros_of(now.saturating_duration_since(last.sent));
        let slew = most * micros_of(SLEW_PER_SECOND) / 1_000_000;
        let (by, is_forward) = if passed > most { (passed - most, true) } else { (least - passed, false) };
        let by = by - slew;
        let is_step = by >= micros_of(LEAST_STEP);
        is_step.then(|| Step { by: Duration::from_micros(u64::try_from(by).unwrap_or(u64::MAX)), is_forward })
    }
}

fn micros_of(span: Duration) -> i128 {
    i128::try_from(span.as_micros()).unwrap_or(i128::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Asked and answered at these times by our clock, with the node's clock at `millis` halfway.
    fn ask(watch: &mut ClockWatch, sent: u64, heard: u64, millis: i64) -> Option<Step> {
        watch.asked(ms(sent));
        watch.said(millis / 1_000, millis % 1_000 * 1_000, ms(heard))
    }

    #[test]
    fn a_clock_that_runs_is_no_step() {
        let mut watch = ClockWatch::default();
        assert_eq!(ask(&mut watch, 1_000, 1_002, 50_000_001), None, "the first time");
        assert_eq!(ask(&mut watch, 11_000, 11_002, 50_010_001), None);
        assert_eq!(ask(&mut watch, 21_000, 21_002, 50_020_041), None, "0.4 % fast: slewed");
        assert_eq!(ask(&mut watch, 31_000, 31_400, 50_030_011), None, "a slow answer tells little");
    }

    #[test]
    fn a_clock_that_was_set_is_a_step_of_that_size() {
        let mut watch = ClockWatch::default();
        ask(&mut watch, 1_000, 1_002, 50_000_001);
        let step = ask(&mut watch, 11_000, 11_002, 50_070_001).unwrap();
        assert!(
            step.is_forward && step.by > Duration::from_secs(59) && step.by <= Duration::from_secs(60),
            "{step:?}"
        );
        assert_eq!(ask(&mut watch, 21_000, 21_002, 50_080_001), None, "said once");
        let step = ask(&mut watch, 31_000, 31_002, 50_085_001).unwrap();
        assert!(
            !step.is_forward && step.by > Duration::from_secs(4) && step.by <= Duration::from_secs(5),
            "{step:?}"
        );
    }

    #[test]
    fn microseconds_are_added_to_the_seconds() {
        let mut watch = ClockWatch::default();
        watch.asked(ms(1_000));
        assert_eq!(watch.said(50_000, 900_000, ms(1_000)), None);
        watch.asked(ms(11_000));
        assert_eq!(watch.said(50_010, 900_000, ms(11_000)), None);
        watch.asked(ms(11_200));
        assert_eq!(watch.said(50_011, 100_000, ms(11_200)), None);
    }

    #[test]
    fn a_step_within_the_time_on_the_way_cannot_be_told() {
        let mut watch = ClockWatch::default();
        ask(&mut watch, 1_000, 1_900, 50_000_000);
        assert_eq!(ask(&mut watch, 11_000, 11_900, 50_010_700), None);
    }

    #[test]
    fn no_numbers_overflow() {
        let mut watch = ClockWatch::default();
        watch.asked(ms(0));
        watch.said(i64::MIN, i64::MIN, ms(1));
        watch.asked(Instant::MAX);
        assert!(watch.said(i64::MAX, i64::MAX, Instant::MAX).is_some());
    }

    #[test]
    fn it_is_asked_every_ten_seconds_and_not_where_it_refuses() {
        let mut watch = ClockWatch::default();
        assert!(!watch.is_due(ms(1_000_000)), "not before a handshake");
        watch.greeted(false, ms(1_000));
        assert!(!watch.is_due(ms(10_999)));
        assert!(watch.is_due(ms(11_000)));
        watch.asked(ms(11_000));
        assert!(!watch.is_due(ms(30_000)), "one at a time");
        watch.said(50, 0, ms(11_002));
        assert!(!watch.is_due(ms(20_999)));
        assert!(watch.is_due(ms(21_000)));
        watch.refused();
        assert!(!watch.is_due(ms(90_000)));
        watch.greeted(false, ms(90_000));
        assert!(watch.is_due(ms(90_000)), "another server may not");
    }
}
