//! Captures, against a stand-in for dynolog, its dyno, and jobs that register as libkineto does.

mod daemon;
mod hook;
mod hosts;
mod interrupt;
mod peers;
mod refusals;
mod registration;
mod run;
mod trigger;
mod wait;
mod world;
