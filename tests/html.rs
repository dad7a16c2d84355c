//! The page of a run at a glance, and `tracemend show`.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine;
use percent_encoding::percent_decode_str;
use sha2::{Digest, Sha256};

use crate::util::{Answer, fixture, python, tracemend, write_trace};

/// Analyzes `run` and gives the page.
pub fn page_of(run: &Path, output: &Path) -> String {
    let answer = tracemend()
        .args(["analyze", "-q", "-o"])
        .arg(output)
        .arg(run)
        .output()
        .unwrap();
    assert!(answer.code() < 2, "{}", answer.errors());
    fs::read_to_string(output.join("index.html")).unwrap()
}

/// A run that wants to be more than text: names with markup, quotes, what steers and what is no UTF-8, and very long ones.
pub fn hostile_run(folder: &Path) {
    let kernels: Vec<String> = [
        "<script>document.title='owned'</script>".to_owned(),
        "\"><img src=x onerror=alert(1)>".to_owned(),
        "=HYPERLINK(\"http://evil.example\",\"click\")".to_owned(),
        "rev\u{202e}esrever\u{2066}\u{200b}".to_owned(),
        "</style></title>&amp;&lt;{{ 7 * 7 }}".to_owned(),
        "k".repeat(4096),
    ]
    .iter()
    .enumerate()
    .map(|(number, name)| {
        let (name, start) = (serde_json::to_string(name).unwrap(), number * 10);
        format!(r#"{{"ph": "X", "cat": "kernel", "name": {name}, "ts": {start}, "dur": 5, "tid": 7, "args": {{"stream": 7}}}}"#)
    })
    .collect();
    let trace = |rank: usize| {
        format!(
            r#"{{"schemaVersion": 1, "distributedInfo": {{"rank": {rank}, "world_size": 4}}, "traceEvents": [{}]}}"#,
            kernels.join(",")
        )
    };
    // Deep folders make the path long: one name ends at 255 bytes, a path at 4,096.
    let deep: PathBuf = (0..13).map(|_| "d".repeat(240)).collect();
    let names: [&[u8]; 5] = [
        b"<script>alert(1)</script>.json".as_slice(),
        b"\"onmouseover='x' rank.json".as_slice(),
        "evil\u{202e}gpj.exe\u{7}\n.json".as_bytes(),
        b"no-utf8-\xff\xfe.json".as_slice(),
        b"=cmd()|' /C calc'!A0.json".as_slice(),
    ];
    // A name cannot hold a slash.
    let names = names.map(|name| {
        name.iter()
            .map(|&byte| if byte == b'/' { b'!' } else { byte })
            .collect::<Vec<u8>>()
    });
    for (number, name) in names.iter().enumerate() {
        fs::create_dir_all(folder.join("a b")).unwrap();
        fs::write(folder.join("a b").join(OsStr::from_bytes(name)), trace(number.min(3))).unwrap();
    }
    fs::create_dir_all(folder.join(&deep)).unwrap();
    fs::write(folder.join(&deep).join("trace.json"), trace(0)).unwrap();
    let mut broken = trace(1).into_bytes();
    let at = broken.iter().position(|&byte| byte == b'<').unwrap();
    broken[at] = 0xff;
    broken[at + 1] = 0x1b;
    fs::write(folder.join("bro\u{202e}ken.json"), broken).unwrap();
    fs::write(folder.join("refused.json"), "{\"traceEvents\": [<b>bold</b>").unwrap();
}

/// A job of so many ranks, eight a node.
pub fn large_run(folder: &Path, ranks: usize) {
    for rank in 0..ranks {
        let info = format!(r#"{{"backend": "nccl", "rank": {rank}, "world_size": {ranks}}}"#);
        write_trace(folder.join(format!("node{:03}/rank{rank}.json", rank / 8)), Some(&info));
    }
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    text.split(start)
        .skip(1)
        .map(|rest| rest.split(end).next().unwrap())
        .collect()
}

/// What must hold of every page: its policy names exactly its own style and script, nothing is fetched, every picture has a text
/// alternative, every link leads to a file or an anchor, and nothing in it steers or reorders.
fn check(page: &str, folder: &Path) {
    let style = between(page, "<style>", "</style>");
    let script = between(page, "<script>", "</script>");
    assert_eq!((style.len(), script.len(), page.matches("<script").count()), (1, 1, 1));
    let policy = between(page, "Content-Security-Policy\" content=\"", "\"")[0].replace("&#39;", "'");
    let hash = |text: &str| base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text.as_bytes()));
    assert_eq!(
        policy,
        format!(
            "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
            hash(style[0]),
            hash(script[0])
        )
    );
    let markup = page.replace(style[0], "").replace(script[0], "");
    for tag in between(&markup, "<", ">") {
        let name = tag.split([' ', '/']).next().unwrap();
        assert!(
            ![
                "img", "link", "iframe", "object", "embed", "base", "form", "image", "use"
            ]
            .contains(&name),
            "{tag}"
        );
        let loads = [
            " src=",
            " style=",
            " onerror=",
            " onload=",
            " onmouseover=",
            " srcset=",
            "xlink:",
        ]
        .iter()
        .any(|attribute| tag.contains(attribute));
        assert!(!loads || !tag.contains('='), "{tag}");
    }
    assert!(!style[0].contains("url(") && !style[0].contains("@import"));
    let (pictures, described) = (
        page.matches("<svg class=\"picture\" role=\"img\"").count(),
        page.matches("<desc id=").count(),
    );
    assert!(pictures > 0 && pictures == described && page.matches("role=\"img\"").count() == pictures);
    for address in between(page, " href=\"", "\"") {
        match address.strip_prefix('#') {
            Some(anchor) => assert!(page.contains(&format!("id=\"{anchor}\"")), "{address}"),
            None => {
                let path: Vec<u8> = percent_decode_str(address).collect();
                assert!(
                    !path.starts_with(b"/") && folder.join(OsStr::from_bytes(&path)).exists(),
                    "{address}"
                );
                assert!(
                    address
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"-._~/%".contains(&byte)),
                    "{address}"
                );
            }
        }
    }
    let steers = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert_eq!(page.chars().find(|&c| steers(c)), None);
}

