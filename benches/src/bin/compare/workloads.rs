//! The workloads, over any `Locker`.

use crate::locker::{Ask, Boxed, Locker, Tasks};
use crate::measure::{Cpu, Figures, percentile, shared_now};
use crate::partner::Partner;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) seconds: f64,
    pub(crate) cycles: u64,
}

const ASK: Ask = Ask { ttl: Duration::from_secs(10), wait: Duration::from_secs(10), renew: false };

impl Plan {
    fn until(self) -> Instant {
        Instant::now() + Duration::from_secs_f64(self.seconds)
    }
}

/// W1 and W4: one client, a fresh resource each time.
pub(crate) async fn alone<L: Locker>(locker: L, plan: Plan) -> Figures {
    let run = std::process::id();
    let (mut acquires, mut releases, mut pairs, mut failed) = (vec![], vec![], vec![], 0_u64);
    let (cpu, until) = (Cpu::start(), plan.until());
    for cycle in 0..plan.cycles {
        let resource = format!("alone:{run}:{cycle}");
        let start = Instant::now();
        if start >= until {
            break;
        }
        let Ok(held) = locker.acquire(&resource, Ask { wait: Duration::ZERO, ..ASK }).await else {
            failed += 1;
            continue;
        };
        let granted = Instant::now();
        let released = locker.release(held).await;
        let end = Instant::now();
        failed += u64::from(released.is_err());
        acquires.push(granted - start);
        releases.push(end - granted);
        pairs.push(end - start);
    }
    let spent = cpu.micros();
    alone_figures(acquires, releases, pairs, failed, spent)
}

pub(crate) fn alone_figures(
    mut acquires: Vec<Duration>,
    mut releases: Vec<Duration>,
    mut pairs: Vec<Duration>,
    failed: u64,
    cpu: f64,
) -> Figures {
    let mut figures = Figures::default();
    let count = pairs.len().max(1) as f64;
    for (of, samples) in [("acquire", &mut acquires), ("release", &mut releases), ("pair", &mut pairs)] {
        samples.sort_unstable();
        figures.put(&format!("{of} p50 µs"), percentile(samples, 0.50));
        figures.put(&format!("{of} p99 µs"), percentile(samples, 0.99));
    }
    figures.put("client CPU µs/pair", cpu / count);
    figures.put("success %", 100.0 * pairs.len() as f64 / (pairs.len() as f64 + failed as f64).max(1.0));
    figures
}

/// W2: 200 tasks, each its own resource.
pub(crate) async fn many<L: Locker>(locker: L, tasks: impl Tasks, plan: Plan) -> Figures {
    let (cpu, start, until) = (Cpu::start(), Instant::now(), plan.until());
    let failed = Arc::new(AtomicU64::new(0));
    let workers: Vec<Boxed<u64>> = (0..200)
        .map(|task| {
            let (locker, failed) = (locker.clone(), failed.clone());
            tasks.spawn(async move {
                let resource = format!("many:{task}");
                let mut cycles = 0;
                while Instant::now() < until {
                    let done = match locker.acquire(&resource, ASK).await {
                        Ok(held) => locker.release(held).await,
                        Err(error) => Err(error),
                    };
                    cycles += u64::from(done.is_ok());
                    failed.fetch_add(u64::from(done.is_err()), Ordering::Relaxed);
                }
                cycles
            })
        })
        .collect();
    let mut cycles = 0;
    for worker in workers {
        cycles += worker.await;
    }
    many_figures(cycles, failed.load(Ordering::Relaxed), start.elapsed(), cpu.micros())
}

pub(crate) fn many_figures(cycles: u64, failed: u64, took: Duration, cpu: f64) -> Figures {
    let mut figures = Figures::default();
    figures.put("cycles/s", cycles as f64 / took.as_secs_f64());
    figures.put("client CPU µs/cycle", cpu / cycles.max(1) as f64);
    figures.put("peak MiB", crate::measure::peak_memory());
    figures.put("failed", failed as f64);
    figures
}

