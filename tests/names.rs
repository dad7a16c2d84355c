use std::fs;
use std::sync::Arc;

use tracemend::plugins::{Cache, Kind, Label, Limits, NoContents, PluginHost, Trace, built_in};

use crate::util::fixture;

/// Name, role and true rank of every row of the table.
fn table() -> Vec<(String, String, Option<u32>)> {
    let text = fs::read_to_string(fixture("names/names.tsv")).unwrap();
    text.lines()
        .skip(1)
        .map(|line| {
            let mut columns = line.split('\t').map(str::to_owned);
            let (name, role, rank) = (
                columns.next().unwrap(),
                columns.next().unwrap(),
                columns.next().unwrap(),
            );
            (name, role, rank.parse().ok())
        })
        .collect()
}

/// How many claims are right, missed and wrong. Files of another role than `trace` have no rank, whatever their digits say.
fn score(claims: &[Option<u32>]) -> (usize, Vec<String>, Vec<String>) {
    let (mut right, mut missed, mut wrong) = (0, Vec::new(), Vec::new());
    for ((name, role, rank), claim) in table().into_iter().zip(claims) {
        match (claim, rank.filter(|_| role == "trace")) {
            (Some(claim), Some(rank)) if *claim == rank => right += 1,
            (None, None) => right += 1,
            (None, Some(_)) => missed.push(name),
            (Some(_), _) => wrong.push(name),
        }
    }
    (right, missed, wrong)
}

#[test]
fn names_alone_give_no_wrong_rank() {
    let host = PluginHost::new(Cache::of_user(), Limits::default(), Box::new(|_, _, _| {})).unwrap();
    let trace = |(path, _, _)| Trace {
        path,
        kind: Kind::Kineto,
        size: 1,
        gpu_events: None,
    };
    let traces: Vec<Trace> = table().into_iter().map(trace).collect();
    let mut labels: Vec<Vec<Label>> = vec![Vec::new(); traces.len()];
    for policy in ["producers", "rank-in-name"] {
        let policy = built_in(&host, policy).unwrap();
        let answers = host.label(&policy, &traces, &[], Arc::new(NoContents)).unwrap();
        labels
            .iter_mut()
            .zip(answers)
            .for_each(|(labels, answer)| labels.push(answer));
    }
    // As host/ranks has it: a role takes a trace out of the rank sets, else the first claim wins, since no name is certain.
    let claim = |labels: &Vec<Label>| {
        let role = labels.iter().any(|label| matches!(label, Label::Role(_)));
        let claim = labels.iter().find_map(|label| {
            if let Label::Rank(claim) = label {
                Some(claim)
            } else {
                None
            }
        });
        assert!(claim.is_none_or(|claim| !claim.certain), "a name proves nothing");
        claim.filter(|_| !role).map(|claim| claim.rank)
    };
    let claims: Vec<Option<u32>> = labels.iter().map(claim).collect();
    let (right, missed, wrong) = score(&claims);
    println!(
        "producers, rank-in-name: {right} right, {} missed, {} wrong",
        missed.len(),
        wrong.len()
    );
    assert_eq!(wrong, Vec::<String>::new());
    // Lightning's name holds a local rank, which is no global one on several nodes: facts/traces.md B31.
    assert_eq!(
        missed,
        ["train-dist_prof-3-training_step.1724300000123456789.pt.trace.json"]
    );
    assert_eq!(right, 49);
}

#[test]
fn one_expression_over_the_name_is_wrong_where_the_policy_is_not() {
    // TraceLens's own: rank[\[\-_/]?(?P<rank>\d+), searched in the base name, then in the whole path.
    let search = |text: &str| {
        text.match_indices("rank").find_map(|(at, _)| {
            let rest = &text[at + 4..];
            let rest = rest.strip_prefix(['[', '-', '_', '/']).unwrap_or(rest);
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        })
    };
    let claims: Vec<Option<u32>> = table()
        .into_iter()
        .map(|(name, _, _)| search(name.rsplit('/').next().unwrap()).or_else(|| search(&name)))
        .collect();
    let (right, missed, wrong) = score(&claims);
    println!(
        "TraceLens's expression: {right} right, {} missed, {} wrong: {wrong:?}",
        missed.len(),
        wrong.len()
    );
    assert!(wrong.len() >= 4, "{wrong:?}");
}
