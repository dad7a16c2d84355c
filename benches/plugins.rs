//! What the plugin boundary costs: loading, one call, ten thousand names, a hundred recorded calls of dyno.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tracemend::plugins::{Cache, Call, Kind, Limits, NoContents, PluginHost, Trace, built_in};

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

criterion_group!(benches, loading, labelling, interpreting);
criterion_main!(benches);