#[test]
fn the_bundled_run_at_a_glance() {
    let out = tempfile::tempdir().unwrap();
    let answer = tracemend()
        .args(["analyze", "-o"])
        .arg(out.path())
        .arg(fixture("run"))
        .output()
        .unwrap();
    assert_eq!(answer.code(), 0);
    let page = fs::read_to_string(out.path().join("index.html")).unwrap();
    check(&page, out.path());
    for part in [
        "6 of 6 ranks in 2 groups, 2 traces mended, 7 reports made; rank 2 of train is slowest by 18 %",
        "rank 2 of train is the slowest: the others wait for it",
        "GPU time of 4 ranks of train",
        "Kernels that take the most time",
        "2 traces were damaged, and read through mended copies",
        "4711_results.json -o ",
        "distributedInfo: rank 3 of 4",
        "rank 3: mended, train/libkineto_trace_48211.json",
        // The first place of damage, as it reads in the file.
        "<b>ill-formed-utf8</b> line 1, column 57499, byte 57498",
        "<mark><b>80</b></mark>",
        "launcher, of no rank",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for link in ["train_libkineto_trace_48211_kernels.csv", "tracelens_summary.json"] {
        assert!(page.contains(&format!("<a href=\"{link}\">")), "{link}");
    }
    // The terminal says the same.
    let text = answer.text();
    for part in [
        "6 of 6 ranks in 2 groups, 2 traces mended, 7 reports made",
        "serve [==] 2 of 2 ranks",
        "train [===m] 4 of 4 ranks (m mended)",
        "At a glance: ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_hostile_run_is_shown_and_does_nothing() {
    let (run, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    hostile_run(run.path());
    let page = page_of(run.path(), out.path());
    check(&page, out.path());
    for part in [
        "&lt;script&gt;alert(1)&lt;!script&gt;.json",
        "evil<i>\\u{202e}</i>gpj.exe<i>\\u{7}</i><i>\\n</i>.json",
        "&quot;onmouseover=&#39;x&#39; rank.json",
        "no-utf8-\u{fffd}\u{fffd}.json",
        "more characters",
        // A command that can be pasted names the file itself.
        "bro\\xe2\\x80\\xaeken.json&#39;",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(page.len() < 400_000, "{}", page.len());
}

#[test]
fn a_thousand_ranks_fit_in_two_megabytes_and_more_are_folded() {
    let (run, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    large_run(run.path(), 1024);
    fs::remove_file(run.path().join("node001/rank13.json")).unwrap();
    let page = page_of(run.path(), out.path());
    check(&page, out.path());
    assert!(page.len() < 2_000_000, "{}", page.len());
    assert!(page.contains("1023 of 1024 ranks"), "{}", &page[..4000]);
    let picture = &page[page.find("id=\"ranks\"").unwrap()..page.find("class=\"legend\"").unwrap()];
    assert_eq!(picture.matches("<rect ").count(), 1024);
    assert!(picture.contains("rank 13: missing"));

    let answer = tracemend()
        .args(["analyze", "--world-size", "3000", "-o"])
        .arg(out.path())
        .arg(run.path())
        .output()
        .unwrap();
    let text = answer.text();
    assert!(text.contains("47 a character (. missing)"), "{text}");
    let page = fs::read_to_string(out.path().join("index.html")).unwrap();
    assert!(page.contains("a cell stands for 3 ranks"), "{}", &page[..4000]);
}

#[test]
fn what_is_wrong_comes_first_with_the_command_that_mends_it() {
    let (run, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (rank, name) in [(0, "a b/x"), (2, "a b/y"), (2, "a b/z")] {
        let info = format!(r#"{{"rank": {rank}, "world_size": 4}}"#);
        write_trace(run.path().join(format!("{name}.json")), Some(&info));
    }
    for rank in 0..2 {
        let info = format!(r#"{{"rank": {rank}, "world_size": 4}}"#);
        write_trace(run.path().join(format!("half/{rank}.json")), Some(&info));
    }
    fs::write(run.path().join("empty.json"), "").unwrap();
    let answer = tracemend()
        .args(["analyze", "-o"])
        .arg(out.path())
        .arg(run.path())
        .output()
        .unwrap();
    let text = answer.text();
    assert!(
        text.contains("a b  [=.2.] 2 of 4 ranks (. missing, 2 claimed twice)"),
        "{text}"
    );
    let page = fs::read_to_string(out.path().join("index.html")).unwrap();
    check(&page, out.path());
    for part in [
        "1 trace cannot be mended",
        "ranks 1, 3 of 4 are missing in a b",
        "this shows which trace is whose:",
        "rank 2 of a b is claimed twice",
        "--explain &#39;a b/y.json&#39;",
        "--world-size 2",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let bad = page.find("1 trace cannot be mended").unwrap();
    assert!(bad < page.find("is claimed twice").unwrap());
}

#[test]
fn the_page_goes_where_it_is_wanted() {
    let out = tempfile::tempdir().unwrap();
    let (reports, page) = (out.path().join("my reports"), out.path().join("pages/run 1.html"));
    let analyze = |more: &[&OsStr]| {
        tracemend()
            .args(["analyze", "-q", "-o"])
            .arg(&reports)
            .arg(fixture("run/serve"))
            .args(more)
            .output()
            .unwrap()
    };
    assert_eq!(analyze(&["--no-html".as_ref()]).code(), 0);
    assert!(!reports.join("index.html").exists());
    assert_eq!(analyze(&["--html".as_ref(), page.as_os_str()]).code(), 0);
    assert!(!reports.join("index.html").exists());
    let text = fs::read_to_string(&page).unwrap();
    check(&text, page.parent().unwrap());
    assert!(text.contains("<a href=\"../my%20reports/tracelens_summary.csv\">"));

    // A page that cannot be written costs the page, and says so.
    fs::create_dir(reports.join("index.html")).unwrap();
    let answer = analyze(&[]);
    assert_eq!(answer.code(), 1);
    assert!(answer.one_error().contains("the reports are made, the page is not"));
}

#[test]
fn the_capture_is_told_from_its_manifest() {
    let (run, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_trace(run.path().join("libkineto_trace_7.json"), None);
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs_f64();
    let manifest = serde_json::json!({
        "tracemend_manifest": 1, "host": "n<1>", "capture": "c", "captured_at": now,
        "attempts": [
            {"time": now - 30.0, "attempt": 1, "verdict": "waiting", "reason": "no process"},
            {"time": now, "attempt": 2, "verdict": "accepted", "reason": "2 processes triggered"},
            {"attempt": "odd"},
        ],
        "processes": [
            {"pid": 7, "rank": 0, "world_size": 2, "trace": "libkineto_trace_7.json"},
            {"pid": 8, "rank": 1, "world_size": 2, "trace": "libkineto_trace_8.json"},
        ],
    });
    fs::write(run.path().join("tracemend-manifest-n1.json"), manifest.to_string()).unwrap();
    // A rank that registered late has a manifest of its own.
    let late = serde_json::json!({
        "tracemend_manifest": 1, "host": "n<1>", "capture": "c", "captured_at": now + 5.0, "attempts": [],
        "processes": [{"pid": 9, "trace": "libkineto_trace_9.json"}],
    });
    fs::write(run.path().join("tracemend-manifest-n1-2.json"), late.to_string()).unwrap();
    let page = page_of(run.path(), out.path());
    check(&page, out.path());
    for part in [
        "2 processes triggered on n&lt;1&gt; left no file in the run",
        "1 of 3 files are in the run",
        "attempt 1, -30.0 s: waiting: no process",
        "pid 8, rank 1",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn show_says_where_the_page_is_or_why_not() {
    let out = tempfile::tempdir().unwrap();
    let show = |path: &Path| tracemend().arg("show").arg(path).arg("--no-browser").output().unwrap();
    let answer = show(out.path());
    assert_eq!(answer.code(), 2);
    assert!(answer.one_error().contains("no index.html in"), "{}", answer.errors());
    assert_eq!(show(&out.path().join("nowhere")).code(), 2);
    fs::create_dir(out.path().join("a b")).unwrap();
    fs::write(out.path().join("a b/index.html"), "page").unwrap();
    let answer = show(&out.path().join("a b"));
    assert_eq!(answer.code(), 0);
    assert!(
        answer.text().ends_with("/a%20b/index.html\n") && answer.text().starts_with("file:///"),
        "{}",
        answer.text()
    );
}

#[test]
fn show_serves_its_folder_and_nothing_else() {
    let out = tempfile::tempdir().unwrap();
    let reports = out.path().join("reports");
    fs::create_dir_all(reports.join("x_csv")).unwrap();
    fs::write(reports.join("index.html"), "the page").unwrap();
    fs::write(reports.join("x_csv/a<b.csv"), "1,2").unwrap();
    fs::write(out.path().join("secret"), "secret").unwrap();
    std::os::unix::fs::symlink("../secret", reports.join("link")).unwrap();

    let mut server = Command::new(env!("CARGO_BIN_EXE_tracemend"))
        .args(["show", "--port", "0", "--no-browser"])
        .arg(&reports)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut address = String::new();
    BufReader::new(server.stdout.take().unwrap())
        .read_line(&mut address)
        .unwrap();
    let address = address.trim().strip_prefix("http://").unwrap();
    let (host, path) = address.split_once('/').unwrap();
    let word = path.strip_suffix("/index.html").unwrap();
    let ask = |target: &str, name: &str| {
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET {target} HTTP/1.1\r\nHost: {name}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let page = ask(&format!("/{path}"), host);
    assert!(
        page.starts_with("HTTP/1.1 200 OK") && page.ends_with("\r\n\r\nthe page"),
        "{page}"
    );
    let listing = ask(&format!("/{word}/x_csv"), host);
    assert!(
        listing.contains("<a href=\"./x_csv/a%3Cb.csv\">a&lt;b.csv</a>"),
        "{listing}"
    );
    assert!(ask(&format!("/{word}/x_csv/a%3Cb.csv"), host).ends_with("1,2"));
    for (target, name) in [
        ("/index.html".to_owned(), host),
        (format!("/{word}/../secret"), host),
        (format!("/{word}/%2e%2e/secret"), host),
        (format!("/{word}//etc/passwd"), host),
        (format!("/{word}/link"), host),
        (format!("/{path}"), "evil.example"),
        (String::new(), host),
    ] {
        let answer = ask(&target, name);
        assert!(
            answer.starts_with("HTTP/1.1 404") && !answer.contains("secret\n"),
            "{target}: {answer}"
        );
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn gpu_figures_are_there_whoever_makes_the_reports() {
    let out = tempfile::tempdir().unwrap();
    let answer = tracemend()
        .args(["analyze", "--python"])
        .arg(python())
        .arg("-o")
        .arg(out.path())
        .arg(fixture("run/train"))
        .output()
        .unwrap();
    assert_eq!(answer.code(), 0, "{}", answer.errors());
    assert!(
        answer
            .text()
            .contains("collective report built; rank 2 is slowest by 18 %"),
        "{}",
        answer.text()
    );
    let page = fs::read_to_string(out.path().join("index.html")).unwrap();
    check(&page, out.path());
    for part in [
        "GPU time of 4 ranks of the run&#39;s folder",
        "<a href=\"multi_rank_collective.xlsx\">workbook</a>",
        "<a href=\"logs/multi_rank_collective.log\">log</a>",
        "log of the edits",
    ] {
        assert!(page.contains(part), "{part}");
    }
}
