//! Numbered places for requests in flight; a number is used again once its place is free.

/// A table whose numbers stay put.
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
    /// Keeps a thing and returns its number.
    pub(crate) fn insert(&mut self, thing: T) -> u64 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[place] = Some(thing);
        place as u64
    }

    /// The thing with a number that [`Slots::insert`] gave and [`Slots::remove`] has not had.
    pub(crate) fn get(&self, number: u64) -> &T {
        self.places[number as usize].as_ref().expect("the place is in use")
    }

    /// As [`Slots::get`].
    pub(crate) fn get_mut(&mut self, number: u64) -> &mut T {
        self.places[number as usize].as_mut().expect("the place is in use")
    }

    /// Frees the place of a thing.
    pub(crate) fn remove(&mut self, number: u64) -> T {
        let thing = self.places[number as usize].take().expect("the place is in use");
        self.free.push(number as usize);
        thing
    }

    /// Things in it.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_put_and_are_used_again() {
        let mut slots = Slots::default();
        let (a, b) = (slots.insert("a"), slots.insert("b"));
        assert_eq!((slots.len(), *slots.get(b)), (2, "b"));
        assert_eq!(slots.remove(a), "a");
        *slots.get_mut(b) = "B";
        assert_eq!(slots.insert("c"), a);
        assert_eq!((slots.len(), slots.remove(b), slots.remove(a), slots.len()), (2, "B", "c", 0));
    }
}