/// W3: 50 tasks, one resource, a critical section of 1 ms.
pub(crate) async fn contended<L: Locker>(locker: L, tasks: impl Tasks, plan: Plan) -> Figures {
    let (start, until) = (Instant::now(), plan.until());
    let inside = Arc::new(AtomicBool::new(false));
    let overlaps = Arc::new(AtomicU64::new(0));
    let workers: Vec<Boxed<Vec<Duration>>> = (0..50)
        .map(|_| {
            let (locker, inside, overlaps) = (locker.clone(), inside.clone(), overlaps.clone());
            tasks.spawn(async move {
                let mut waits = Vec::new();
                loop {
                    let asked = Instant::now();
                    if asked >= until {
                        return waits;
                    }
                    let Ok(held) = locker.acquire("contended", ASK).await else { continue };
                    let counts = Instant::now() < until;
                    if inside.swap(true, Ordering::SeqCst) {
                        overlaps.fetch_add(1, Ordering::Relaxed);
                    }
                    if counts {
                        waits.push(asked.elapsed());
                    }
                    tasks.sleep(Duration::from_millis(1)).await;
                    inside.store(false, Ordering::SeqCst);
                    let _may_fail = locker.release(held).await;
                }
            })
        })
        .collect();
    let mut waits = Vec::new();
    for worker in workers {
        waits.push(worker.await);
    }
    contended_figures(waits, overlaps.load(Ordering::Relaxed), start, plan.seconds)
}

pub(crate) fn contended_figures(
    waits: Vec<Vec<Duration>>,
    overlaps: u64,
    _start: Instant,
    seconds: f64,
) -> Figures {
    let served: Vec<usize> = waits.iter().map(Vec::len).collect();
    let mut all: Vec<Duration> = waits.into_iter().flatten().collect();
    all.sort_unstable();
    let mut figures = Figures::default();
    figures.put("grants/s", all.len() as f64 / seconds);
    figures.put("wait p50 ms", percentile(&all, 0.50) / 1000.0);
    figures.put("wait p99 ms", percentile(&all, 0.99) / 1000.0);
    figures.put("wait max ms", percentile(&all, 1.0) / 1000.0);
    figures.put("least served", served.iter().min().copied().unwrap_or(0) as f64);
    figures.put("most served", served.iter().max().copied().unwrap_or(0) as f64);
    let extremes = served.iter().min().zip(served.iter().max());
    let ratio = extremes.map_or(0.0, |(least, most)| *least as f64 / (*most).max(1) as f64);
    figures.put("least ÷ most served", ratio);
    figures.put("grants", all.len() as f64);
    figures.put("overlaps", overlaps as f64);
    figures
}

/// When a process held the lock: from the grant to the call of the release, in nanoseconds of a clock that all processes share.
pub(crate) type Holds = Vec<(u64, u64)>;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// W5: A releases, B, a client in another process, waits. A's part: it also acquires where nobody is in the way, after the same
/// 20 ms of quiet.
pub(crate) async fn handed_over<L: Locker>(
    locker: L,
    tasks: impl Tasks,
    plan: Plan,
    partner: Partner,
) -> Result<Figures, String> {
    let (until, mut alone, mut held) = (plan.until(), Vec::new(), Holds::new());
    while Instant::now() < until {
        let start = Instant::now();
        let lock = locker.acquire("handed over", ASK).await?;
        alone.push(start.elapsed());
        let granted = shared_now();
        tasks.sleep(ms(20)).await;
        held.push((granted, shared_now()));
        locker.release(lock).await?;
        tasks.sleep(ms(30)).await;
    }
    let theirs: Holds = partner.figures()?;
    let after = |granted: u64| {
        held.iter().map(|(_, released)| *released).filter(|released| *released <= granted).max()
    };
    let mut times: Vec<Duration> = theirs
        .iter()
        .filter_map(|(granted, _)| Some(Duration::from_nanos(granted - after(*granted)?)))
        .collect();
    let overlaps =
        held.iter().flat_map(|(from, to)| theirs.iter().filter(move |(other, end)| other < to && from < end));
    let mut figures = Figures::default();
    figures.put("overlaps", overlaps.count() as f64);
    figures.put("hand-overs", times.len() as f64);
    times.sort_unstable();
    alone.sort_unstable();
    figures.put("hand-over p50 µs", percentile(&times, 0.50));
    figures.put("hand-over p99 µs", percentile(&times, 0.99));
    figures.put("uncontended acquire p50 µs", percentile(&alone, 0.50));
    figures.put("hand-over ÷ acquire", percentile(&times, 0.50) / percentile(&alone, 0.50));
    Ok(figures)
}

/// B's part: it asks while A holds the lock, and gives it back after 10 ms.
pub(crate) async fn taken_over<L: Locker>(locker: L, tasks: impl Tasks, plan: Plan) -> Result<Holds, String> {
    let (until, mut held) = (plan.until(), Holds::new());
    tasks.sleep(ms(5)).await;
    while Instant::now() < until {
        let lock = locker.acquire("handed over", ASK).await?;
        let granted = shared_now();
        tasks.sleep(ms(10)).await;
        held.push((granted, shared_now()));
        locker.release(lock).await?;
        tasks.sleep(ms(25)).await;
    }
    Ok(held)
}

