//! Whether two were ever in the critical section at once, judged afterwards from what everyone wrote down, on one clock.

use redlock_core::Instant;

/// One time in the critical section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Visit {
    /// Whose.
    pub(crate) contender: usize,
    /// The lock was held then, and from then on.
    pub(crate) enter: Instant,
    /// The last moment at which it was seen to be held.
    pub(crate) leave: Instant,
    /// Whether somebody else was counted inside on entering.
    pub(crate) is_crowded: bool,
    /// Whether the lock's deadline passed inside, so that it left late: who was counted may have had no lock any more.
    pub(crate) has_lapsed: bool,
}

/// Two who held the lock at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overlap {
    /// Who was there first.
    pub(crate) first: Visit,
    /// Who came while the first was still there, or was counted to be.
    pub(crate) second: Visit,
}

/// All overlaps, by time, each visit at most once as the second. Two witnesses are heard: the intervals, and the count of
/// who was inside, which does not depend on any clock.
pub(crate) fn overlaps(visits: &[Visit]) -> Vec<Overlap> {
    let mut visits = visits.to_vec();
    visits.sort_by_key(|visit| (visit.enter, visit.leave));
    let mut found = Vec::new();
    // Of all before, the one that stayed longest.
    let mut longest: Option<Visit> = None;
    let mut last_lapsed: Option<Visit> = None;
    for visit in visits {
        if let Some(first) = longest {
            // At one and the same instant the first may have left before the second came.
            let is_inside = first.leave > visit.enter && first.contender != visit.contender;
            // Somebody who overslept its deadline was counted without holding anything.
            let is_explained = last_lapsed.is_some();
            if is_inside || (visit.is_crowded && !is_explained) {
                found.push(Overlap { first, second: visit });
            }
        }
        if longest.is_none_or(|first| first.leave < visit.leave) {
            longest = Some(visit);
        }
        // The next one who enters without a crowd proves that it is out.
        if visit.has_lapsed {
            last_lapsed = Some(visit);
        } else if !visit.is_crowded {
            last_lapsed = None;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(contender: usize, enter: u64, leave: u64) -> Visit {
        Visit {
            contender,
            enter: Instant::from_millis(enter),
            leave: Instant::from_millis(leave),
            is_crowded: false,
            has_lapsed: false,
        }
    }

    #[test]
    fn one_after_the_other_is_fine() {
        assert_eq!(overlaps(&[]), []);
        assert_eq!(overlaps(&[visit(0, 20, 30), visit(1, 10, 20), visit(0, 0, 10), visit(2, 31, 31)]), []);
    }

    #[test]
    fn two_at_once_are_found_whatever_the_order() {
        let (long, short) = (visit(0, 0, 100), visit(1, 40, 50));
        assert_eq!(overlaps(&[short, long]), [Overlap { first: long, second: short }]);
        assert_eq!(overlaps(&[long, short]), [Overlap { first: long, second: short }]);
    }

    #[test]
    fn a_long_one_is_held_against_all_that_come_within() {
        let visits = [visit(0, 0, 100), visit(1, 10, 20), visit(2, 30, 40), visit(1, 101, 110)];
        let seconds: Vec<usize> = overlaps(&visits).iter().map(|overlap| overlap.second.contender).collect();
        assert_eq!(seconds, [1, 2]);
    }

    #[test]
    fn the_count_is_heard_where_the_clock_shows_nothing() {
        let crowded = Visit { is_crowded: true, ..visit(1, 20, 30) };
        assert_eq!(overlaps(&[visit(0, 0, 10), crowded]).len(), 1);
    }

    #[test]
    fn who_overslept_its_deadline_held_nothing_when_it_was_counted() {
        let late = Visit { has_lapsed: true, ..visit(0, 0, 10) };
        let crowded = Visit { is_crowded: true, ..visit(1, 20, 30) };
        assert_eq!(overlaps(&[late, crowded]), []);
        let later = Visit { is_crowded: true, ..visit(1, 60, 70) };
        assert_eq!(overlaps(&[late, crowded, visit(2, 40, 50), later]).len(), 1, "it is out by then");
        assert_eq!(overlaps(&[late, visit(1, 5, 30)]).len(), 1, "the intervals count all the same");
    }
}
