//! Names of outputs.

use std::collections::HashSet;
use std::path::Path;

/// The endings of traces; the first that fits is taken off (facts/seed.md section 4.4).
const ENDINGS: [&str; 5] = [".json.gz", ".pt.trace.json", ".pftrace", ".json", ".xplane.pb"];

/// Hands out output names that are safe in any shell and file system, each once.
#[derive(Debug, Default)]
pub struct Stems {
    taken: HashSet<String>,
}

impl Stems {
    /// A name for outputs about `path`, relative to the run; each output's own begins with it and goes on with one of `endings`.
    /// Different traces get different names.
    pub fn of_trace(&mut self, path: &Path, endings: impl IntoIterator<Item = &'static str>) -> String {
        let text = path.to_string_lossy();
        let bare = ENDINGS
            .iter()
            .find_map(|ending| text.strip_suffix(ending))
            .unwrap_or(&text);
        let endings: Vec<&str> = endings.into_iter().collect();
        self.unique_with(bare, &endings)
    }

    /// A name like `wanted` that no other output has.
    pub fn unique(&mut self, wanted: &str) -> String {
        self.unique_with(wanted, &[""])
    }

    fn unique_with(&mut self, wanted: &str, endings: &[&str]) -> String {
        let mut base = String::with_capacity(wanted.len());
        for c in wanted.chars() {
            if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') {
                base.push(c);
            } else if !base.ends_with('_') {
                base.push('_');
            }
        }
        // File names end at 255 bytes, and endings follow.
        let base: String = base.trim_matches('_').chars().take(200).collect();
        let base = if base.is_empty() || base.starts_with('.') {
            format!("trace{base}")
        } else {
            base
        };
        let mut name = base.clone();
        let mut count = 1;
        while endings
            .iter()
            .any(|ending| self.taken.contains(&format!("{name}{ending}")))
        {
            count += 1;
            name = format!("{base}_{count}");
        }
        self.taken
            .extend(endings.iter().map(|ending| format!("{name}{ending}")));
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_traces_share_a_name() {
        let mut stems = Stems::default();
        let names: Vec<String> = [
            "a_b/c.pt.trace.json",
            "a/b_c.pt.trace.json",
            "模型.json",
            "数据.json",
            "x.json",
            "x.json.gz",
            ".json",
        ]
        .iter()
        .map(|path| stems.of_trace(Path::new(path), [""]))
        .collect();
        assert_eq!(names, ["a_b_c", "a_b_c_2", "trace", "trace_2", "x", "x_2", "trace_3"]);
    }
}
