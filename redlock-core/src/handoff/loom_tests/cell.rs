//! The state that the handles of one lock share.

use super::super::after::After;
use super::super::cell::{Ended, LockCell};
use super::*;
use crate::event::LostReason;
use crate::ids::LockId;
use alloc::vec::Vec;
use loom::sync::atomic::AtomicBool;

fn cell() -> Arc<LockCell> {
    Arc::new(LockCell::new(LockId(1), Vec::new(), Instant::from_nanos(100), None))
}

/// R13: once a thread has seen the end, nobody moves the deadline, and nobody sees it held.
#[test]
fn a_deadline_passes_against_an_extension() {
    model("a deadline passes against an extension", || {
        let (cell, ended) = (cell(), Arc::new(AtomicBool::new(false)));
        let (moved, seen) = (Arc::clone(&cell), Arc::clone(&ended));
        let extension = spawn(move || {
            let was_seen = seen.load(Ordering::Acquire);
            let is_moved = moved.move_deadline(Instant::from_nanos(200));
            assert!(!(was_seen && is_moved), "an ended lock was moved");
            is_moved
        });
        let is_held = cell.is_held(Instant::from_nanos(150));
        if !is_held {
            ended.store(true, Ordering::Release);
            assert!(!cell.is_held(Instant::ZERO));
        }
        // Who finds it ended and who moves it are not both right.
        assert_eq!(extension.join().unwrap(), is_held);
        assert_eq!(cell.is_held(Instant::from_nanos(150)), is_held);
    });
}

/// Two who end it: told once, by the first.
#[test]
fn an_end_against_another() {
    model("an end against another", || {
        let (cell, told) = (cell(), Arc::new(Unmodelled::new(0)));
        let telling = Arc::clone(&told);
        let mut after = After::default();
        cell.on_lost(Box::new(move |_| _ = telling.fetch_add(1, Ordering::Relaxed)), &mut after);
        after.run(&Inline);
        let end = |cell: &LockCell, ended| {
            let mut after = After::default();
            cell.end(ended, &mut after);
            after.run(&Inline);
        };
        let other = Arc::clone(&cell);
        let loss = spawn(move || end(&other, Ended::Lost(LostReason::TokenGone)));
        end(&cell, Ended::Released);
        loss.join().unwrap();
        let is_lost = matches!(cell.ended(), Some(Ended::Lost(_)));
        assert_eq!(told.load(Ordering::Relaxed), u64::from(is_lost));
        assert!(!cell.is_held(Instant::ZERO));
    });
}

/// The last of two handles knows that it is the last.
#[test]
fn a_handle_dropped_against_another() {
    model("a handle dropped against another", || {
        let cell = cell();
        cell.share();
        let other = Arc::clone(&cell);
        let dropped = spawn(move || other.unshare());
        let is_last = cell.unshare();
        assert_ne!(dropped.join().unwrap(), is_last);
    });
}
