//! Slots that are stored and not yet in the graph: every search scans them exactly.

use parking_lot::RwLock;
use std::collections::VecDeque;

#[derive(Default)]
struct Slots {
    waiting: VecDeque<u32>,
    /// Taken by a linker that has not finished yet.
    taken: Vec<u32>,
}

#[derive(Default)]
pub struct Tail {
    slots: RwLock<Slots>,
}

impl Tail {
    pub fn extend(&self, slots: &[u32]) {
        self.slots.write().waiting.extend(slots);
    }

    /// Slots that no linker has taken.
    pub fn waiting(&self) -> usize {
        self.slots.read().waiting.len()
    }

    /// Everything not linked yet, taken or not.
    pub fn len(&self) -> usize {
        let slots = self.slots.read();
        slots.waiting.len() + slots.taken.len()
    }

    /// Take the oldest slot to link it; `finish` must follow.
    pub fn take(&self) -> Option<u32> {
        let mut slots = self.slots.write();
        let slot = slots.waiting.pop_front()?;
        slots.taken.push(slot);
        Some(slot)
    }

    /// A taken slot can now be reached through the graph, or needs no search any more.
    pub fn finish(&self, slot: u32) {
        let mut slots = self.slots.write();
        if let Some(at) = slots.taken.iter().position(|s| *s == slot) {
            slots.taken.swap_remove(at);
        }
    }

    /// Everything not linked at this moment, oldest first.
    pub fn snapshot(&self, out: &mut Vec<u32>) {
        let slots = self.slots.read();
        out.clear();
        out.extend_from_slice(&slots.taken);
        let (front, back) = slots.waiting.as_slices();
        out.extend_from_slice(front);
        out.extend_from_slice(back);
    }
}
