//! What the system knows about this process; zeros where there is no `/proc`.

use std::fs;

/// The memory that the process holds, in bytes.
pub fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() * 1_024
}

/// Processor time in seconds.
#[derive(Clone, Copy, Debug)]
pub struct CpuTime {
    /// In the program.
    pub user: f64,
    /// In the system on its behalf.
    pub system: f64,
}

/// The time that the process has spent.
pub fn cpu_time() -> CpuTime {
    /// The clock of `/proc` ticks a hundred times a second on Linux.
    const TICKS_PER_SECOND: f64 = 100.0;

    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name, in parentheses, may hold anything; the fields after it are numbers.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let seconds = |field: usize| {
        let ticks = fields.get(field).and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
        ticks / TICKS_PER_SECOND
    };
    CpuTime { user: seconds(11), system: seconds(12) }
}
