//! A table of the file, taken apart key by key: what is not taken is not known.

use std::collections::BTreeSet;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Problem;
use crate::nearest::did_you_mean;

pub(super) type Value<'a> = Spanned<DeValue<'a>>;

/// One table, and what is wrong with what was taken from it.
pub(super) struct Section<'a> {
    /// As it is written in the file: `cluster.banff`.
    name: String,
    text: &'a str,
    table: &'a DeTable<'a>,
    known: BTreeSet<&'static str>,
    pub(super) problems: Vec<Problem>,
}

/// The line, from 1, on which byte `offset` of `text` stands.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    1 + memchr::memchr_iter(b'\n', before).count()
}

impl<'a> Section<'a> {
    pub(super) fn new(name: String, text: &'a str, table: &'a DeTable<'a>) -> Self {
        Section {
            name,
            text,
            table,
            known: BTreeSet::new(),
            problems: Vec::new(),
        }
    }

    /// `hosts` of `cluster.banff` is `cluster.banff.hosts`.
    fn full(&self, key: &str) -> String {
        match self.name.as_str() {
            "" => key.to_owned(),
            name => format!("{name}.{key}"),
        }
    }

    pub(super) fn problem(&mut self, offset: usize, text: String) {
        self.problems.push(Problem {
            line: line_of(self.text, offset),
            text,
        });
    }

    fn take(&mut self, key: &'static str) -> Option<&'a Value<'a>> {
        self.known.insert(key);
        self.table
            .iter()
            .find(|(name, _)| name.get_ref() == key)
            .map(|(_, value)| value)
    }

    fn wrong_type(&mut self, key: &str, value: &Value, wanted: &str) {
        let text = format!("{} is {}, and {wanted} is wanted", self.full(key), kind(value));
        self.problem(value.span().start, text);
    }

    /// A text, and where it stands.
    pub(super) fn text(&mut self, key: &'static str) -> Option<(&'a str, usize)> {
        let value = self.take(key)?;
        match value.get_ref() {
            DeValue::String(text) => Some((text, value.span().start)),
            _ => {
                self.wrong_type(key, value, "a text");
                None
            }
        }
    }

    /// A list of texts, each with the place where it stands.
    pub(super) fn texts(&mut self, key: &'static str) -> Option<Vec<(&'a str, usize)>> {
        let value = self.take(key)?;
        let DeValue::Array(items) = value.get_ref() else {
            self.wrong_type(key, value, "a list of texts");
            return None;
        };
        let mut texts = Vec::new();
        for item in items.iter() {
            match item.get_ref() {
                DeValue::String(text) => texts.push((&**text, item.span().start)),
                _ => self.wrong_type(key, item, "a list of texts"),
            }
        }
        Some(texts)
    }

    /// A number from `least` to `most`.
    pub(super) fn number(&mut self, key: &'static str, least: f64, most: f64) -> Option<f64> {
        let value = self.take(key)?;
        let number = match value.get_ref() {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .ok()
                .map(|n| n as f64),
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => None,
        };
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            let text = format!("{} must be a number from {least} to {most}", self.full(key));
            self.problem(value.span().start, text);
        }
        number
    }

    /// A table's entries in the order of the file, each with the place of its key.
    pub(super) fn entries(&mut self, key: &'static str) -> Vec<(&'a str, usize, &'a Value<'a>)> {
        let Some(value) = self.take(key) else { return Vec::new() };
        let DeValue::Table(table) = value.get_ref() else {
            self.wrong_type(key, value, "a table");
            return Vec::new();
        };
        let mut entries: Vec<_> = table
            .iter()
            .map(|(name, value)| (&**name.get_ref(), name.span().start, value))
            .collect();
        entries.sort_by_key(|(_, place, _)| *place);
        entries
    }

    /// The table `name` below `key`, whose value is `value`.
    pub(super) fn below(&mut self, key: &'static str, name: &str, value: &'a Value<'a>) -> Option<Section<'a>> {
        let full = format!("{}.{name}", self.full(key));
        match value.get_ref() {
            DeValue::Table(table) => Some(Section::new(full, self.text, table)),
            _ => {
                let text = format!("{full} is {}, and a table is wanted", kind(value));
                self.problem(value.span().start, text);
                None
            }
        }
    }

    /// The table at `key`, if there is one.
    pub(super) fn section(&mut self, key: &'static str) -> Option<Section<'a>> {
        let value = self.take(key)?;
        match value.get_ref() {
            DeValue::Table(table) => Some(Section::new(self.full(key), self.text, table)),
            _ => {
                self.wrong_type(key, value, "a table");
                None
            }
        }
    }

    /// All that was wrong, with a problem for each key that nobody took.
    pub(super) fn close(mut self) -> Vec<Problem> {
        let unknown: Vec<_> = self
            .table
            .iter()
            .filter(|(name, _)| !self.known.contains(&**name.get_ref()))
            .map(|(name, _)| (name.get_ref().to_string(), name.span().start))
            .collect();
        for (name, place) in unknown {
            let hint = did_you_mean(&name, self.known.iter().copied());
            let text = format!("unknown key {}; {hint}", self.full(&name));
            self.problem(place, text);
        }
        self.problems
    }
}

/// What `value` is, for people.
pub(super) fn kind(value: &Value) -> &'static str {
    match value.get_ref() {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
