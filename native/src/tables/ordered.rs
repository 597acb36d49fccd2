//! An ordered index from byte keys to slots: equality and ranges whose cost grows with the answer.
//!
//! Keys are compared as bytes; the caller encodes numbers, times and strings so that byte order is value order.

use crate::bitmap::to_bytes;
use parking_lot::RwLock;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::ops::Bound as Edge;

/// Most keys of a unique-valued field hold one slot; a bitmap for each would cost ten times the memory.
enum Slots {
    One(u32),
    Many(Box<RoaringBitmap>),
}

#[pyclass(module = "kektor_native", frozen)]
#[derive(Default)]
pub struct OrderedIndex {
    keys: RwLock<BTreeMap<Box<[u8]>, Slots>>,
}

fn edge(key: Option<&[u8]>, inclusive: bool) -> Edge<&[u8]> {
    match key {
        None => Edge::Unbounded,
        Some(key) if inclusive => Edge::Included(key),
        Some(key) => Edge::Excluded(key),
    }
}

impl Slots {
    fn union_into(&self, out: &mut RoaringBitmap) {
        match self {
            Slots::One(slot) => {
                out.insert(*slot);
            }
            Slots::Many(set) => *out |= set.as_ref(),
        }
    }
}

impl OrderedIndex {
    fn put(&self, key: &[u8], slot: u32) -> bool {
        let mut keys = self.keys.write();
        match keys.get_mut(key) {
            None => {
                keys.insert(key.into(), Slots::One(slot));
                true
            }
            Some(Slots::Many(set)) => set.insert(slot),
            Some(one) => {
                let Slots::One(first) = *one else { unreachable!() };
                if first == slot {
                    return false;
                }
                *one = Slots::Many(Box::new(RoaringBitmap::from_iter([first, slot])));
                true
            }
        }
    }

    fn take(&self, key: &[u8], slot: u32) -> bool {
        let mut keys = self.keys.write();
        let (removed, left) = match keys.get_mut(key) {
            None => return false,
            Some(Slots::One(one)) => (*one == slot, u64::from(*one != slot)),
            Some(Slots::Many(set)) => (set.remove(slot), set.len()),
        };
        if left == 0 {
            keys.remove(key);
        }
        removed
    }

    fn union(&self, low: Edge<&[u8]>, high: Edge<&[u8]>) -> RoaringBitmap {
        let mut out = RoaringBitmap::new();
        if !empty_range(&low, &high) {
            let keys = self.keys.read();
            for slots in keys.range::<[u8], _>((low, high)).map(|(_, slots)| slots) {
                slots.union_into(&mut out);
            }
        }
        out
    }
}

/// `BTreeMap::range` panics on these instead of answering with nothing.
fn empty_range(low: &Edge<&[u8]>, high: &Edge<&[u8]>) -> bool {
    match (low, high) {
        (Edge::Included(a), Edge::Included(b)) => a > b,
        (Edge::Unbounded, _) | (_, Edge::Unbounded) => false,
        (Edge::Included(a) | Edge::Excluded(a), Edge::Included(b) | Edge::Excluded(b)) => a >= b,
    }
}

#[pymethods]
impl OrderedIndex {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Number of distinct keys.
    fn __len__(&self) -> usize {
        self.keys.read().len()
    }

    /// Add a slot under a key; false when it was there already.
    fn insert(&self, key: &[u8], slot: u32) -> bool {
        self.put(key, slot)
    }

    /// Remove a slot from a key; false when it was not there.
    fn remove(&self, key: &[u8], slot: u32) -> bool {
        self.take(key, slot)
    }

    /// The slots of one key, as a serialized roaring bitmap.
    fn get<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let mut out = RoaringBitmap::new();
        if let Some(slots) = self.keys.read().get(key) {
            slots.union_into(&mut out);
        }
        to_bytes(py, &out)
    }

    /// The slots of every key within the bounds (None is open), as a serialized roaring bitmap.
    #[pyo3(signature = (low=None, high=None, *, low_inclusive=true, high_inclusive=true))]
    fn range<'py>(
        &self,
        py: Python<'py>,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
        low_inclusive: bool,
        high_inclusive: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (low, high) = (edge(low, low_inclusive), edge(high, high_inclusive));
        let out = py.detach(|| self.union(low, high));
        to_bytes(py, &out)
    }

    /// The smallest key at or above `key` (above, when exclusive) and None past the last: the next boundary.
    #[pyo3(signature = (key, *, inclusive=true))]
    fn next_key<'py>(&self, py: Python<'py>, key: &[u8], inclusive: bool) -> Option<Bound<'py, PyBytes>> {
        let keys = self.keys.read();
        let found = keys.range::<[u8], _>((edge(Some(key), inclusive), Edge::Unbounded)).next();
        found.map(|(key, _)| PyBytes::new(py, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn equals_a_set_of_pairs(
            ops in proptest::collection::vec((any::<bool>(), 0u8..12, 0u32..20), 0..200),
            low in proptest::option::of(0u8..14), high in proptest::option::of(0u8..14),
            low_in: bool, high_in: bool,
        ) {
            let index = OrderedIndex::default();
            let mut model = BTreeSet::new();
            for (add, key, slot) in ops {
                if add {
                    prop_assert_eq!(index.put(&[key], slot), model.insert((key, slot)));
                } else {
                    prop_assert_eq!(index.take(&[key], slot), model.remove(&(key, slot)));
                }
            }
            let low_key = low.map(|k| [k]);
            let high_key = high.map(|k| [k]);
            let got = index.union(
                edge(low_key.as_ref().map(|k| &k[..]), low_in),
                edge(high_key.as_ref().map(|k| &k[..]), high_in),
            );
            let above = |k: u8| low.is_none_or(|l| k > l || (low_in && k == l));
            let below = |k: u8| high.is_none_or(|h| k < h || (high_in && k == h));
            let want: RoaringBitmap =
                model.iter().filter(|(k, _)| above(*k) && below(*k)).map(|(_, slot)| *slot).collect();
            prop_assert_eq!(got, want);
            let keys: BTreeSet<u8> = model.iter().map(|(k, _)| *k).collect();
            prop_assert_eq!(index.keys.read().len(), keys.len());
        }
    }
}
