//! Tables: what lies behind each picture, complete without scripts; with them they sort, filter and copy as CSV.

use super::text::Shown;

/// Rows a table shows at most: a page must stay one that opens.
pub(super) const MOST_ROWS: usize = 1024;

/// A table.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Its anchor, unique in the page.
    pub(super) id: String,
    /// What it holds.
    pub(super) caption: String,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<Cell>>,
    /// The file that holds the same: address and text.
    pub(super) file: Option<(String, String)>,
    /// Rows that are left out, and where they are.
    pub(super) left_out: Option<String>,
    /// Whether it is unfolded at first.
    pub(super) open: bool,
}

/// A column's head.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    /// Whether its cells are figures: set to the right, sorted by value.
    pub(super) is_figure: bool,
}

/// One cell.
#[derive(Debug, Default)]
pub(super) struct Cell {
    pub(super) text: Shown,
    /// What it is sorted by, where that is not what it shows.
    pub(super) value: Option<f64>,
    /// Files that it names: address and text.
    pub(super) links: Vec<(String, String)>,
    /// A class for what it says: `good`, `warn`, `bad`, or none.
    pub(super) tone: &'static str,
}

impl<T: Into<Shown>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell {
            text: text.into(),
            ..Cell::default()
        }
    }
}

impl Cell {
    /// A figure: `text` is read, `value` sorted by.
    pub(super) fn figure(text: impl Into<Shown>, value: f64) -> Cell {
        Cell {
            text: text.into(),
            value: Some(value),
            ..Cell::default()
        }
    }

    pub(super) fn toned(text: impl Into<Shown>, tone: &'static str) -> Cell {
        Cell {
            text: text.into(),
            tone,
            ..Cell::default()
        }
    }
}

impl Table {
    /// An empty table; names of columns that begin with `#` are those of figures.
    pub(super) fn new(id: impl Into<String>, caption: impl Into<String>, columns: &[&'static str]) -> Self {
        let column = |name: &&'static str| Column {
            name: name.trim_start_matches('#'),
            is_figure: name.starts_with('#'),
        };
        Table {
            id: id.into(),
            caption: caption.into(),
            columns: columns.iter().map(column).collect(),
            ..Table::default()
        }
    }

    /// Keeps to [`MOST_ROWS`]: `rest_is` says where the others are.
    pub(super) fn cut(&mut self, rest_is: &str) {
        let all = self.rows.len();
        if all > MOST_ROWS {
            self.rows.truncate(MOST_ROWS);
            self.left_out = Some(format!("{} more rows are not shown: {rest_is}.", all - MOST_ROWS));
        }
    }
}
