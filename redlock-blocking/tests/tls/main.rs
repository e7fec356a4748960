//! `rediss://`, with real servers.

mod cases;
