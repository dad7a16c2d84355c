//! An output folder over HTTP/1.1 on the loopback interface, for reading only.
//!
//! Loopback is open to everyone on this machine, and to pages of the browser that name it: every path therefore begins with a
//! word that only who started the server is told, and a request under another host's name gets nothing.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

use super::Outcome;

/// What stands unescaped in the path of an address (RFC 3986).
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');
/// The longest head of a request.
const LONGEST_HEAD: u64 = 16 << 10;
/// How long a client may take for its request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Requests answered at once.
const AT_ONCE: usize = 16;

/// A server that listens.
pub(super) struct Server {
    listener: TcpListener,
    at: SocketAddr,
    word: String,
    page: String,
    folder: Dir,
}

/// `path` as part of an address.
pub(super) fn encoded(path: &Path) -> String {
    percent_encode(path.as_os_str().as_bytes(), IN_PATH).to_string()
}

impl Server {
    /// Listens on `port` of 127.0.0.1 for readers of `folder`, of which `page` is shown first.
    ///
    /// # Errors
    /// When the port is taken, or the folder cannot be read.
    pub(super) fn start(folder: &Path, page: &OsStr, port: u16) -> Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .with_context(|| format!("cannot listen on port {port} of 127.0.0.1 (--port 0 takes a free one)"))?;
        let mut random = [0; 16];
        File::open("/dev/urandom")
            .and_then(|mut source| source.read_exact(&mut random))
            .context("cannot read /dev/urandom")?;
        let word = random.iter().fold(String::new(), |mut word, byte| {
            let _ = write!(word, "{byte:02x}");
            word
        });
        Ok(Server {
            at: listener.local_addr()?,
            listener,
            word,
            page: encoded(Path::new(page)),
            folder: Dir::open_ambient_dir(folder, ambient_authority())
                .with_context(|| format!("cannot read {}", folder.display()))?,
        })
    }

    /// Where the page is.
    pub(super) fn address(&self) -> String {
        format!("http://{}/{}/{}", self.at, self.word, self.page)
    }

    /// Answers until the process ends.
    ///
    /// # Errors
    /// When nothing can be accepted any more.
    pub(super) fn serve(&self, quiet: bool) -> Result<Outcome> {
        if !quiet {
            eprintln!("tracemend: serving on this machine only, until Ctrl-C");
        }
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..AT_ONCE)
                .map(|_| {
                    scope.spawn(|| -> Result<()> {
                        loop {
                            let (client, _) = self.listener.accept().context("cannot accept connections")?;
                            // A client that breaks off has harmed nobody but itself.
                            let _ = self.answer(client);
                        }
                    })
                })
                .collect();
            let ended = workers.into_iter().filter_map(|worker| worker.join().ok());
            ended.collect::<Result<Vec<()>>>()
        })?;
        Ok(Outcome::Done)
    }

    fn answer(&self, mut client: TcpStream) -> io::Result<()> {
        client.set_read_timeout(Some(PATIENCE))?;
        client.set_write_timeout(Some(PATIENCE))?;
        let mut head = BufReader::new(client.try_clone()?.take(LONGEST_HEAD));
        let mut request = String::new();
        head.read_line(&mut request)?;
        let mut host = None;
        loop {
            let mut line = String::new();
            if head.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("host")
            {
                host = Some(value.trim().to_owned());
            }
        }
        let mut words = request.split_ascii_whitespace();
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let found = match method {
            "GET" | "HEAD" if host.as_deref().is_some_and(is_loopback) => self.find(target),
            _ => None,
        };
        let only_head = method == "HEAD";
        match found {
            Some(Found::File(mut file, path)) => {
                let length = file.metadata()?.len();
                respond(&mut client, "200 OK", media_type(&path), length)?;
                if !only_head {
                    io::copy(&mut (&mut file).take(length), &mut client)?;
                }
            }
            Some(Found::Folder(listing)) => {
                respond(&mut client, "200 OK", "text/html; charset=utf-8", listing.len() as u64)?;
                if !only_head {
                    client.write_all(listing.as_bytes())?;
                }
            }
            None => respond(&mut client, "404 Not Found", "text/plain", 0)?,
        }
        Ok(())
    }

    fn find(&self, target: &str) -> Option<Found> {
        let path = target.split(['?', '#']).next()?.strip_prefix('/')?;
        let path = path.strip_prefix(self.word.as_str())?.strip_prefix('/')?;
        let path = PathBuf::from(std::ffi::OsString::from_vec(percent_decode_str(path).collect()));
        if !path.components().all(|part| matches!(part, Component::Normal(_))) {
            return None;
        }
        let path = if path.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            path
        };
        // `Dir` follows no link that leads out of the folder.
        if self.folder.metadata(&path).ok()?.is_dir() {
            let is_closed = target.ends_with('/');
            return Some(Found::Folder(listing(
                &self.folder.open_dir(&path).ok()?,
                &path,
                is_closed,
            )?));
        }
        Some(Found::File(self.folder.open(&path).ok()?, path))
    }
}

enum Found {
    File(cap_std::fs::File, PathBuf),
    Folder(String),
}

fn is_loopback(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    matches!(name, "127.0.0.1" | "localhost")
}

fn media_type(path: &Path) -> &'static str {
    match path.extension().and_then(OsStr::to_str) {
        Some("html") => "text/html; charset=utf-8",
        Some("csv") => "text/csv; charset=utf-8",
        Some("json") => "application/json",
        Some("xlsx") => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        Some("log" | "txt" | "md" | "jsonl") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

fn respond(client: &mut TcpStream, status: &str, media_type: &str, length: u64) -> io::Result<()> {
    // Pages bring a stricter policy of their own; this one also keeps them out of frames.
    write!(
        client,
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\n\
         Content-Security-Policy: frame-ancestors 'none'\r\n\r\n"
    )
}

/// The names in a folder as a page of links. `is_closed` says whether its address ends with a slash.
fn listing(folder: &Dir, path: &Path, is_closed: bool) -> Option<String> {
    let mut names: Vec<std::ffi::OsString> = folder
        .entries()
        .ok()?
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    names.sort();
    let base = match path.file_name() {
        Some(name) if !is_closed => format!("{}/", encoded(Path::new(name))),
        _ => String::new(),
    };
    let mut page =
        "<!doctype html><meta charset=utf-8><meta name=color-scheme content=\"light dark\"><title>Files</title><ul>"
            .to_owned();
    for name in names {
        let address = encoded(Path::new(&name));
        let shown = crate::reports::html::shown(&name.to_string_lossy());
        let _ = write!(page, "<li><a href=\"./{base}{address}\">{shown}</a>");
    }
    Some(page + "</ul>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_names_are_answered() {
        assert!(is_loopback("127.0.0.1:8000") && is_loopback("localhost"));
        assert!(!is_loopback("evil.example:8000") && !is_loopback("127.0.0.1.evil.example"));
    }
}
