//! `tracemend show`

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;

use super::serve::Server;
use super::text::printable;
use super::{Global, Outcome};

#[derive(Debug, Args)]
pub struct Show {
    /// The output folder of `analyze`, or a page
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Serve the folder on this port of the loopback interface until Ctrl-C, instead of opening the file; 0 takes a free one
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Say the address and open nothing
    #[arg(long)]
    no_browser: bool,
}

impl Show {
    pub(super) fn run(self, global: &Global) -> Result<Outcome> {
        let page = page(&self.output)?;
        let server = match self.port {
            Some(port) => {
                let folder = page.parent().unwrap_or(Path::new("/"));
                let name = page.file_name().unwrap_or_default();
                Some(Server::start(folder, name, port)?)
            }
            None => None,
        };
        let address = match &server {
            Some(server) => server.address(),
            None => file_address(&page),
        };
        // Said before the browser starts, which may print what it likes.
        writeln!(io::stdout().lock(), "{address}")?;
        let opened = !self.no_browser && open(&address);
        if server.is_none() && !opened && !self.no_browser && !global.quiet {
            eprintln!(
                "tracemend: no browser to open here; --port serves the page, for one on another machine through ssh -L"
            );
        }
        match server {
            Some(server) => server.serve(global.quiet),
            None => Ok(Outcome::Done),
        }
    }
}

/// The page, absolute, links resolved.
fn page(output: &Path) -> Result<PathBuf> {
    let shown = printable(&output.to_string_lossy());
    let output = output.canonicalize().with_context(|| format!("nothing at {shown}"))?;
    let page = if output.is_dir() {
        output.join("index.html")
    } else {
        output
    };
    if !page.is_file() {
        bail!("no index.html in {shown}: `tracemend analyze RUN -o {shown}` writes one");
    }
    Ok(page)
}

fn file_address(page: &Path) -> String {
    format!("file://{}", super::serve::encoded(page))
}

/// Opens `address` in the user's browser, if this is a desktop.
fn open(address: &str) -> bool {
    let desktop = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|set| !set.is_empty()));
    let program = match cfg!(target_os = "macos") {
        true => "open",
        false if desktop => "xdg-open",
        false => return false,
    };
    let mut command = Command::new(program);
    command
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
