//! Whole clients against simulated nodes (`simulate`), with the bytes in place of the seed.

use crate::simulate::{Dice, run};

/// Plays the scenario that the bytes decide; no property may be violated.
///
/// # Errors
///
/// The violations, and the timeline that led to them.
pub fn scenario(bytes: &[u8]) -> Result<(), String> {
    if run(Dice::bytes(bytes), None, false).violations.is_empty() {
        return Ok(());
    }
    let outcome = run(Dice::bytes(bytes), None, true);
    Err(format!("{:#?}\n{}", outcome.violations, outcome.timeline))
}
