//! Pictures as SVG inside the page. Lengths along x may be percentages, so that a picture fits any width and its text keeps its
//! size; classes come from the style sheet.

use std::fmt::{Display, Write};

use super::text::{name, plain};

/// A picture being drawn.
pub(super) struct Drawing {
    body: String,
}

impl Drawing {
    pub(super) fn new() -> Self {
        Drawing { body: String::new() }
    }

    /// A rectangle with square corners; `tip`, if any, is shown when it is pointed at.
    pub(super) fn rect(
        &mut self,
        class: &str,
        x: impl Display,
        y: f64,
        width: impl Display,
        height: f64,
        tip: Option<&str>,
    ) {
        let _ = write!(
            self.body,
            r#"<rect class="{class}" x="{x}" y="{}" width="{width}" height="{}""#,
            Px(y),
            Px(height)
        );
        self.close("rect", tip);
    }

    pub(super) fn line(&mut self, class: &str, (x1, y1): (impl Display, f64), (x2, y2): (impl Display, f64)) {
        let _ = write!(
            self.body,
            r#"<line class="{class}" x1="{x1}" y1="{}" x2="{x2}" y2="{}"/>"#,
            Px(y1),
            Px(y2)
        );
    }

    pub(super) fn circle(&mut self, class: &str, x: impl Display, y: f64, radius: f64, tip: Option<&str>) {
        let _ = write!(
            self.body,
            r#"<circle class="{class}" cx="{x}" cy="{}" r="{}""#,
            Px(y),
            Px(radius)
        );
        self.close("circle", tip);
    }

    /// Text whose left end (class `end`: right end, `middle`: middle) is at `x` and whose base line is at `y`.
    pub(super) fn text(&mut self, class: &str, x: impl Display, y: f64, text: &str) {
        let _ = write!(
            self.body,
            r#"<text class="{class}" x="{x}" y="{}">{}</text>"#,
            Px(y),
            plain(text)
        );
    }

    /// Text that ends at `width`, whatever its length; all of it is shown when it is pointed at.
    pub(super) fn clipped_text(&mut self, y: f64, height: f64, width: &str, class: &str, base: f64, text: &str) {
        let shown = plain(&name(text).0);
        let _ = write!(
            self.body,
            r#"<svg y="{}" width="{width}" height="{}"><title>{shown}</title><text class="{class}" y="{}">{shown}</text></svg>"#,
            Px(y),
            Px(height),
            Px(base)
        );
    }

    pub(super) fn path(&mut self, class: &str, d: &str) {
        let _ = write!(self.body, r#"<path class="{class}" d="{d}"/>"#);
    }

    /// A stretch of the picture with axes of its own, `0 0 columns rows`, pulled to fill it.
    pub(super) fn stretched(&mut self, y: f64, height: f64, (columns, rows): (usize, f64), inside: Drawing) {
        let _ = write!(
            self.body,
            r#"<svg y="{}" width="100%" height="{}" viewBox="0 0 {columns} {}" preserveAspectRatio="none">{}</svg>"#,
            Px(y),
            Px(height),
            Px(rows),
            inside.body
        );
    }

    fn close(&mut self, element: &str, tip: Option<&str>) {
        let _ = match tip {
            Some(tip) => write!(self.body, "><title>{}</title></{element}>", plain(tip)),
            None => write!(self.body, "/>"),
        };
    }

    /// The picture: as wide as its place where `width` is none, `height` pixels high, with its text alternative.
    pub(super) fn finish(self, id: &str, width: Option<f64>, height: f64, title: &str, description: &str) -> String {
        let width = width.map_or("100%".to_owned(), |width| Px(width).to_string());
        format!(
            r#"<svg class="picture" role="img" aria-labelledby="{id}-t {id}-d" width="{width}" height="{}"><title id="{id}-t">{}</title><desc id="{id}-d">{}</desc>{}</svg>"#,
            Px(height),
            plain(title),
            plain(description),
            self.body
        )
    }
}

/// A length with no more digits than can be seen.
#[derive(Clone, Copy)]
pub(super) struct Px(pub(super) f64);

impl Display for Px {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let rounded = (self.0 * 10.0).round() / 10.0;
        write!(f, "{rounded}")
    }
}

/// A part of the width, 0 to 1.
#[derive(Clone, Copy)]
pub(super) struct Part(pub(super) f64);

impl Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let percent = if self.0.is_finite() {
            self.0.clamp(0.0, 1.0) * 100.0
        } else {
            0.0
        };
        write!(f, "{}%", (percent * 100.0).round() / 100.0)
    }
}
