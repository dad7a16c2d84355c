#!/usr/bin/env python3
"""The embedded reporter against Python doing the same, on the same traces, in one run.

    embedded.py [--tracemend BIN] [--python PYTHON] [--mb 300] [--runs 3] [--kind kineto|rocprof] [--trace FILE] [--folder DIR]

Makes a trace of the wanted size (or takes FILE), then in turn runs `tracemend analyze --reporter builtin` (whole process: looking for
damage, then the report) and a Python process that loads the trace with orjson and makes the same tables with pandas (without pandas: in
plain Python). Both are timed from start to end, their peak memory is what the kernel counted, and their figures must be the
same; the ratios are those of the best runs; on a busy machine the
processor's time tells more than the clock. --python names an interpreter that has orjson, and pandas if wanted.
"""

import argparse
import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import time

KERNELS = [
    "Cijk_Ailk_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x32_MI16x16x1",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float>>>(float)",
    "triton_poi_fused_add_native_layer_norm_7",
    "attn_fwd",
]


def kineto(path, size):
    """Seven events a launch: two operators, a call into the runtime, an arrow of two ends, a python function, and what runs on the GPU."""
    rng = random.Random(7)
    written, launch, host, gpu = 0, 0, 3743411225132000, [3743411225140000] * 4
    with open(path, "wb", buffering=1 << 20) as out:
        head = b'{"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8}, "traceEvents": ['
        written += out.write(head)
        while written < size:
            events = []
            for _ in range(500):
                launch += 1
                host += rng.randrange(4000, 20000)
                stream = launch % 3
                start = max(host + 5000, gpu[stream])
                length = rng.randrange(1500, 60000)
                gpu[stream] = start + length + rng.randrange(0, 3000)
                us = lambda ns: ns / 1000
                common = {"pid": 542, "tid": 542}
                events += [
                    {"ph": "X", "cat": "cpu_op", "name": "aten::linear", **common, "ts": us(host), "dur": 12.5, "args": {
                        "External id": launch, "Record function id": 0, "Ev Idx": launch, "Input Dims": [[64, 1024], [4096, 1024], [4096]],
                        "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16"]}},
                    {"ph": "X", "cat": "cpu_op", "name": "aten::addmm", **common, "ts": us(host + 900), "dur": 10.125, "args": {
                        "External id": launch, "Ev Idx": launch, "Input Strides": [[1], [1024, 1], [1, 1024], [], []]}},
                    {"ph": "X", "cat": "python_function", "name": "torch/nn/modules/linear.py(125): forward", **common, "ts": us(host - 700),
                     "dur": 15.25, "args": {"Python parent id": launch, "Python id": launch + 1, "Ev Idx": launch}},
                    {"ph": "X", "cat": "cuda_runtime", "name": "hipExtModuleLaunchKernel", **common, "ts": us(host + 2000), "dur": 3.75,
                     "args": {"External id": launch, "cbid": 211, "correlation": launch}},
                    {"ph": "s", "id": launch, **common, "ts": us(host + 2000), "cat": "ac2g", "name": "ac2g"},
                    {"ph": "f", "id": launch, "pid": 2, "tid": stream, "ts": us(start), "cat": "ac2g", "name": "ac2g", "bp": "e"},
                ]
                args = {"External id": launch, "device": 2, "stream": stream, "correlation": launch}
                if launch % 40 == 0:
                    args |= {"Collective name": "allreduce", "In msg nelems": 1 << (10 + launch % 7), "Out msg nelems": 1 << (10 + launch % 7),
                             "Group size": 8, "dtype": "BFloat16", "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]"}
                    cat, name = "kernel", "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"
                elif launch % 25 == 0:
                    args |= {"kind": "HtoD", "bytes": 4096 * (1 + launch % 11)}
                    cat, name = "gpu_memcpy", "Memcpy HtoD (Host -> Device)"
                else:
                    args |= {"kind": "Dispatch Kernel", "grid": [1216, 1, 1], "block": [256, 1, 1]}
                    cat, name = "kernel", KERNELS[launch % len(KERNELS)]
                events.append({"ph": "X", "cat": cat, "name": name, "pid": 2, "tid": stream, "ts": us(start), "dur": us(length), "args": args})
            text = json.dumps(events, separators=(", ", ": ")).encode()[1:-1]
            written += out.write(text if written == len(head) else b",\n" + text)
        out.write(b'], "traceName": "bench.json", "displayTimeUnit": "ms"}\n')


