//! Any calls, any bytes, in any order: the engine's calling contract.

use super::check;
use super::nodes::{self, PASSWORD};
use super::rig::{Rig, entropy};
use crate::simulate::Dice;
use core::time::Duration;
use redlock_core::{AcquireRequest, Client, Config, Instant, Limits};

/// What locks are asked for: no time at all, less than the drift, the usual, more than a year.
const TTLS: [u64; 8] = [10_000, 1_000, 50, 20, 3, 0, 600_000, 40_000_000_000];
const WAITS: [u64; 4] = [0, 100, 3_000, 20];
const SPANS: [u64; 8] = [0, 1, 7, 40, 100, 900, 3_000, 20_000];
/// More wake-ups than this with nobody calling, and the engine is busy with itself.
const MOST_WAKE_UPS: usize = 20_000;

/// Drives the engine as the bytes say, then lets all nodes fall silent, closes it, and expects the end.
///
/// # Errors
///
/// A line of the calling contract that did not hold: an operation not answered, or twice, or late; a wake-up that is not
/// later than now; a lock held without a quorum or past its deadline; output without bound; a secret that is shown.
pub fn engine(bytes: &[u8]) -> Result<(), String> {
    let mut dice = Dice::bytes(bytes);
    let mut rig = Rig::new(client(&mut dice)?);
    if dice.chance(70) {
        greet(&mut rig)?;
    }
    let mut requests = 0;
    while !dice.is_empty() {
        step(&mut rig, &mut dice, &mut requests)?;
    }
    finish(&mut rig)
}

fn client(dice: &mut Dice<'_>) -> Result<Client, String> {
    let nodes = [3, 3, 5, 1, 2, 4][dice.index(6)];
    let mut config =
        Config::builder().nodes((0..nodes).map(|node| format!("redis://:{PASSWORD}@node{node}/1")));
    if dice.chance(50) {
        let mut limits = Limits::default();
        (limits.operations, limits.locks, limits.cleanups) = (6, 4, 2);
        (limits.in_flight_per_node, limits.queued_events) = (16, 16);
        config = config.limits(limits);
    }
    if dice.chance(30) {
        config = config.client_name("fuzz").key_prefix("p:");
    }
    let config = config.build().map_err(|error| error.to_string())?;
    Ok(Client::new(config, dice.below(256), Instant::from_millis(dice.below(1_000))))
}

/// All nodes are there, and answer what they are asked first.
fn greet(rig: &mut Rig) -> Result<(), String> {
    rig.drain()?;
    for node in 0..rig.ends.len() {
        rig.accept(node);
        for _ in 0..8 {
            rig.drain()?;
            rig.answer(node, &mut Dice::bytes(&[4]));
            rig.deliver(node, usize::MAX);
        }
    }
    Ok(())
}

fn step(rig: &mut Rig, dice: &mut Dice<'_>, requests: &mut u16) -> Result<(), String> {
    let count = rig.ends.len();
    match dice.below(32) {
        0..=3 => {
            *requests = requests.wrapping_add(1);
            rig.acquire(request(dice, *requests));
        }
        4..=5 => {
            let ttl = Duration::from_millis(TTLS[dice.index(TTLS.len())]);
            if let Some(lock) = rig.some_lock(dice.index(4)) {
                rig.extend(lock, ttl);
            }
        }
        6 => {
            if let Some(lock) = rig.some_lock(dice.index(4)) {
                rig.release(lock)?;
            }
        }
        7 => {
            if let Some(operation) = rig.some_operation(dice.index(6)) {
                rig.cancel(operation);
            }
        }
        8 => match dice.below(16) {
            0 => rig.close(),
            _ => rig.connect(Duration::from_millis(500)),
        },
        9..=10 => {
            rig.drain()?;
            rig.accept(dice.index(count));
        }
        11..=15 => {
            rig.drain()?;
            let node = dice.index(count);
            rig.answer(node, dice);
            rig.deliver(node, usize::MAX);
        }
        16..=18 => {
            rig.drain()?;
            rig.answer(dice.index(count), dice);
        }
        19..=20 => rig.deliver(dice.index(count), dice.index(12)),
        21 => {
            let bytes = nodes::raw(dice);
            rig.ends[dice.index(count)].answers.extend(bytes);
        }
        22 => {
            let node = u8::try_from(dice.index(count + 1)).unwrap_or(0);
            rig.stale(node, u32::try_from(dice.below(6)).unwrap_or(0), dice);
        }
        23..=24 => {
            rig.drain()?;
            rig.cut(dice.index(count), dice.below(5));
        }
        25..=26 => rig.pass(Duration::from_millis(SPANS[dice.index(SPANS.len())])),
        27 => {
            let before = rig.now.saturating_sub(Duration::from_millis(dice.below(1_000)));
            rig.timeout(before);
        }
        28..=29 => {
            for _ in 0..dice.below(4) {
                rig.wake_up(Instant::MAX)?;
            }
        }
        // Everybody answers what they were asked: otherwise few inputs get anywhere.
        30 => {
            rig.drain()?;
            for node in 0..count {
                rig.answer(node, &mut Dice::bytes(&[4]));
                rig.deliver(node, usize::MAX);
            }
        }
        _ => rig.drain()?,
    }
    Ok(())
}

fn request(dice: &mut Dice<'_>, number: u16) -> AcquireRequest {
    let entropy = entropy(number);
    let key = format!("key{}", dice.below(3));
    let request = if dice.chance(10) {
        AcquireRequest::all([key, "other".into()], entropy)
    } else {
        AcquireRequest::new(key, entropy)
    };
    let ttl = Duration::from_millis(TTLS[dice.index(TTLS.len())]);
    let request = request.ttl(ttl).wait(Duration::from_millis(WAITS[dice.index(WAITS.len())]));
    match dice.below(6) {
        0 => request.auto_renew(Duration::MAX),
        1 => request.auto_renew(ttl.saturating_mul(3)),
        2 => request.attempts(2),
        3 => request.expiring_lead(ttl),
        _ => request,
    }
}

/// No node says anything any more: what was asked for is answered all the same, and closing comes to its end.
fn finish(rig: &mut Rig) -> Result<(), String> {
    rig.drain()?;
    wait(rig, rig.last_until())?;
    rig.close();
    let slowest = rig.client.config().node_timeout_for(Duration::MAX);
    wait(rig, rig.now.saturating_add(slowest))?;
    check(rig.client.is_closed(), || "not closed in time".into())?;
    check(rig.client.is_idle(), || format!("closed, and not idle: {:?}", rig.client))?;
    check(rig.client.poll_timeout().is_none(), || "closed, and wants to be woken".into())
}

fn wait(rig: &mut Rig, end: Instant) -> Result<(), String> {
    let mut wake_ups = 0;
    while rig.wake_up(end)? {
        wake_ups += 1;
        check(wake_ups <= MOST_WAKE_UPS, || format!("{wake_ups} wake-ups until {:?}", rig.now))?;
    }
    // Operations are late only once their time has passed.
    rig.pass(end.saturating_duration_since(rig.now) + Duration::from_nanos(1));
    rig.drain()
}
