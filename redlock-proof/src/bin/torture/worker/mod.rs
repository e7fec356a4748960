//! A worker: a process with clients of its own, in which several want the lock.

mod client;
mod plan;
mod section;
mod tasks;
mod threads;

use crate::clock;
use crate::record::{Flavour, Recorder, What};
use crate::server::end_with_parent;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use redlock_async_std::AsyncIo;
use redlock_blocking::Instant;
use redlock_proof::simulate::Dice;
use redlock_tokio::Tokio;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::{process, thread};

/// Who wants the lock in one process.
const ACTORS: u32 = 2;
/// A call that takes so much longer than it may has got stuck. Far above what a process that is stopped now and then needs.
const STUCK: Duration = Duration::from_secs(20);

/// Files that the process itself and its runtime have, when no client is left: the standard streams, the record, and what
/// a runtime waits on.
const MOST_FILES: usize = 16;
/// Threads, likewise: its main one, the one that waits for orders, and a runtime's.
const MOST_THREADS: usize = 8;

/// What a worker is told.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pub(crate) process: u32,
    pub(crate) flavour: Flavour,
    pub(crate) record: PathBuf,
    pub(crate) seed: u64,
    /// Whether nodes forget, so that locks vanish before their time.
    pub(crate) is_forgetful: bool,
    pub(crate) nodes: Vec<String>,
}

/// What the actors of a worker share.
#[derive(Debug)]
struct Work {
    orders: Orders,
    recorder: Recorder,
    is_over: AtomicBool,
}

impl Orders {
    /// As words of a command line.
    pub(crate) fn words(&self) -> Vec<String> {
        vec![
            self.process.to_string(),
            self.flavour.name().to_owned(),
            self.record.to_string_lossy().into_owned(),
            self.seed.to_string(),
            self.is_forgetful.to_string(),
            self.nodes.join(","),
        ]
    }

    /// The reverse.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Option<Self> {
        Some(Self {
            process: words.next()?.parse().ok()?,
            flavour: Flavour::parse(&words.next()?)?,
            record: words.next()?.into(),
            seed: words.next()?.parse().ok()?,
            is_forgetful: words.next()?.parse().ok()?,
            nodes: words.next()?.split(',').map(str::to_owned).collect(),
        })
    }
}

/// Works until its standard input ends.
///
/// # Errors
///
/// Those of the system.
pub(crate) fn work(orders: Orders) -> io::Result<()> {
    end_with_parent();
    let recorder = Recorder::open(&orders.record)?;
    let work = Arc::new(Work { orders, recorder, is_over: AtomicBool::new(false) });
    let listening = Arc::clone(&work);
    thread::Builder::new().name("orders".into()).spawn(move || {
        let _ended = io::stdin().read(&mut [0]);
        listening.is_over.store(true, Ordering::SeqCst);
    })?;
    match work.orders.flavour {
        Flavour::AsyncStd => smol::block_on(async {
            let actors: Vec<_> =
                work.actors().map(|actor| smol::spawn(tasks::act::<AsyncIo>(actor))).collect();
            for actor in actors {
                actor.await;
            }
        }),
        Flavour::Blocking => {
            let actors: Vec<_> = work.actors().map(|actor| thread::spawn(|| threads::act(actor))).collect();
            for actor in actors {
                if let Err(panic) = actor.join() {
                    std::panic::resume_unwind(panic);
                }
            }
        }
        Flavour::TokioCurrent => on_tokio(&work, tokio::runtime::Builder::new_current_thread())?,
        Flavour::TokioMulti => {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(2);
            on_tokio(&work, builder)?;
        }
    }
    work.look_for_leaks();
    Ok(())
}

fn on_tokio(work: &Arc<Work>, mut builder: tokio::runtime::Builder) -> io::Result<()> {
    builder.enable_all().build()?.block_on(async {
        let actors: Vec<_> = work.actors().map(|actor| tokio::spawn(tasks::act::<Tokio>(actor))).collect();
        for actor in actors {
            actor.await.map_err(io::Error::other)?;
        }
        Ok(())
    })
}

impl Work {
    /// Clients that were closed leave nothing behind, however many there were.
    fn look_for_leaks(&self) {
        let start = clock::now();
        for (folder, most) in [("/proc/self/fd", MOST_FILES), ("/proc/self/task", MOST_THREADS)] {
            let count = || std::fs::read_dir(folder).map_or(0, Iterator::count);
            while count() > most {
                if clock::now().saturating_duration_since(start) > STUCK {
                    self.broken(format!(
                        "{} entries are left in {folder}, and should be {most} at most",
                        count()
                    ));
                    break;
                }
                thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// Tells of something that must not be.
    fn broken(&self, text: String) {
        self.recorder.write(clock::now(), What::Broken { process: self.orders.process, text });
    }

    fn actors(self: &Arc<Self>) -> impl Iterator<Item = Actor> {
        let mut dice = Dice::seeded(self.orders.seed);
        let work = Arc::clone(self);
        (0..ACTORS).map(move |number| Actor {
            work: Arc::clone(&work),
            number,
            grants: 0,
            dice: Dice::seeded(dice.seed()),
        })
    }
}

/// One who wants the lock, again and again.
#[derive(Debug)]
struct Actor {
    work: Arc<Work>,
    number: u32,
    grants: u32,
    dice: Dice<'static>,
}

impl Actor {
    fn is_over(&self) -> bool {
        self.work.is_over.load(Ordering::SeqCst)
    }

    fn broken(&self, text: String) {
        self.work.broken(text);
    }

    /// Looks whether a call that may take so long came back in time.
    fn in_time(&self, what: &str, start: Instant, most: Duration) {
        let took = clock::now().saturating_duration_since(start);
        if took > most.saturating_add(STUCK) {
            self.broken(format!("{what} took {took:?}, and may take {most:?}"));
        }
    }

    /// It has ended in an orderly way.
    fn done(&self) {
        let (process, actor, grants) = (self.work.orders.process, self.number, self.grants);
        self.work.recorder.write(clock::now(), What::Done { process, actor, grants });
    }
}

/// The exit code of a worker that could not work.
pub(crate) fn run(orders: Option<Orders>) -> process::ExitCode {
    match orders.map(work) {
        Some(Ok(())) => process::ExitCode::SUCCESS,
        Some(Err(_)) | None => process::ExitCode::from(70),
    }
}
