//! Contains panics of decoders of other crates, so that a damaged file is an error and no crash.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local!(static CONTAINED: Cell<bool> = const { Cell::new(false) });

/// Whether a panic of this thread is about to be caught by [`contain_panic`]: a panic hook that is
/// set later than its own must then be silent.
pub fn is_panic_contained() -> bool {
    CONTAINED.get()
}

/// Calls a decoder of another crate and catches its panic: the message of the panic, which has then
/// been neither printed nor reported.
///
/// Panics outside of `decode`, and those of other threads, go to the panic hook as before. What
/// `decode` was writing to is in an unknown state after an error.
pub fn contain_panic<T>(decode: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    // The hook would print the panic, and with `RUST_BACKTRACE` read all symbols of the program.
    HOOK.call_once(|| {
        let shown = take_hook();
        set_hook(Box::new(move |panic| {
            if !CONTAINED.get() {
                shown(panic);
            }
        }));
    });
    let outer = CONTAINED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(decode));
    CONTAINED.set(outer);
    result.map_err(|payload| message(&*payload))
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::{contain_panic, is_panic_contained};

    #[test]
    fn a_result_passes_through() {
        assert_eq!(contain_panic(|| 7), Ok(7));
    }

    #[test]
    fn panics_are_contained_during_the_call_alone() {
        assert!(!is_panic_contained());
        assert_eq!(contain_panic(is_panic_contained), Ok(true));
        assert!(contain_panic(|| -> u8 { panic!("over") }).is_err());
        assert!(!is_panic_contained());
    }

    #[test]
    fn a_panic_becomes_its_message() {
        let fixed: Result<(), _> = contain_panic(|| panic!("cut off"));
        assert_eq!(fixed, Err("cut off".to_owned()));
        let formatted: Result<(), _> = contain_panic(|| panic!("row {}", std::hint::black_box(3)));
        assert_eq!(formatted, Err("row 3".to_owned()));
    }

    #[test]
    fn a_panic_inside_a_contained_call_is_contained_by_the_inner_one() {
        let outer = contain_panic(|| contain_panic(|| -> u8 { panic!("inner") }));
        assert_eq!(outer, Ok(Err("inner".to_owned())));
    }
}
