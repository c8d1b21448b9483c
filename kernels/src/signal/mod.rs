//! Signals: measurements from NumPy files, and features of power lines.

mod decode;
#[cfg(test)]
mod golden_tests;
mod power;
#[cfg(test)]
mod tests;

pub(crate) use decode::SignalDecoder;
pub(crate) use power::Power;
