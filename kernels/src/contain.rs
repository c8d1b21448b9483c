//! Catches panics, so that a damaged file is an error rather than a crash.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, Location, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
    /// Source location of the last caught panic.
    static LOCATION: Cell<Option<String>> = const { Cell::new(None) };
}

/// A panic that was caught and neither printed nor reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainedPanic {
    /// Its message.
    pub message: String,
    /// File, line and column of the source; `None` if unknown.
    pub location: Option<String>,
}

/// Records the location of a panic that [`contain_panic`] is about to catch. Panic hooks that are
/// installed later must call it, and print nothing if it returns `true`.
pub fn note_contained(panic: &PanicHookInfo<'_>) -> bool {
    let is_contained = CONTAINED.get();
    if is_contained {
        LOCATION.set(panic.location().map(Location::to_string));
    }
    is_contained
}

/// Calls a function and catches its panic, which is then neither printed nor reported.
///
/// Panics outside of `call`, and those of other threads, go to the panic hook as before. After an
/// error, data that `call` was modifying is in an unspecified state.
pub fn contain_panic<T>(call: impl FnOnce() -> T) -> Result<T, ContainedPanic> {
    static HOOK: Once = Once::new();
    // The default hook would print the panic, and with `RUST_BACKTRACE` load all symbols of the
    // program.
    HOOK.call_once(|| {
        let shown = take_hook();
        set_hook(Box::new(move |panic| {
            if !note_contained(panic) {
                shown(panic);
            }
        }));
    });
    let outer = CONTAINED.replace(true);
    LOCATION.set(None);
    let result = catch_unwind(AssertUnwindSafe(call));
    CONTAINED.set(outer);
    result.map_err(|payload| ContainedPanic {
        message: message(&*payload),
        location: LOCATION.take(),
    })
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::{CONTAINED, contain_panic};

    #[test]
    fn a_result_passes_through() {
        assert_eq!(contain_panic(|| 7), Ok(7));
    }

    #[test]
    fn panics_are_contained_during_the_call_alone() {
        assert!(!CONTAINED.get());
        assert_eq!(contain_panic(|| CONTAINED.get()), Ok(true));
        assert!(contain_panic(|| -> u8 { panic!("over") }).is_err());
        assert!(!CONTAINED.get());
    }

    #[test]
    fn a_panic_becomes_its_message_and_location() {
        let fixed: Result<(), _> = contain_panic(|| panic!("cut off"));
        let fixed = fixed.unwrap_err();
        assert_eq!(fixed.message, "cut off");
        assert!(fixed.location.unwrap().contains("contain.rs:"));
        let formatted: Result<(), _> = contain_panic(|| panic!("row {}", std::hint::black_box(3)));
        assert_eq!(formatted.unwrap_err().message, "row 3");
    }

    #[test]
    fn a_panic_inside_a_contained_call_is_contained_by_the_inner_one() {
        let outer = contain_panic(|| contain_panic(|| -> u8 { panic!("inner") }));
        assert_eq!(outer.unwrap().unwrap_err().message, "inner");
    }
}
