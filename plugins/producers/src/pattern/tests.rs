use super::*;

fn captures(pattern: &str, path: &str) -> Option<Vec<(Field, String)>> {
    let upwards: Vec<&str> = path.rsplit('/').collect();
    let found = parse(pattern).unwrap().iter().find_map(|pattern| {
        pattern
            .captures(&upwards)
            .map(|captures| captures.into_iter().collect::<Vec<_>>())
    })?;
    for capture in &found {
        assert_eq!(
            &upwards[capture.height][capture.range.0..capture.range.1],
            capture.value
        );
    }
    Some(
        found
            .into_iter()
            .map(|capture| (capture.field, capture.value.to_owned()))
            .collect(),
    )
}

fn value(pattern: &str, path: &str, field: Field) -> Option<String> {
    captures(pattern, path)?
        .into_iter()
        .find_map(|(found, value)| (found == field).then_some(value))
}

fn fits(pattern: &str, path: &str) -> bool {
    captures(pattern, path).is_some()
}

#[test]
fn names_fit_as_a_whole_and_paths_at_their_end() {
    assert!(fits("rank{rank}.json", "rank3.json"));
    assert!(fits("rank{rank}.json", "a/b/RANK3.JSON"));
    assert!(!fits("rank{rank}.json", "xrank3.json") && !fits("rank{rank}.json", "rank3.json.bak"));
    assert!(!fits("rank{rank}.json", "rank.json") && !fits("rank{rank}.json", "rank3x.json"));
    assert!(fits("d/rank{rank}.json", "c/d/rank3.json") && !fits("d/rank{rank}.json", "rank3.json"));
    assert!(!fits("rank{rank}.json", ""));
}

#[test]
fn digits_are_whole_numbers() {
    assert_eq!(value("a{rank}b", "a007b", Field::Rank), Some("007".into()));
    assert!(!fits("a{step}b", "a1724300000b") && fits("a{time}b", "a1724300000b"));
    assert!(!fits("a{rank}b", "a4294967296b") && fits("a{number}b", "a4294967296b"));
    assert!(!fits("a{rank}b", "a\u{663}b"));
    assert_eq!(value("a-{stage}.b", "a-DECODE.b", Field::Stage), Some("DECODE".into()));
    assert!(!fits("a-{stage}.b", "a-PP-1.b") && !fits("a-{stage}.b", "a-.b"));
}

#[test]
fn text_is_as_long_as_it_can_be_and_never_empty() {
    let pattern = "{text}-{local-rank}-{text}.json";
    assert_eq!(value(pattern, "fit-1-2-step.json", Field::LocalRank), Some("2".into()));
    assert_eq!(value(pattern, "fit-1-step.json", Field::LocalRank), Some("1".into()));
    assert!(!fits(pattern, "-1-step.json") && !fits(pattern, "fit-1-.json"));
    assert_eq!(
        value("{host}_{pid}.{time}.x", "n_1_22.1724300000.x", Field::Host),
        Some("n_1".into())
    );
    assert!(fits("{text}", "x") && !fits("{text}", ""));
    assert!(!fits("{text}.{text}.{text}", "a.b") && fits("{text}.{text}.{text}", "a.b.c"));
}

#[test]
fn alternatives_may_be_empty_and_nested() {
    let sglang = "{text}-TP-{tp}(-DP-{dp}|)(-EXTEND|-DECODE|).json";
    assert_eq!(
        value(sglang, "x-TP-3-DP-1-DECODE.json", Field::Axis("dp")),
        Some("1".into())
    );
    assert_eq!(value(sglang, "x-TP-3.json", Field::Axis("tp")), Some("3".into()));
    assert!(!fits(sglang, "x-TP-3-OTHER.json"));
    assert!(fits("a(b(c|d)|)e", "abde") && fits("a(b(c|d)|)e", "ae") && !fits("a(b(c|d)|)e", "abe"));
    assert!(fits("(x/|)a", "a") && fits("x/(y/|)a", "x/y/a") && fits("x/(y/|)a", "x/a"));
}

#[test]
fn any_folders_are_none_or_many() {
    for path in ["d7/f", "d7/x/f", "d7/x/y/z/f", "r/d7/d/f"] {
        assert_eq!(value("d{rank}/**/f", path, Field::Rank), Some("7".into()), "{path}");
    }
    assert!(!fits("d{rank}/**/f", "f") && !fits("d{rank}/**/f", "d7/g"));
    // The nearest folder counts.
    assert_eq!(value("d{rank}/**/f", "d1/d2/f", Field::Rank), Some("2".into()));
}

#[test]
fn hosts_and_pids_agree_with_themselves() {
    let rocprof = "{host}.{pid}.{rank}/**/{pid}_results.json";
    assert_eq!(
        value(rocprof, "n.a.300.1/n.a/300_results.json", Field::Rank),
        Some("1".into())
    );
    assert!(!fits(rocprof, "n.301.1/n/300_results.json"));
    assert_eq!(
        value(rocprof, "n.300.1/n.301.2/300_results.json", Field::Rank),
        Some("1".into())
    );
}

#[test]
fn words_end_where_words_end() {
    let merged = "{...}merged{...}";
    for name in [
        "merged",
        "merged.json",
        "rank3_merged_trace.json",
        "merged2",
        "x-merged",
    ] {
        assert!(fits(merged, name), "{name}");
    }
    for name in ["unmerged.json", "mergedx", "emerged_", "merge_d"] {
        assert!(!fits(merged, name), "{name}");
    }
    // One word that does not fit hides none that does.
    assert!(fits(merged, "merged_unmerged") && fits(merged, "unmerged_merged"));
}

#[test]
fn what_makes_no_sense_is_told() {
    for (pattern, error) in [
        ("a{rnak}", "there is no field {rnak}"),
        ("a{rank", "a `{` or `}` stands alone"),
        ("a}b", "a `{` or `}` stands alone"),
        ("a(b", "a `(` is not closed"),
        ("a|b", "`)` or `|` stands outside of (a|b)"),
        ("a)b", "`)` or `|` stands outside of (a|b)"),
        ("", "it has an empty name"),
        ("a//b", "it has an empty name"),
        ("**/a", "** may stand once, between two names"),
        ("a/**/b/**/c", "** may stand once, between two names"),
        ("{text}{host}", "{host} follows on text: nothing says where one ends"),
        (
            "{text}{rank}",
            "a field of digits or letters stands beside text or digits: nothing says where one ends",
        ),
        (
            "a1{rank}",
            "a field of digits or letters stands beside text or digits: nothing says where one ends",
        ),
        (
            "{rank}{pid}",
            "a field of digits or letters stands beside text or digits: nothing says where one ends",
        ),
    ] {
        assert_eq!(parse(pattern), Err(error.to_owned()), "{pattern}");
    }
    assert!(parse(&"(a|b)".repeat(9)).unwrap_err().contains("more than 256"));
    assert_eq!(parse(&"(a|b)".repeat(8)).map(|patterns| patterns.len()), Ok(256));
}

#[test]
fn long_and_odd_names_take_linear_time() {
    let long = "_1".repeat(50_000);
    assert!(!fits("{text}_{number}.{text}_{number}.json", &long));
    assert!(fits("{text}_{number}", &long));
    assert!(!fits("{text}a{number}b", &"a1".repeat(50_000)));
    assert!(fits("{text}rank[{rank}]{text}", "\n\u{1b}[31m\u{fffd}rank[3]\u{7}"));
    assert!(!fits("{text}ö{rank}", "\u{fffd}\u{fffd}"));
    assert_eq!(value("{text}é{rank}", "éé3", Field::Rank), Some("3".into()));
}
