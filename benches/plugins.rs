//! What the plugin boundary costs: loading, one call, ten thousand names, a hundred recorded calls of dyno, one crossing from a
//! plugin into the host, and a policy's work in the sandbox against the same source linked natively.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tracemend::plugins::{Cache, Call, Contents, Kind, Limits, NoContents, PluginHost, Trace, built_in, from_file};

fn host(cache: Cache) -> PluginHost {
    PluginHost::new(cache, Limits::default(), Box::new(|_, _, _| {})).expect("the engine starts")
}

fn names(count: usize) -> Vec<Trace> {
    let name = |index: usize| Trace {
        path: format!("run/iteration_{}/rank{}_trace.json.gz", index / 1000, index % 1000),
        kind: Kind::Kineto,
        size: 1 << 20,
        gpu_events: Some(true),
    };
    (0..count).map(name).collect()
}

fn loading(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (warm, cold) = (
        Cache::in_folder(folder.path().join("cache")),
        Cache::in_folder("/proc/no-cache"),
    );
    let (warm, cold) = (host(warm), host(cold));
    built_in(&warm, "rank-in-name").expect("it loads");
    let mut group = c.benchmark_group("load rank-in-name");
    group.bench_function("from the cache", |b| {
        b.iter(|| built_in(&warm, "rank-in-name").expect("it loads"))
    });
    group.sample_size(10);
    group.bench_function("compiling", |b| {
        b.iter(|| built_in(&cold, "rank-in-name").expect("it loads"))
    });
    group.finish();
}

fn labelling(c: &mut Criterion) {
    let host = host(Cache::of_user());
    let plugin = built_in(&host, "rank-in-name").expect("it loads");
    let mut group = c.benchmark_group("label");
    for count in [1, 10_000, 100_000] {
        let traces = names(count);
        group.throughput(Throughput::Elements(count as u64)).sample_size(20);
        group.bench_function(format!("{count} names"), |b| {
            b.iter(|| black_box(host.label(&plugin, &traces, &[], Arc::new(NoContents)).expect("labels")))
        });
    }
    group.finish();
}

fn interpreting(c: &mut Criterion) {
    let host = host(Cache::of_user());
    let plugin = built_in(&host, "dyno-cli").expect("it loads");
    let reply = r#"{"activityProfilersBusy":0,"activityProfilersTriggered":[4101],"eventProfilersBusy":0,"eventProfilersTriggered":[],"processesMatched":[4101]}"#;
    let stdout = format!(
        "Kineto config = \nresponse length = {}\nresponse = {reply}\n\nMatched 1 processes\n",
        reply.len()
    );
    let call = Call {
        exit_code: Some(0),
        signal: None,
        timed_out: false,
        stdout: stdout.into_bytes(),
        stderr: Vec::new(),
        attempt: 1,
    };
    c.bench_function("interpret 100 calls", |b| {
        b.iter(|| {
            for _ in 0..100 {
                black_box(host.interpret(&plugin, &call, &[]).expect("an answer"));
            }
        })
    });
}

/// The source of the plugin by-elimination, compiled into this bench. Its tests come along and find no harness.
#[allow(dead_code)]
#[path = "../plugins/by-elimination/src/elimination.rs"]
mod elimination;

fn sandboxed_and_native(c: &mut Criterion) {
    let host = host(Cache::of_user());
    let plugin = built_in(&host, "by-elimination").expect("it loads");
    let trace = |index: usize| Trace {
        path: format!("run/w{index}.json"),
        kind: Kind::Kineto,
        size: 1 << 20,
        gpu_events: Some(true),
    };
    let traces: Vec<Trace> = (0..10_000).map(trace).collect();
    let paths: Vec<&str> = traces.iter().map(|trace| trace.path.as_str()).collect();
    let last = elimination::Verdict::Rank {
        rank: 9999,
        world_size: 10_000,
    };
    assert_eq!(elimination::all(&paths).last(), Some(&last));
    let mut group = c.benchmark_group("by-elimination, 10000 traces");
    group.throughput(Throughput::Elements(10_000)).sample_size(20);
    group.bench_function("in the sandbox", |b| {
        b.iter(|| black_box(host.label(&plugin, &traces, &[], Arc::new(NoContents)).expect("labels")))
    });
    group.bench_function("natively", |b| b.iter(|| black_box(elimination::all(&paths))));
    group.finish();
}

/// One trace without members.
struct OneTrace;

impl Contents for OneTrace {
    fn count(&self) -> u32 {
        1
    }
    fn members(&self, _: u32, _: &str) -> Vec<String> {
        Vec::new()
    }
    fn head(&self, _: u32, _: usize) -> std::io::Result<Vec<u8>> {
        Ok(Vec::new())
    }
    fn tail(&self, _: u32, _: usize) -> std::io::Result<Vec<u8>> {
        Ok(Vec::new())
    }
    fn find(&self, _: u32, _: &[u8], _: usize, _: usize) -> std::io::Result<Vec<(u64, Vec<u8>)>> {
        Ok(Vec::new())
    }
}

/// The guest `hostile` asks the host 10,000 times for a member if the word `cross` tells it to.
fn crossing(c: &mut Criterion) {
    let host = host(Cache::of_user());
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/guests/built/hostile.wasm");
    let plugin = from_file(&host, file.as_ref(), None).expect("it loads");
    let mut group = c.benchmark_group("crossings");
    for (word, calls) in [("calm", 1), ("cross", 10_000)] {
        let trace = Trace {
            path: format!("{word}.json"),
            kind: Kind::Kineto,
            size: 1,
            gpu_events: None,
        };
        group.throughput(Throughput::Elements(calls)).sample_size(20);
        group.bench_function(format!("{calls} from host to plugin and back, or the other way"), |b| {
            b.iter(|| {
                let traces = std::slice::from_ref(&trace);
                black_box(host.label(&plugin, traces, &[], Arc::new(OneTrace)).expect("labels"))
            })
        });
    }
    group.finish();
}

criterion_group!(
    benches,
    loading,
    labelling,
    interpreting,
    sandboxed_and_native,
    crossing
);
criterion_main!(benches);
