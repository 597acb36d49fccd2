//! A filter over slots, parsed once and then shared by every search under one View.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use roaring::RoaringBitmap;
use std::sync::{Arc, OnceLock};

/// An immutable set of slots in roaring form.
#[pyclass(module = "kektor_native", frozen)]
#[derive(Clone)]
pub struct Bitmap {
    pub inner: Arc<RoaringBitmap>,
    words: Arc<OnceLock<Box<[u64]>>>,
}

impl Bitmap {
    /// The same set as one bit a slot, made at the first use: loops that ask for single slots need it.
    pub fn words(&self) -> &[u64] {
        self.words.get_or_init(|| {
            let mut words = vec![0u64; self.inner.max().map_or(0, |max| max as usize / 64 + 1)];
            for slot in self.inner.iter() {
                words[slot as usize / 64] |= 1 << (slot % 64);
            }
            words.into()
        })
    }
}

#[pymethods]
impl Bitmap {
    /// Parse the portable roaring format, which `pyroaring.BitMap.serialize()` writes.
    #[new]
    fn new(data: &[u8]) -> PyResult<Self> {
        let inner = RoaringBitmap::deserialize_from(data)
            .map_err(|e| PyValueError::new_err(format!("not a serialized roaring bitmap: {e}")))?;
        Ok(Self { inner: Arc::new(inner), words: Arc::default() })
    }

    fn __len__(&self) -> usize {
        self.inner.len() as usize
    }

    fn __contains__(&self, slot: u32) -> bool {
        self.inner.contains(slot)
    }

    /// The same set in the portable roaring format.
    fn serialize<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        to_bytes(py, &self.inner)
    }
}

/// Hand a bitmap to Python as bytes that `pyroaring.BitMap.deserialize` reads.
pub fn to_bytes<'py>(py: Python<'py>, bitmap: &RoaringBitmap) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, bitmap.serialized_size(), |buffer| {
        bitmap
            .serialize_into(buffer)
            .map_err(|e| PyValueError::new_err(format!("bitmap did not fit its own size: {e}")))
    })
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Bitmap>()
}
