//! Uses the engine where there is no std.
#![no_std]

extern crate alloc;

use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;
use redlock_core::{AcquireRequest, Client, Config, Instant};

/// Never run: the library is only linked.
struct NoMemory;

// SAFETY: it hands out no memory at all, which an allocator may do.
unsafe impl GlobalAlloc for NoMemory {
    unsafe fn alloc(&self, _layout: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }

    unsafe fn dealloc(&self, _pointer: *mut u8, _layout: Layout) {}
}

#[global_allocator]
static ALLOCATOR: NoMemory = NoMemory;

#[panic_handler]
fn panic(_info: &PanicInfo<'_>) -> ! {
    loop {}
}

/// Pulls the whole engine in.
#[unsafe(no_mangle)]
pub extern "C" fn acquire() -> bool {
    let Ok(config) = Config::builder().nodes(["10.0.0.1", "10.0.0.2", "10.0.0.3"]).build() else { return false };
    let mut client = Client::new(config, 7, Instant::ZERO);
    client.acquire(AcquireRequest::new("orders/42", [0; 16]), Instant::ZERO);
    client.poll_output().is_some()
}
