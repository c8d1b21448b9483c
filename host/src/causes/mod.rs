//! Why devices are lost and why their batches fail, as values; `Display` gives the words.
//!
//! Text that comes from elsewhere, such as the message of a device or of the operating system, is
//! in fields named `detail`. In reading order: [`Loss`] (of a device), [`ProcessEnd`] (of its
//! process), [`BatchFault`] (of a batch), [`SystemError`] (an error of the operating system).

mod batch;
mod loss;
mod process;

pub use batch::{BatchFault, LabelError, SlotRefusal};
pub use loss::{Breach, Loss, LossCause};
pub use meetpoint_storage::SystemError;
pub use process::{Exit, ProcessEnd};
