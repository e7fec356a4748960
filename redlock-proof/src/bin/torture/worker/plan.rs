//! What an actor is going to do next.

use core::time::Duration;
use redlock_proof::simulate::Dice;

/// Once: how it asks for the lock, what it does with it, and how it ends that.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) resources: Vec<&'static str>,
    pub(super) ttl: Duration,
    pub(super) wait: Duration,
    /// Whether its lock comes with a fence.
    pub(super) is_fenced: bool,
    /// How long it stays, if it still holds the lock.
    pub(super) stay: Duration,
    /// How long it sleeps between two looks.
    pub(super) nap: Duration,
    /// Whether its naps block its thread, and with it what else runs there.
    pub(super) blocks: bool,
    /// Whether it waits to be told of a loss, rather than look; or holds what it extended until it is lost.
    pub(super) watches: bool,
    pub(super) style: Style,
    /// How long it does without afterwards.
    pub(super) pause: Duration,
    /// Whether it needs another client from then on.
    pub(super) changes_client: bool,
}

/// What is special about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// The acquire is dropped after so long, if it is not granted by then.
    Cancel(Duration),
    /// The client is closed while the lock is held.
    Close,
    /// The guard is dropped.
    Drop,
    /// It is extended several times, to longer and shorter spans.
    Extend,
    /// The body of a `hold`.
    Hold,
    /// The body of a `hold`, renewed.
    HoldRenew,
    /// It sleeps beyond the deadline, and must notice.
    Oversleep,
    /// It is released.
    Release,
    /// It is renewed, up to `max_hold`.
    Renew,
    /// A second handle takes over from the first.
    Share,
    /// Exactly one round.
    Try,
}

/// What they want, mostly.
const DOOR: &str = "door";
const GATE: &str = "gate";
const SIDE: &str = "side";

impl Plan {
    pub(super) fn next(dice: &mut Dice<'_>) -> Self {
        let millis = |dice: &mut Dice<'_>, least, most| Duration::from_millis(dice.between(least, most));
        let style = match dice.below(100) {
            0..10 => Style::Cancel(millis(dice, 0, 40)),
            10..12 => Style::Close,
            12..24 => Style::Drop,
            24..36 => Style::Extend,
            36..46 => Style::Hold,
            46..52 => Style::HoldRenew,
            52..54 => Style::Oversleep,
            54..76 => Style::Release,
            76..82 => Style::Renew,
            82..88 => Style::Share,
            _ => Style::Try,
        };
        let ttl = match dice.below(10) {
            0..4 => millis(dice, 40, 150),
            4..8 => millis(dice, 150, 500),
            _ => millis(dice, 500, 1_500),
        };
        let stay = match style {
            // So that it needs what it asks for.
            Style::HoldRenew | Style::Renew => ttl
                .min(Duration::from_millis(200))
                .saturating_mul(u32::try_from(dice.between(1, 3)).unwrap_or(1)),
            Style::Extend => ttl.min(Duration::from_millis(150)) / 2,
            Style::Cancel(_)
            | Style::Close
            | Style::Drop
            | Style::Hold
            | Style::Oversleep
            | Style::Release
            | Style::Share
            | Style::Try => {
                let most = if dice.chance(90) { 10 } else { 150 };
                millis(dice, 0, most)
            }
        };
        let resources = match dice.below(20) {
            0..3 => vec![SIDE],
            3 => vec![SIDE, DOOR],
            4 => vec![DOOR, GATE],
            5 => vec![GATE],
            _ => vec![DOOR],
        };
        Self {
            resources,
            ttl,
            wait: if style == Style::Try { Duration::ZERO } else { millis(dice, 50, 2_000) },
            is_fenced: dice.chance(70),
            stay,
            nap: millis(dice, 1, 10),
            blocks: dice.chance(10),
            watches: dice.chance(50),
            style,
            pause: millis(dice, 0, 10),
            changes_client: style == Style::Close || dice.chance(2),
        }
    }

    /// The end of its renewal; `None` if it has none.
    pub(super) fn max_hold(&self, dice: &mut Dice<'_>) -> Option<Duration> {
        match self.style {
            Style::HoldRenew | Style::Renew => {
                Some(self.ttl.saturating_mul(u32::try_from(dice.between(1, 8)).unwrap_or(1)))
            }
            Style::Cancel(_)
            | Style::Close
            | Style::Drop
            | Style::Extend
            | Style::Hold
            | Style::Oversleep
            | Style::Release
            | Style::Share
            | Style::Try => None,
        }
    }

    /// How long to ask for in an extension: longer, shorter, or the same again.
    pub(super) fn extension(&self, dice: &mut Dice<'_>) -> Duration {
        match dice.below(5) {
            0 => self.ttl.saturating_mul(2),
            1 | 2 => (self.ttl / 3).max(Duration::from_millis(10)),
            _ => self.ttl,
        }
    }
}

impl Style {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Cancel(_) => "cancel",
            Self::Close => "close",
            Self::Drop => "drop",
            Self::Extend => "extend",
            Self::Hold => "hold",
            Self::HoldRenew => "hold-renew",
            Self::Oversleep => "oversleep",
            Self::Release => "release",
            Self::Renew => "renew",
            Self::Share => "share",
            Self::Try => "try",
        }
    }
}

/// The acquire that a plan is, on a client of any adapter.
macro_rules! asked {
    ($redlock:expr, $plan:expr, $dice:expr) => {{
        let plan = $plan;
        let mut acquire = match &plan.resources[..] {
            [one] => $redlock.acquire(one),
            several => $redlock.acquire_all(several),
        };
        acquire = acquire.ttl(plan.ttl).wait(plan.wait);
        if plan.is_fenced {
            acquire = acquire.fenced();
        }
        if let Some(max_hold) = plan.max_hold(&mut $dice) {
            acquire = acquire.auto_renew(max_hold);
        }
        acquire
    }};
}

pub(super) use asked;
