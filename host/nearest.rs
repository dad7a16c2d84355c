//! "Did you mean": the known word nearest to one that is not known.

/// The end of a sentence about `word`, which is none of `known`: the nearest of them, or else all of them.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in known {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    let known = words;
    match nearest(word, &known) {
        Some(near) => format!("did you mean {near}?"),
        None if known.is_empty() => "there is none".to_owned(),
        None => format!("there are {}", known.join(", ")),
    }
}

/// The one of `known` that is like `word`, if any is. The measure and its bound are those of clap's own suggestions.
fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let likeness = |known: &&'a str| strsim::jaro(word, known);
    let best = known
        .iter()
        .copied()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(&best) > 0.7).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_a_stranger_finds_all() {
        let known = ["hosts", "interpreter", "naming"];
        assert_eq!(did_you_mean("namig", known), "did you mean naming?");
        assert_eq!(did_you_mean("xyz", known), "there are hosts, interpreter, naming");
        assert_eq!(
            did_you_mean("xyz", ["naming", "hosts", "naming"]),
            "there are naming, hosts"
        );
        assert_eq!(did_you_mean("xyz", []), "there is none");
    }
}
