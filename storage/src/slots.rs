//! A slab of requests in flight: each has a number, which is reused after its removal.

/// A table in which the number of an entry does not change.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    places: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// Adds an entry and returns its number.
    pub(crate) fn insert(&mut self, thing: T) -> u64 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[place] = Some(thing);
        place as u64
    }

    /// The entry with this number, which [`Slots::insert`] returned and was not removed since.
    pub(crate) fn get(&self, number: u64) -> &T {
        self.places[number as usize].as_ref().expect("the place is in use")
    }

    /// As [`Slots::get`].
    pub(crate) fn get_mut(&mut self, number: u64) -> &mut T {
        self.places[number as usize].as_mut().expect("the place is in use")
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, number: u64) -> T {
        let thing = self.places[number as usize].take().expect("the place is in use");
        self.free.push(number as usize);
        thing
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_stable_and_reused() {
        let mut slots = Slots::default();
        let (a, b) = (slots.insert("a"), slots.insert("b"));
        assert_eq!((slots.len(), *slots.get(b)), (2, "b"));
        assert_eq!(slots.remove(a), "a");
        *slots.get_mut(b) = "B";
        assert_eq!(slots.insert("c"), a);
        assert_eq!((slots.len(), slots.remove(b), slots.remove(a), slots.len()), (2, "B", "c", 0));
    }
}
