//! The page of a run in a real browser. Screenshots are left in the target folder, `tmp/screenshots`.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::html::{hostile_run, large_run, page_of};
use crate::util::fixture;
use crate::webdriver::Browser;

/// What every page must do; `name` is that of its screenshots.
fn check(browser: &Browser, page: &Path, name: &str) {
    let address = format!("file://{}", page.display());
    browser.log("browser");
    browser.log("performance");
    browser.open(&address);

    // Nothing to complain of, nothing asked of anyone.
    let console = browser.log("browser");
    assert!(console.is_empty(), "{console:?}");
    for entry in browser.log("performance") {
        let message: serde_json::Value = serde_json::from_str(entry["message"].as_str().unwrap()).unwrap();
        if message["message"]["method"] == "Network.requestWillBeSent" {
            assert_eq!(message["message"]["params"]["request"]["url"], address.as_str());
        }
    }
    assert_eq!(
        browser.run("return document.title === 'owned' || !!window.owned"),
        false
    );

    // What a screen reader is told of every picture, by the browser's own account.
    let silent = browser.run(
        "return [...document.querySelectorAll('svg[role=img]')].filter(picture =>
            !picture.querySelector('title').textContent.trim() || !picture.querySelector('desc').textContent.trim()
            || picture.getAttribute('aria-labelledby').split(' ').some(id => !picture.querySelector('#' + id))).length",
    );
    assert_eq!(silent, 0);
    let tree = browser.devtools("Accessibility.getFullAXTree", json!({}));
    let images = tree["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|node| node["role"]["value"] == "image" && node["ignored"] == false);
    let named: Vec<bool> = images
        .map(|node| !node["name"]["value"].as_str().unwrap_or_default().is_empty())
        .collect();
    assert!(!named.is_empty() && named.iter().all(|named| *named), "{named:?}");
    let twice = browser.run(
        "const ids = [...document.querySelectorAll('[id]')].map(e => e.id); return ids.length - new Set(ids).size",
    );
    assert_eq!(twice, 0);

    fs::create_dir_all(screenshots()).unwrap();
    for (width, dark, kind) in [
        (1200, false, "light"),
        (1200, true, "dark"),
        (390, false, "phone-light"),
        (390, true, "phone-dark"),
    ] {
        fs::write(
            screenshots().join(format!("{name}-{kind}.png")),
            browser.picture(width, dark),
        )
        .unwrap();
        // Nothing sticks out of the page: what is too wide scrolls in its own place.
        let wide = browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth");
        assert_eq!(wide, 0, "{name}-{kind}");
    }
    browser.devtools("Emulation.clearDeviceMetricsOverride", json!({}));
}

fn screenshots() -> std::path::PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots")
}

/// The texts of a column of the table `id`, as they stand, hidden rows left out.
fn column(browser: &Browser, id: &str, column: usize) -> Vec<String> {
    let script = format!(
        "return [...document.querySelectorAll('#{id} tbody tr')].filter(row => !row.hidden).map(row => row.cells[{column}].textContent)"
    );
    let texts = browser.run(&script);
    texts
        .as_array()
        .unwrap()
        .iter()
        .map(|text| text.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn pages_in_a_browser() {
    let Some(browser) = Browser::start() else { return };
    let out = tempfile::tempdir().unwrap();
    let page = |name: &str, run: &Path| {
        let output = out.path().join(name);
        page_of(run, &output);
        output.join("index.html")
    };

    let hostile = tempfile::tempdir().unwrap();
    hostile_run(hostile.path());
    check(&browser, &page("hostile", hostile.path()), "hostile");
    // A name that a spreadsheet would take for a formula is copied as text.
    let copied = "navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); };";
    browser.run(&format!(
        "{copied} document.querySelector('#kernel-table .tools button').click()"
    ));
    let csv = browser.run("return window.copied");
    let csv = csv.as_str().unwrap();
    assert!(
        csv.starts_with("kernel,share,") && csv.contains("\"'=HYPERLINK(\"\"http:"),
        "{csv}"
    );

    let large = tempfile::tempdir().unwrap();
    large_run(large.path(), 1024);
    check(&browser, &page("large", large.path()), "large");

    let bundled = page("bundled", &fixture("run"));
    check(&browser, &bundled, "bundled");
    // Sorting goes by value, and back; the head says so to screen readers.
    let sort = |head: &str| {
        browser.run(&format!(
            "[...document.querySelectorAll('#times th button')].find(b => b.textContent === '{head}').click()"
        ))
    };
    let values = || -> Vec<f64> {
        let values = browser
            .run("return [...document.querySelectorAll('#times tbody tr')].map(row => Number(row.cells[3].dataset.v))");
        values
            .as_array()
            .unwrap()
            .iter()
            .map(|value| value.as_f64().unwrap())
            .collect()
    };
    sort("total");
    assert!(values().is_sorted() && values().len() == 7, "{:?}", values());
    sort("total");
    assert!(values().iter().rev().is_sorted());
    assert_eq!(
        browser.run("return document.querySelector('#times th[aria-sort]').ariaSort"),
        "descending"
    );
    // Filtering takes all words.
    browser.run(
        "const input = document.querySelector('#evidence input'); input.value = 'train 48211'; input.dispatchEvent(new Event('input'))",
    );
    assert_eq!(column(&browser, "evidence", 3), ["train/libkineto_trace_48211.json"]);
    assert_eq!(
        browser.run("return document.querySelector('#evidence [role=status]').textContent"),
        "1 shown"
    );
    // What can be done with a mouse can be done with keys: all of it takes the focus, none is skipped.
    let unreachable = browser.run(
        "return [...document.querySelectorAll('a[href], button, input, summary, .scroll')].filter(e => e.checkVisibility() && e.tabIndex < 0).length",
    );
    assert_eq!(unreachable, 0);

    // Without scripts nothing is missing but sorting, filtering and copying, and no control stands there dead.
    browser.devtools("Emulation.setScriptExecutionDisabled", json!({"value": true}));
    browser.open(&format!("file://{}?", bundled.display()));
    let seen = |expression: &str| {
        browser.devtools(
            "Runtime.evaluate",
            json!({"expression": expression, "returnByValue": true}),
        )["result"]["value"]
            .clone()
    };
    assert_eq!(seen("document.querySelectorAll('button, input').length"), 0);
    assert_eq!(seen("document.querySelectorAll('#evidence tbody tr').length"), 8);
    assert!(
        seen("document.querySelector('h1').innerText")
            .as_str()
            .unwrap()
            .starts_with("6 of 6 ranks")
    );
    assert!(
        seen("document.querySelectorAll('svg[role=img]').length")
            .as_u64()
            .unwrap()
            > 5
    );
}
