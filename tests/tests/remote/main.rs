//! Sources in object stores and on web servers, read by the program from servers on this machine.

mod azure;
mod bounds;
mod faults;
mod s3;
mod sources;
mod support;
mod tls;
mod web;
