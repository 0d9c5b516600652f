//! The handler of `SIGBUS`.
//!
//! It deals with faults in our mappings, and leaves all others to the handler that was there
//! before. It only reads atomics, sets one, and makes a system call, which is all that a handler
//! may do.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Once, OnceLock};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use super::ranges;

type Action = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
type PlainAction = extern "C" fn(c_int);

/// The handler that was there before. It is set before ours is installed.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// Installs the handler, once in the life of the process. It is there when this returns.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let mut previous = default_action();
        // SAFETY: the pointers are null or lead to actions of this frame, and `handle` does only
        // what a handler may.
        unsafe {
            libc::sigaction(libc::SIGBUS, null_mut(), &raw mut previous);
            PREVIOUS.get_or_init(|| previous);
            let mut action = default_action();
            action.sa_sigaction = handle as Action as usize;
            // The handler runs on the thread's stack for signals, as an overflow of its own stack
            // may be reported by this signal too.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            let installed = libc::sigaction(libc::SIGBUS, &raw const action, null_mut());
            debug_assert_eq!(installed, 0, "the signal may be handled");
        }
    });
}

extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system gives a handler with `SA_SIGINFO` what it knows of the signal.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    // A signal with a code not above 0 was sent by a process, and has no address.
    let done = code > 0 && put_zeros(address);
    if !done {
        pass_on(signal, info, context);
    }
}

/// Puts zeros in the place of the mapping that holds an address, and notes its file. False if there
/// is no such mapping, or no room.
fn put_zeros(address: usize) -> bool {
    let Some(range) = ranges::find(address) else {
        return false;
    };
    let protection = match range.writable {
        true => ProtFlags::READ | ProtFlags::WRITE,
        false => ProtFlags::READ,
    };
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    // All of the mapping is replaced at once: page by page, the process would reach its limit of
    // mappings.
    // SAFETY: the thread that was interrupted reads or writes in the range, so its owner has it
    // mapped. It holds bytes, for which zeros are a value, and a reader that sees them finds the
    // note.
    unsafe {
        range.note();
        let start = std::ptr::with_exposed_provenance_mut(range.start);
        mmap_anonymous(start, range.bytes, protection, flags).is_ok()
    }
}

/// Does what would have been done without our handler.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let previous = PREVIOUS.get();
    match previous.map_or(libc::SIG_DFL, |previous| previous.sa_sigaction) {
        // The instruction is tried again when the handler returns, and this time ends the process.
        // If the signal were ignored, it would be tried for ever.
        libc::SIG_DFL | libc::SIG_IGN => {
            let action = default_action();
            // SAFETY: the pointers are null or lead to an action of this frame.
            unsafe { libc::sigaction(signal, &raw const action, null_mut()) };
        }
        address => {
            let flags = previous.map_or(0, |previous| previous.sa_flags);
            // SAFETY: the installer of the handler said by the flag which of the two it is.
            unsafe {
                match flags & libc::SA_SIGINFO {
                    0 => std::mem::transmute::<usize, PlainAction>(address)(signal),
                    _ => std::mem::transmute::<usize, Action>(address)(signal, info, context),
                }
            }
        }
    }
}

/// The action `SIG_DFL`, with no flags, and no other signal held back.
fn default_action() -> libc::sigaction {
    // SAFETY: an action is integers and, on some systems, an optional function: zeros are a value.
    unsafe { std::mem::zeroed() }
}
