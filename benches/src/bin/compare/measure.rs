//! Figures of one run.

use core::time::Duration;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Named figures, in the order in which they were put.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures(pub(crate) Vec<(String, f64)>);

impl Figures {
    pub(crate) fn put(&mut self, name: &str, value: f64) {
        self.0.push((name.to_owned(), value));
    }

    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(of, _)| of == name).map(|(_, value)| *value)
    }
}

/// The processor time of this process since then.
pub(crate) struct Cpu(f64);

impl Cpu {
    pub(crate) fn start() -> Self {
        Self(Self::now())
    }

    pub(crate) fn micros(&self) -> f64 {
        Self::now() - self.0
    }

    fn now() -> f64 {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
    }
}

/// Nanoseconds of a clock that is the same in all processes.
pub(crate) fn shared_now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}

/// Of sorted samples, in microseconds.
pub(crate) fn percentile(sorted: &[Duration], part: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let at = ((last as f64 * part).round() as usize).min(last);
    sorted.get(at).map_or(f64::NAN, |sample| sample.as_secs_f64() * 1e6)
}

/// The most memory that this process had, in MiB.
pub(crate) fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok());
    kib.map_or(f64::NAN, |kib| kib / 1024.0)
}

/// The middle one, the least and the most.
pub(crate) fn median(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    let median = match values.as_slice() {
        [] => f64::NAN,
        values if values.len() % 2 == 1 => values[middle],
        values => f64::midpoint(values[middle - 1], values[middle]),
    };
    (median, values.first().copied().unwrap_or(f64::NAN), values.last().copied().unwrap_or(f64::NAN))
}
