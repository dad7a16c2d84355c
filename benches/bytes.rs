//! Scan, mend and verify, from memory: bytes of the text a second. Whole processes against `cat`, `cp`, `gzip` and orjson are
//! paired by benches/pair.py.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use flate2::Compression;
use flate2::read::GzEncoder;
use std::fmt::Write;
use std::hint::black_box;
use std::io::{Cursor, Read};
use tracemend::bytes::{Check, Options, mend, scan, verify};

const SIZE: usize = 8 << 20;

/// Records as rocprofv3 writes them: short keys, short numbers, little else.
fn rocprof() -> Vec<u8> {
    let mut text = String::from("{\"rocprofiler-sdk-tool\":[{\"buffer_records\":{\"kernel_dispatch\":[{}");
    for number in 0.. {
        if text.len() > SIZE {
            break;
        }
        let _ = write!(
            text,
            ",{{\"size\":160,\"kind\":11,\"correlation_id\":{{\"internal\":{number},\"external\":0}},\"start_timestamp\":{},\
             \"dispatch_info\":{{\"agent_id\":{{\"handle\":{}}},\"kernel_id\":3,\"workgroup_size\":{{\"x\":256,\"y\":1,\"z\":1}}}}}}",
            1_001_600 + number * 977,
            number % 8,
        );
    }
    text.push_str("]}}]}");
    text.into_bytes()
}

/// Events as Kineto writes them: a line each, names of some length.
fn kineto() -> Vec<u8> {
    let mut text = String::from("{\n  \"schemaVersion\": 1,\n  \"traceEvents\": [\n  {}");
    for number in 0.. {
        if text.len() > SIZE {
            break;
        }
        let _ = write!(
            text,
            ",\n  {{\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::native::vectorized_elementwise_kernel\", \"pid\": 542, \
             \"tid\": 542,\n    \"ts\": {}.{:03}, \"dur\": 12.345,\n    \"args\": {{\n      \"External id\": {number}, \"Input Dims\": \
             [[8, 512], [512]], \"Record function id\": 0\n    }}\n  }}",
            4_720_000 + number * 3,
            number % 1000,
        );
    }
    text.push_str("\n  ],\n  \"traceName\": \"t.json\"\n}\n");
    text.into_bytes()
}

/// Twelve stray bytes, spread evenly, each in the place of a letter.
fn damaged(mut data: Vec<u8>) -> Vec<u8> {
    for part in 1..=12 {
        let from = data.len() / 13 * part;
        let letter = data[from..].iter().position(u8::is_ascii_lowercase).unwrap_or(0);
        data[from + letter] = 0xFE;
    }
    data
}

fn benches(criterion: &mut Criterion) {
    for (name, data) in [("rocprof", rocprof()), ("kineto", kineto())] {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(data.len() as u64));
        for (what, check) in [("scan utf8", Check::Utf8), ("scan json", Check::Json)] {
            let options = Options {
                check,
                ..Options::default()
            };
            group.bench_with_input(BenchmarkId::from_parameter(what), &data, |bencher, data| {
                bencher.iter(|| scan(black_box(data.as_slice()), &options, &mut ()).unwrap());
            });
        }
        let mut packed = Vec::new();
        GzEncoder::new(data.as_slice(), Compression::fast())
            .read_to_end(&mut packed)
            .unwrap();
        group.bench_with_input(BenchmarkId::from_parameter("scan gzip"), &packed, |bencher, packed| {
            bencher.iter(|| scan(black_box(packed.as_slice()), &Options::default(), &mut ()).unwrap());
        });
        let data = damaged(data);
        let findings = scan(data.as_slice(), &Options::default(), &mut ()).unwrap();
        assert_eq!(findings.flaws.count, 12);
        group.bench_function("mend", |bencher| {
            let mut copy = Vec::with_capacity(data.len() + 1024);
            bencher.iter(|| {
                copy.clear();
                mend(black_box(data.as_slice()), &findings, &mut copy, &mut |_| {}).unwrap()
            });
        });
        let mut copy = Vec::new();
        mend(data.as_slice(), &findings, &mut copy, &mut |_| {}).unwrap();
        group.bench_function("verify", |bencher| {
            bencher.iter(|| verify(Cursor::new(black_box(&copy)), &findings).unwrap());
        });
        group.finish();
    }
}

criterion_group!(all, benches);
criterion_main!(all);