def rocprof(path, size):
    """Dispatches, copies and as many bytes of HIP API records."""
    rng = random.Random(7)
    head = {"metadata": {"pid": 1234, "init_time": 1, "fini_time": 10**13, "node": {"hostname": "node0"}},
            "kernel_symbols": [{"kernel_id": i, "truncated_kernel_name": name} for i, name in enumerate(KERNELS)]}
    now, count = 1_000_000, 0
    with open(path, "wb", buffering=1 << 20) as out:
        out.write(b'{"rocprofiler-sdk-tool": [' + json.dumps(head).encode()[:-1] + b', "buffer_records": {')
        for table, share in (("kernel_dispatch", 0.5), ("memory_copy", 0.05), ("hip_api", 0.45)):
            out.write(b"%s\"%s\": [" % (b"" if table == "kernel_dispatch" else b"], ", table.encode()))
            begin = out.tell()
            while out.tell() - begin < share * size:
                records = []
                for _ in range(500):
                    count += 1
                    now += rng.randrange(500, 9000)
                    record = {"size": 160, "kind": 11, "thread_id": 4000, "correlation_id": {"internal": count, "external": 0},
                              "start_timestamp": now, "end_timestamp": now + rng.randrange(800, 30_000), "stream_id": {"handle": count % 4}}
                    if table == "kernel_dispatch":
                        record["dispatch_info"] = {
                            "size": 96, "agent_id": {"handle": 3}, "queue_id": {"handle": 1}, "kernel_id": count % len(KERNELS), "dispatch_id": count,
                            "private_segment_size": 0, "workgroup_size": {"x": 256, "y": 1, "z": 1}, "grid_size": {"x": 2048, "y": 1, "z": 1}}
                    elif table == "memory_copy":
                        record |= {"operation": 1 + count % 4, "bytes": 4096 * (count % 9)}
                    else:
                        record |= {"operation": 200 + count % 4, "args": {"fname": f"module_{count % 97}.hsaco"}}
                    records.append(record)
                out.write((b"" if out.tell() == begin else b", ") + json.dumps(records).encode()[1:-1])
        out.write(b"]}}]}\n")


def in_python(path):
    """The same tables as JSON: orjson, then pandas if it is there."""
    import orjson

    with open(path, "rb") as file:
        document = orjson.loads(file.read())
    gpu, total = [], None
    if "traceEvents" in document:
        for event in document["traceEvents"]:
            category = event.get("cat")
            if category in ("kernel", "gpu_memcpy", "gpu_memset"):
                args = event.get("args", {})
                gpu.append((category, event["name"], round(event["ts"] * 1000), round(event["dur"] * 1000), args.get("kind"), args.get("bytes"),
                            args.get("Collective name"), args.get("In msg nelems")))
    else:
        tool = document["rocprofiler-sdk-tool"][0]
        total = tool["metadata"]["fini_time"] - tool["metadata"]["init_time"]
        names = {symbol["kernel_id"]: symbol["truncated_kernel_name"] for symbol in tool["kernel_symbols"]}
        for record in tool["buffer_records"]["kernel_dispatch"]:
            start = record["start_timestamp"]
            gpu.append(("kernel", names[record["dispatch_info"]["kernel_id"]], start, record["end_timestamp"] - start, None, None, None, None))
        for record in tool["buffer_records"]["memory_copy"]:
            start = record["start_timestamp"]
            gpu.append(("gpu_memcpy", "", start, record["end_timestamp"] - start, record["operation"], record["bytes"], None, None))
    del document
    is_collective = lambda name: "nccl" in name.lower() or "rccl" in name.lower() or "cross_device_reduce" in name.lower()
    try:
        import numpy
        import pandas

        table = pandas.DataFrame(gpu, columns=["category", "name", "start", "length", "kind", "bytes", "collective", "elements"])
        kernels = table[table.category == "kernel"].groupby("name").length.agg(["count", "sum", "mean", "min", "max"])
        table[table.category == "gpu_memcpy"].groupby("kind").agg({"length": ["count", "sum"], "bytes": "sum"})
        table.groupby(["collective", "elements"]).length.agg(["count", "sum", "mean", "min", "max"])
        kernels = {name: (int(row["count"]), int(row["sum"])) for name, row in kernels.iterrows()}
        collective = table.name.map({name: is_collective(name) for name in table.name.unique()})

        def union(rows):
            rows = rows.sort_values("start")
            start, end = rows.start.to_numpy(), numpy.maximum.accumulate((rows.start + rows.length).to_numpy())
            opens = numpy.concatenate([[True], start[1:] > end[:-1]])
            closes = numpy.concatenate([numpy.flatnonzero(opens)[1:] - 1, [len(rows) - 1]])
            return int((end[closes] - start[opens]).sum()) if len(rows) else 0

        copies = table.category == "gpu_memcpy"
        extent = int((table.start + table.length).max() - table.start.min())
        busy, communication = union(table), union(table[collective])
        computation, memcpy = union(table[~collective & ~copies]), union(table[copies])
        kernel = union(table[~copies])
        exposed = kernel - computation
    except ImportError:
        kernels = {}
        for category, name, _, length, *_ in gpu:
            if category == "kernel":
                known = kernels.get(name, (0, 0))
                kernels[name] = (known[0] + 1, known[1] + length)

        def union(rows):
            total, last = 0, None
            for start, end in sorted((row[2], row[2] + row[3]) for row in rows):
                total += max(0, end - (start if last is None or start > last else last))
                last = end if last is None else max(last, end)
            return total

        extent = max(row[2] + row[3] for row in gpu) - min(row[2] for row in gpu)
        busy, communication = union(gpu), union([row for row in gpu if is_collective(row[1])])
        memcpy = union([row for row in gpu if row[0] == "gpu_memcpy"])
        kernel = union([row for row in gpu if row[0] != "gpu_memcpy"])
        computation = union([row for row in gpu if row[0] != "gpu_memcpy" and not is_collective(row[1])])
        exposed = kernel - computation
    json.dump({"kernels": kernels, "busy_time": busy, "computation_time": computation, "total_comm_time": communication,
               "exposed_comm_time": exposed, "total_memcpy_time": memcpy, "total_time": total or extent}, sys.stdout)


