//! Tokens come from the operating system.

use redlock_core::handoff::Entropy;

/// The operating system's generator.
#[derive(Debug)]
pub(crate) struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn draw(&self) -> Result<[u8; 16], String> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
        Ok(bytes)
    }
}
