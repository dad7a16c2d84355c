//! A browser that tests drive: Debian's chromium through chromedriver, spoken to over WebDriver (W3C) as plain HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// A session of a headless browser with a profile of its own. It ends with this.
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts one; none where chromium or chromedriver is not installed, which it says.
    pub fn start() -> Option<Browser> {
        let driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut driver) = driver else {
            eprintln!(
                "SKIPPED: no chromedriver on PATH: `cargo xtask setup` installs chromium and chromium-driver on Debian"
            );
            return None;
        };
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.by_ref().find_map(|line| {
            let line = line.unwrap();
            line.rsplit_once("started successfully on port ")?
                .1
                .trim_end_matches('.')
                .parse()
                .ok()
        });
        // A pipe that nobody reads would stop it.
        std::thread::spawn(move || lines.for_each(drop));
        let profile = tempfile::tempdir().unwrap();
        let mut browser = Browser {
            driver,
            port: port.unwrap(),
            session: String::new(),
            _profile: profile,
        };
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            "--window-size=1200,900",
        ];
        let mut arguments: Vec<String> = arguments.map(str::to_owned).into();
        arguments.push(format!("--user-data-dir={}", browser._profile.path().display()));
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }}});
        let answer = browser.ask("POST", "/session", &wanted);
        browser.session = answer["sessionId"].as_str().unwrap().to_owned();
        // Away from the browser's own first page, which loads many things.
        browser.open("about:blank");
        Some(browser)
    }

    /// Goes to `address` and waits until it is loaded.
    pub fn open(&self, address: &str) {
        self.command("url", &json!({"url": address}));
    }

    /// What the body of a function, `script`, returns in the page.
    pub fn run(&self, script: &str) -> Value {
        self.command("execute/sync", &json!({"script": script, "args": []}))
    }

    /// A command of the DevTools protocol.
    pub fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.command("goog/cdp/execute", &json!({"cmd": command, "params": parameters}))
    }

    /// What was logged since the last time: `browser` is the console, `performance` the events of the network.
    pub fn log(&self, kind: &str) -> Vec<Value> {
        self.command("se/log", &json!({"type": kind}))
            .as_array()
            .unwrap()
            .clone()
    }

    /// The whole page as a PNG, in so wide a window.
    pub fn picture(&self, width: u32, dark: bool) -> Vec<u8> {
        use base64::Engine;
        let scheme = if dark { "dark" } else { "light" };
        self.devtools(
            "Emulation.setEmulatedMedia",
            json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]}),
        );
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}),
        );
        let picture = self.devtools(
            "Page.captureScreenshot",
            json!({"captureBeyondViewport": true, "format": "png"}),
        );
        base64::engine::general_purpose::STANDARD
            .decode(picture["data"].as_str().unwrap())
            .unwrap()
    }

    fn command(&self, path: &str, body: &Value) -> Value {
        self.ask("POST", &format!("/session/{}/{path}", self.session), body)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = body.to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.port,
            body.len()
        )
        .unwrap();
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer).unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert!(
            answer["value"]["error"].is_null(),
            "{method} {path}: {}",
            answer["value"]
        );
        answer["value"].clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let path = format!("/session/{}", self.session);
        // Closes the browser; the driver would leave it behind. Not while a panic unwinds: that would abort.
        if !self.session.is_empty() && !std::thread::panicking() {
            self.ask("DELETE", &path, &json!({}));
        } else if !self.session.is_empty() {
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.ask("DELETE", &path, &json!({}))));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
