//! The scheduler from outside: one case at a time, random scenarios, closed forms, the guard.

mod closed_forms;
mod driver;
mod examples;
mod forms;
mod interference;
mod never_slower;
mod properties;
mod ranks;
mod reuse;
mod selection;
