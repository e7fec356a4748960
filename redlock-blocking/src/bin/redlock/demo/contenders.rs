//! Those who want the lock: each a client of its own, on a thread of its own.

use alloc::sync::Arc;
use core::time::Duration;
use std::io;
use std::thread::{self, JoinHandle};

use redlock_blocking::{Guard, Redlock};
use redlock_core::sim::TcpNode;

use super::arena::{Arena, Doing, NAMES, Score};
use super::checker::Visit;
use super::script::TTL;
use crate::clock;

const RESOURCE: &str = "demo";
/// How long to wait for the lock, before it counts as busy or refused.
const WAIT: Duration = Duration::from_millis(400);
/// How often to look, in the critical section, whether the lock is still held.
const LOOK: Duration = Duration::from_millis(1);

/// A client of its own, of these nodes. It connects in the background.
fn client<'n>(nodes: impl Iterator<Item = &'n TcpNode>) -> io::Result<Redlock> {
    Redlock::builder()
        .nodes(nodes.map(|node| format!("redis://{}", node.addr())))
        .default_ttl(TTL)
        .node_timeout(Duration::from_millis(150))
        .retry_delay(Duration::from_millis(2), Duration::from_millis(20))
        .connect_lazy()
        .map_err(io::Error::other)
}

/// How many nodes a client must know for this quorum to be their majority.
fn known(quorum: u8) -> usize {
    usize::from(quorum).saturating_mul(2).saturating_sub(1)
}

/// Starts them all. With an `unsafe_quorum` each is told of other nodes, and of so few that their majority is that.
///
/// # Errors
///
/// Those of the system, which has no more threads or sockets.
pub(crate) fn start(
    nodes: &[TcpNode],
    unsafe_quorum: Option<u8>,
    arena: &Arc<Arena>,
) -> io::Result<Vec<JoinHandle<()>>> {
    let count = unsafe_quorum.map_or(nodes.len(), known).min(nodes.len());
    (0..NAMES.len())
        .map(|contender| {
            let redlock = client(nodes.iter().cycle().skip(contender).take(count))?;
            let arena = Arc::clone(arena);
            thread::Builder::new().name("redlock-contender".into()).spawn(move || {
                if let Some(score) = arena.score(contender) {
                    contend(contender, &redlock, &arena, score);
                }
            })
        })
        .collect()
}

fn contend(contender: usize, redlock: &Redlock, arena: &Arena, score: &Score) {
    let mut dice = Dice(clock::now().as_nanos());
    while !arena.is_over() {
        match redlock.acquire(RESOURCE).ttl(TTL).wait(WAIT).lock() {
            Ok(guard) => {
                score.does(Doing::Inside);
                visit(contender, &guard, arena, score, dice.millis(4, 12));
                score.does(Doing::Waiting);
                drop(guard.release());
            }
            Err(error) if error.kind.is_contended() => {
                score.does(Doing::Waiting);
                score.busy();
            }
            Err(_) => {
                score.does(Doing::Refused);
                score.refused();
            }
        }
        // Whoever had it lets others have a turn.
        thread::sleep(dice.millis(0, 5));
    }
}

/// The critical section. What is written down is only what is certain: from an instant after the grant to the last one
/// after which the lock was still seen to be held.
fn visit(contender: usize, guard: &Guard, arena: &Arena, score: &Score, length: Duration) {
    let enter = clock::now();
    if !guard.is_held() {
        return;
    }
    let is_crowded = !arena.enter();
    score.granted();
    let mut leave = enter;
    let mut has_lapsed = false;
    while leave.saturating_duration_since(enter) < length {
        thread::sleep(LOOK);
        let now = clock::now();
        if !guard.is_held() {
            has_lapsed = true;
            break;
        }
        leave = now;
    }
    arena.leave();
    score.record(Visit { contender, enter, leave, is_crowded, has_lapsed });
}

/// Enough randomness for waiting times.
struct Dice(u64);

impl Dice {
    fn millis(&mut self, least: u64, most: u64) -> Duration {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let span = most.saturating_sub(least).saturating_add(1);
        Duration::from_millis(least.saturating_add((self.0 >> 33) % span))
    }
}
