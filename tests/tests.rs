//! tracemend as a user meets it: these tests drive the built binary.

mod analyze;
mod authoring;
mod browser;
mod capture;
mod clusters;
mod compare;
mod damage;
mod doctor;
mod drop_in;
mod embedded;
mod html;
mod interpret;
mod jobs;
mod names;
mod plugins;
mod ranks;
mod record;
mod repair;
mod sandbox;
mod scan;
mod shards;
mod tracelens;
mod util;
mod webdriver;
