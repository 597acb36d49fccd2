//! What scoring and liveness need of each document, by slot.

/// Length of each live document and the set of postings it is in.
#[derive(Default)]
pub struct Documents {
    pages: Vec<Option<Box<Page>>>,
}

const PAGE: usize = 4096;

/// Lengths apart from owners: every posting that is scored needs the one, only a result the other.
struct Page {
    lengths: [f32; PAGE],
    owners: [u32; PAGE],
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Entry {
    pub length: f32,
    /// Number of the set of postings that holds the document; 0 for none.
    pub owner: u32,
}

impl Documents {
    fn page(&self, slot: u32) -> Option<&Page> {
        self.pages.get(slot as usize / PAGE)?.as_deref()
    }

    #[inline]
    pub fn length(&self, slot: u32) -> f32 {
        self.page(slot).map_or(0.0, |page| page.lengths[slot as usize % PAGE])
    }

    pub fn get(&self, slot: u32) -> Entry {
        let at = slot as usize % PAGE;
        self.page(slot)
            .map_or_else(Entry::default, |page| Entry { length: page.lengths[at], owner: page.owners[at] })
    }

    pub fn set(&mut self, slot: u32, entry: Entry) {
        let page = slot as usize / PAGE;
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let empty = || Box::new(Page { lengths: [0.0; PAGE], owners: [0; PAGE] });
        let page = self.pages[page].get_or_insert_with(empty);
        page.lengths[slot as usize % PAGE] = entry.length;
        page.owners[slot as usize % PAGE] = entry.owner;
    }
}
