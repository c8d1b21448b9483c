//! A tournament tree: finds the smallest of many keys in O(1), and changes a key in O(log n).

/// A key that loses against any other.
pub(crate) const NONE: u64 = u64::MAX;

/// Keys of players 0..n; ties go to the lower number.
#[derive(Debug, Clone)]
pub(crate) struct Tournament {
    keys: Vec<u64>,
    /// Winner of each match: node 1 is the final, the children of `i` are `2i` and `2i+1`.
    winners: Vec<u16>,
    /// Players, rounded up to a power of two.
    width: usize,
}

impl Tournament {
    /// A tree whose keys are all [`NONE`].
    pub(crate) fn new(players: usize) -> Self {
        let width = players.next_power_of_two().max(2);
        let mut made = Self { keys: vec![NONE; players.max(1)], winners: vec![0; width], width };
        for node in (1..width).rev() {
            made.play(node);
        }
        made
    }

    /// Changes a key.
    pub(crate) fn set(&mut self, player: u16, key: u64) {
        let at = usize::from(player);
        if self.keys[at] == key {
            return;
        }
        self.keys[at] = key;
        let mut node = (self.width + at) / 2;
        while node >= 1 {
            self.play(node);
            node /= 2;
        }
    }

    /// The player with the smallest key, and that key; `None` if every key is [`NONE`].
    pub(crate) fn first(&self) -> Option<(u16, u64)> {
        let winner = self.winners[1];
        let key = self.keys[usize::from(winner)];
        (key != NONE).then_some((winner, key))
    }

    fn play(&mut self, node: usize) {
        let [left, right] = [2 * node, 2 * node + 1].map(|child| {
            if child < self.width { usize::from(self.winners[child]) } else { child - self.width }
        });
        let key = |player: usize| self.keys.get(player).copied().unwrap_or(NONE);
        let winner = if key(right) < key(left) { right } else { left };
        self.winners[node] = u16::try_from(winner).expect("players are numbered by a u16");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_first_is_the_least_key(
            players in 1_usize..40,
            changes in proptest::collection::vec((any::<u16>(), 0_u64..9), 1..200),
        ) {
            let mut tournament = Tournament::new(players);
            let mut keys = vec![NONE; players];
            for (player, key) in changes {
                let player = player % players as u16;
                let key = if key == 8 { NONE } else { key };
                tournament.set(player, key);
                keys[usize::from(player)] = key;
                let least = (0..players).min_by_key(|&at| (keys[at], at)).unwrap();
                let expected = (keys[least] != NONE).then_some((least as u16, keys[least]));
                prop_assert_eq!(tournament.first(), expected);
            }
        }
    }
}
