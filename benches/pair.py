#!/usr/bin/env python3
"""Pairs tracemend's scan and repair with the commands that a budget names, in one run on one file.

    python3 benches/pair.py target/release/tracemend [--mb 300] [--rounds 9] [--folder DIR]

Each round runs every command once, so what else the machine does meets all of them alike; the medians and the ratios of
medians are printed. The file is made like a result of rocprofv3 with twelve stray bytes, and is in the page cache. orjson is
timed if this Python has it. The folder (default: a new one in TMPDIR) needs room for four times the file.
"""
import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

DISPATCH = (
    '{"size":160,"kind":11,"thread_id":4%03d,"correlation_id":{"internal":%d,"external":0},"start_timestamp":%d,'
    '"end_timestamp":%d,"dispatch_info":{"size":96,"agent_id":{"handle":%d},"kernel_id":%d,"workgroup_size":{"x":256,"y":1,"z":1},'
    '"grid_size":{"x":2048,"y":1,"z":1}}}'
)
API = (
    '{"size":64,"kind":1,"operation":%d,"thread_id":4%03d,"correlation_id":{"internal":%d,"external":0},"start_timestamp":%d,'
    '"end_timestamp":%d,"args":{"kname":"void at::native::vectorized_elementwise_kernel<4>","stream":"0x%x"}}'
)


def records(rng, template, size):
    """Bytes of `size` or a little more: records with a comma between each two."""
    now, texts, total = 1_000_000, [], 0
    while total < size:
        now += rng.randrange(500, 5000)
        number = len(texts)
        if template is DISPATCH:
            values = (number % 16, number, now, now + 900, number % 8, number % 6)
        else:
            values = (number % 40, number % 16, number, now, now + 900, number % 4)
        texts.append(template % values)
        total += len(texts[-1]) + 1
    return ",".join(texts).encode()


def write_trace(path, size):
    rng = random.Random(1)
    blocks = [records(rng, template, 4 << 20) for template in (DISPATCH, API)]
    half = max(1, size // 2 // len(blocks[0]))
    with open(path, "wb") as out:
        out.write(b'{"rocprofiler-sdk-tool":[{"buffer_records":{"kernel_dispatch":[')
        out.write(b",".join([blocks[0]] * half))
        out.write(b'],"hip_api":[')
        start = out.tell()
        out.write(b",".join([blocks[1]] * half))
        end = out.tell()
        out.write(b"]}}]}")
    with open(path, "r+b") as trace:
        for part in range(12):
            at = start + (end - start) * (2 * part + 1) // 24
            trace.seek(at)
            name = trace.read(4096).index(b"vectorized")
            trace.seek(at + name)
            trace.write(b"\xfe")


def seconds(command):
    began = time.perf_counter()
    code = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    took = time.perf_counter() - began
    # scan says 1 of a damaged trace.
    if code not in (0, 1):
        sys.exit(f"exit code {code}: {' '.join(command)}")
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tracemend")
    parser.add_argument("--mb", type=int, default=300, help="size of the file in 10^6 bytes")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = lambda name: os.path.join(folder, name)
        trace, packed, mended, copy = path("trace.json"), path("trace.json.gz"), path("mended.json"), path("copy.json")
        write_trace(trace, options.mb * 1_000_000)
        with open(packed, "wb") as out:
            subprocess.run(["gzip", "-1", "-c", trace], stdout=out, check=True)
        tracemend = os.path.abspath(options.tracemend)
        subprocess.run([tracemend, "-q", "repair", trace, "-o", mended], check=True)
        clean = path("clean.json")
        os.rename(mended, clean)

        loads = "import orjson, sys, time; data = open(sys.argv[1], 'rb').read(); began = time.perf_counter(); orjson.loads(data)"
        loads += "; print(time.perf_counter() - began)"
        commands = {
            "cat": ["sh", "-c", 'cat "$0" > /dev/null', clean],
            "scan --only utf8": [tracemend, "scan", "--only", "utf8", clean],
            "scan": [tracemend, "scan", clean],
            "cp": ["cp", trace, copy],
            "repair --only utf8": [tracemend, "repair", "--only", "utf8", trace, "-o", mended],
            "repair": [tracemend, "repair", trace, "-o", mended],
            "gzip -dc": ["gzip", "-dc", packed],
            "scan .json.gz": [tracemend, "scan", packed],
        }
        times = {name: [] for name in commands}
        has_orjson = subprocess.run([sys.executable, "-c", "import orjson"], stderr=subprocess.DEVNULL).returncode == 0
        if has_orjson:
            times["orjson.loads"] = []
        for _ in range(options.rounds):
            for name, command in commands.items():
                for made in (mended, copy):
                    if os.path.exists(made):
                        os.remove(made)
                times[name].append(seconds(command))
            if has_orjson:
                # The parsing alone, without Python's start and the reading.
                told = subprocess.run([sys.executable, "-c", loads, clean], stdout=subprocess.PIPE, check=True)
                times["orjson.loads"].append(float(told.stdout))

        medians = {name: statistics.median(taken) for name, taken in times.items()}
        size = os.path.getsize(clean)
        print(f"{size / 1e6:.0f} MB, medians of {options.rounds} rounds")
        for name, median in medians.items():
            print(f"  {name:20} {median * 1000:8.1f} ms  {size / median / 1e9:6.2f} GB/s")
        pairs = [
            ("scan --only utf8", "cat"),
            ("repair --only utf8", "cp"),
            ("repair", "cp"),
            ("repair", "scan"),
            ("scan .json.gz", "gzip -dc"),
            ("orjson.loads", "scan"),
        ]
        for one, other in pairs:
            if one in medians:
                print(f"  {one} / {other}: {medians[one] / medians[other]:.2f}")


if __name__ == "__main__":
    main()
