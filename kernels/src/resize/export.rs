//! Exports the passes of a resize as data.

use super::axis::{Axis, Kind};
use super::coefficients::OUTSIDE as NO_POSITION;
use super::program::{AxisProgram, OUTSIDE};
use super::{Resize, Resizer};
use crate::Region;

/// The passes of a resize.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passes {
    /// The needed region of the picture.
    pub(crate) needed: Region,
    pub(crate) across: AxisProgram,
    pub(crate) down: AxisProgram,
    pub(crate) down_first: bool,
}

impl Resizer {
    /// The passes of a resize, whose positions and weights are appended to `words`.
    pub(crate) fn export(&mut self, resize: &Resize, words: &mut Vec<i32>) -> Passes {
        self.plan(resize);
        let across = self.across.export(words);
        let down = self.down.export(words);
        Passes { needed: self.needed, across, down, down_first: self.down_first }
    }
}

impl Axis {
    fn export(&self, words: &mut Vec<i32>) -> AxisProgram {
        let first = words.len();
        match self.kind {
            Kind::Shift => AxisProgram::Shift,
            Kind::Pick => {
                let word = |pick: &u32| if *pick == NO_POSITION { OUTSIDE } else { *pick as i32 };
                words.extend(self.picks.iter().map(word));
                AxisProgram::Pick { words: first }
            }
            Kind::Weigh => {
                let (wanted, taps) = (self.wanted, self.coefficients.taps_max);
                words.extend(self.coefficients.runs.iter().map(|run| run.0 as i32));
                words.extend(self.coefficients.runs.iter().map(|run| run.1 as i32));
                let weights = words.len();
                words.resize(weights + wanted * taps, 0);
                for output in 0..wanted {
                    let (_, run) = self.coefficients.run(output);
                    let out = words[weights + output..].iter_mut().step_by(wanted);
                    out.zip(run).for_each(|(out, weight)| *out = *weight);
                }
                AxisProgram::Weigh { words: first, taps: taps as u32 }
            }
        }
    }
}