/// W7: as W3, with a single waiter in another process.
pub(crate) async fn beside_many<L: Locker>(
    locker: L,
    tasks: impl Tasks,
    plan: Plan,
    partner: Partner,
) -> Result<Figures, String> {
    let mut figures = contended(locker, tasks, plan).await;
    let single: Holds = partner.figures()?;
    let (mine, single) = (figures.get("grants").unwrap_or(0.0), single.len() as f64);
    figures.put("grants of the fifty", mine);
    figures.put("grants of the one", single);
    figures.put("share of the one %", 100.0 * single / (mine + single).max(1.0));
    Ok(figures)
}

/// The single waiter.
pub(crate) async fn single<L: Locker>(locker: L, tasks: impl Tasks, plan: Plan) -> Result<Holds, String> {
    let (until, mut held) = (plan.until(), Holds::new());
    while Instant::now() < until {
        let Ok(lock) = locker.acquire("contended", ASK).await else { continue };
        let granted = shared_now();
        tasks.sleep(ms(1)).await;
        if Instant::now() < until {
            held.push((granted, shared_now()));
        }
        let _may_fail = locker.release(lock).await;
    }
    Ok(held)
}

/// W8: 200 clients, each with connections of its own, wait for a lock that each of them holds for 3 s.
pub(crate) async fn crowd<L: Locker>(clients: Vec<L>, tasks: impl Tasks, plan: Plan) -> Figures {
    let until = Instant::now() + Duration::from_secs_f64(plan.seconds.max(12.0));
    let inside = Arc::new(AtomicBool::new(false));
    let overlaps = Arc::new(AtomicU64::new(0));
    let waiting: Vec<Boxed<u64>> = clients
        .into_iter()
        .map(|client| {
            let (inside, overlaps) = (inside.clone(), overlaps.clone());
            tasks.spawn(async move {
                let mut grants = 0;
                loop {
                    let wait = until.saturating_duration_since(Instant::now());
                    if wait.is_zero() {
                        return grants;
                    }
                    let Ok(held) = client.acquire("crowded", Ask { wait, ..ASK }).await else { continue };
                    grants += 1;
                    if inside.swap(true, Ordering::SeqCst) {
                        overlaps.fetch_add(1, Ordering::Relaxed);
                    }
                    tasks.sleep(Duration::from_secs(3)).await;
                    inside.store(false, Ordering::SeqCst);
                    let _may_fail = client.release(held).await;
                }
            })
        })
        .collect();
    let mut grants = 0;
    for client in waiting {
        grants += client.await;
    }
    let mut figures = Figures::default();
    figures.put("grants", grants as f64);
    figures.put("overlaps", overlaps.load(Ordering::Relaxed) as f64);
    figures
}

/// W6: 1 000 locks held and renewed, ttl 3 s. Renewals of libraries that do it themselves are counted by the servers.
pub(crate) async fn renewed<L: Locker>(locker: L, tasks: impl Tasks, plan: Plan) -> Figures {
    let ask = Ask { ttl: Duration::from_secs(3), renew: L::RENEWS, ..ASK };
    let mut holds = Vec::new();
    for lock in 0..1000 {
        if let Ok(held) = locker.acquire(&format!("renewed:{lock}"), ask).await {
            holds.push(held);
        }
    }
    let got = holds.len();
    let (cpu, until) = (Cpu::start(), plan.until());
    let (mut lost, mut sent) = (1000 - got, 0);
    if L::RENEWS {
        tasks.sleep(Duration::from_secs_f64(plan.seconds)).await;
    } else {
        let renewing: Vec<Boxed<(bool, u32, L::Held)>> = holds
            .drain(..)
            .map(|held| {
                let locker = locker.clone();
                tasks.spawn(async move {
                    let mut renewals = 0;
                    while Instant::now() < until {
                        tasks.sleep(Duration::from_secs(1)).await;
                        if locker.extend(&held, ask.ttl).await.is_err() {
                            return (false, renewals, held);
                        }
                        renewals += 1;
                    }
                    (true, renewals, held)
                })
            })
            .collect();
        for task in renewing {
            let (kept, renewals, held) = task.await;
            sent += u64::from(renewals);
            lost += usize::from(!kept);
            holds.push(held);
        }
    }
    let spent = cpu.micros();
    lost += holds.iter().filter(|held| !L::is_held(held)).count();
    for held in holds {
        let _may_fail = locker.release(held).await;
    }
    let mut figures = Figures::default();
    figures.put("client CPU ms", spent / 1000.0);
    figures.put("locks lost", lost as f64);
    if !L::RENEWS {
        figures.put("renewals", sent as f64);
    }
    figures
}