def measured(command):
    """Seconds, peak memory in MiB, what it printed, and seconds of processor time."""
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    printed = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begin
    if status:
        sys.exit(f"{command[0]} failed")
    return seconds, usage.ru_maxrss / 1024, printed, usage.ru_utime + usage.ru_stime


def tables_of(folder):
    """The figures of tracemend, as Python gives them: nanoseconds."""
    named = {name.rsplit("bench_", 1)[-1]: os.path.join(folder, name) for name in os.listdir(folder)}
    exact = lambda text, digits: int(text.replace(".", "")) if len(text.rpartition(".")[2]) == digits else sys.exit(f"unexpected figure {text}")
    with open(named["kernels.csv"], newline="") as file:
        figures = {"kernels": {row["name"]: [int(row["count"]), exact(row["total_us"], 3)] for row in csv.DictReader(file)}}
    with open(named["gpu_timeline.csv"], newline="") as file:
        return figures | {row["type"]: exact(row["time_ms"], 6) for row in csv.DictReader(file)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tracemend", default="target/release/tracemend")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--mb", type=float, default=300)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--kind", choices=("kineto", "rocprof"), default="kineto")
    parser.add_argument("--trace")
    parser.add_argument("--folder", help="where the trace is made")
    parser.add_argument("--without-python", action="store_true", help="only tracemend: for traces that Python cannot hold")
    parser.add_argument("--in-python", metavar="FILE", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.in_python:
        return in_python(given.in_python)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        trace = os.path.join(folder, "bench.json")
        if given.trace:
            os.symlink(os.path.abspath(given.trace), trace)
            trace = os.path.realpath(trace)
        else:
            {"kineto": kineto, "rocprof": rocprof}[given.kind](trace, given.mb * 1e6)
        with open(trace, "rb") as file:
            while file.read(1 << 20):
                pass
        ours, theirs = [], []
        for run in range(given.runs):
            out = os.path.join(folder, f"out{run}")
            ours.append(measured([given.tracemend, "analyze", "-q", "--reporter", "builtin", "-o", out, trace]))
            if not given.without_python:
                theirs.append(measured([given.python, os.path.abspath(__file__), "--in-python", trace]))
        show = lambda name, runs: print(
            f"{name:10} {min(run[0] for run in runs):7.2f} s, {min(run[3] for run in runs):7.2f} s of a processor, peak {max(run[1] for run in runs):7.1f} MiB")
        print(f"{os.path.getsize(trace) / 1e6:.1f} MB, best of {given.runs}")
        show("tracemend", ours)
        if theirs:
            show("Python", theirs)
            print(f"ratio      {min(run[0] for run in theirs) / min(run[0] for run in ours):7.2f} x in time, "
                  f"{min(run[3] for run in theirs) / min(run[3] for run in ours):.2f} x in processor time, "
                  f"{max(run[1] for run in theirs) / max(run[1] for run in ours):.1f} x in memory")
            if not given.trace:
                mine, python = tables_of(out), json.loads(theirs[0][2])
                wrong = [key for key in python if python[key] != mine[key]]
                print("figures    " + ("differ: " + ", ".join(f"{key} {mine[key]} {python[key]}" for key in wrong) if wrong else "the same"))


if __name__ == "__main__":
    main()
