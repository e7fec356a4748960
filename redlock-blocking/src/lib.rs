//! Distributed locks for threads.
