//! Background threads that link what indexes have in their tails.
//!
//! One pool serves all indexes of the process. Threads are started when there is work, run at the lowest priority and
//! end when there is none, so an idle process has none, and dropping an index ends them at the next insertion. They
//! never touch Python. A forked child starts with a pool of its own.

use super::index::Index;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Once, Weak};

/// Insertions between two looks at the queue.
pub const BURST: usize = 256;

#[derive(Default)]
struct Pool {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Weak<Index>>,
    threads: usize,
}

static POOL: AtomicPtr<Pool> = AtomicPtr::new(std::ptr::null_mut());
static FORKS: AtomicU32 = AtomicU32::new(0);

/// How many forks lie between the first process and this one: an index works only where it was made, because the
/// threads (and the locks they held) of its parent are not there.
pub fn generation() -> u32 {
    static HOOK: Once = Once::new();
    #[cfg(unix)]
    HOOK.call_once(|| {
        extern "C" fn in_child() {
            FORKS.fetch_add(1, Ordering::SeqCst);
            POOL.store(std::ptr::null_mut(), Ordering::SeqCst);
        }
        // SAFETY: the handler only stores to atomics, which is allowed in a child of a process with threads.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
    FORKS.load(Ordering::Relaxed)
}

fn pool() -> &'static Pool {
    let current = POOL.load(Ordering::Acquire);
    if !current.is_null() {
        // SAFETY: pools are leaked, so a published pointer stays valid.
        return unsafe { &*current };
    }
    let new = Box::into_raw(Box::<Pool>::default());
    match POOL.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: just leaked.
        Ok(_) => unsafe { &*new },
        Err(theirs) => {
            // SAFETY: `new` was never published; the other pool is leaked.
            unsafe {
                drop(Box::from_raw(new));
                &*theirs
            }
        }
    }
}

fn lock(pool: &Pool) -> std::sync::MutexGuard<'_, State> {
    pool.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Have the index's tail linked soon. The caller made sure that the index is not queued already.
pub fn request(index: &Arc<Index>) {
    let mut state = lock(pool());
    state.queue.push_back(Arc::downgrade(index));
    start_thread(&mut state);
}

fn start_thread(state: &mut State) {
    let most = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    if state.threads >= most {
        return;
    }
    let started = std::thread::Builder::new().name("kektor-link".into()).spawn(run);
    // Without a thread the tail stays exact and long, and `add` helps once it is too long.
    state.threads += usize::from(started.is_ok());
}

fn run() {
    lower_priority();
    loop {
        let index = {
            let mut state = lock(pool());
            let Some(next) = state.queue.pop_front() else {
                state.threads -= 1;
                return;
            };
            let Some(index) = next.upgrade() else { continue };
            if index.queue_again() {
                // Others may join while this thread works on its burst.
                state.queue.push_back(next);
                start_thread(&mut state);
            }
            index
        };
        index.link_some(BURST);
        index.request_linking();
    }
}

fn lower_priority() {
    #[cfg(target_os = "linux")]
    // SAFETY: plain system call; 0 names the calling thread on Linux.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, 19);
    }
    #[cfg(target_os = "macos")]
    // SAFETY: plain library call about the calling thread.
    unsafe {
        libc::pthread_set_qos_class_self_np(libc::qos_class_t::QOS_CLASS_BACKGROUND, 0);
    }
}
