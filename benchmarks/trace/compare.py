"""`headrace.Trace` beside Holistic Trace Analysis: load and the tables that both have, time and memory.

    python benchmarks/trace/compare.py TRACE --hta PYTHON_WITH_TRACEINSIGHT [--rounds 3]

Each contender runs in a process of its own, in turns. Imports are not timed on either side. Memory is the
greatest resident set from then on, less what the interpreter and all imports (NumPy's among them, which
headrace itself needs for no table) had taken before the trace was opened. All keep the same answers until the
end: launches, kernels and the time table. `headrace.compat.hta` must find the same idle time as
Holistic Trace Analysis, launches and kernel names must agree. Not run by `make bench`: it needs the PyPI
package `traceinsight` in an environment of its own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys

MEASURE = """
import json, sys, time, logging, warnings
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

def kilobytes(entry):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(entry))

def resident():
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")  # from here on: imports may have had their own
    return kilobytes("VmRSS") * 1024

def done(before, began, middle, figures):
    ended = time.perf_counter()
    peak = kilobytes("VmHWM") * 1024
    times = {"load_s": middle - began, "tables_s": ended - middle}
    print(json.dumps({**times, "peak_bytes": peak - before, **figures}))
"""

HEADRACE = """
import numpy
import headrace as hr
from headrace import _core
from headrace.traces.trace import Trace
before = resident(); began = time.perf_counter()
trace = Trace.load(sys.argv[1])
middle = time.perf_counter()
time_table = trace.time_breakdown()
trace.idle_breakdown()
trace.kernel_breakdown()
kernels = trace.kernels()
trace.overlap()
launches = trace.launches()
trace.queue_length()
trace.memory_bandwidth()
done(before, began, middle, {"launches": len(launches), "kernels": len(set(kernels.column("name")))})
"""

COMPAT = """
from headrace.compat.hta import TraceAnalysis
"""

HTA = """
from hta.trace_analysis import TraceAnalysis
"""

BOTH = """
before = resident(); began = time.perf_counter()
a = TraceAnalysis(trace_files={0: sys.argv[1]})
middle = time.perf_counter()
time_table = a.get_temporal_breakdown(visualize=False)
a.get_idle_time_breakdown(visualize=False)
kernels = a.get_gpu_kernel_breakdown(visualize=False, num_kernels=100000)[1]
a.get_comm_comp_overlap(visualize=False)
launches = a.get_cuda_kernel_launch_stats(visualize=False)[0]
a.get_queue_length_summary()
a.get_memory_bw_summary()
done(before, began, middle, {"launches": len(launches), "kernels": kernels.name.nunique(),
                             "idle_us": float(time_table["idle_time(us)"].iloc[0])})
"""

PATH_HEADRACE = """
from headrace.traces.trace import Trace
trace = Trace.load(sys.argv[1])
before = resident(); began = time.perf_counter()
path = trace.critical_path("ProfilerStep", 1)
done(before, began, began, {"length_us": round(path.length_s * 1e6)})
"""

PATH_HTA = """
from hta.trace_analysis import TraceAnalysis
a = TraceAnalysis(trace_files={0: sys.argv[1]})
before = resident(); began = time.perf_counter()
graph, ok = a.critical_path_analysis(rank=0, annotation="ProfilerStep", instance_id=1)
done(before, began, began, {"length_us": round(float(graph.get_critical_path_breakdown().duration.sum()))})
"""

PYTHON_JSON = """
import gzip
before = resident(); began = time.perf_counter()
with gzip.open(sys.argv[1]) if sys.argv[1].endswith(".gz") else open(sys.argv[1], "rb") as file:
    document = json.load(file)
done(before, began, time.perf_counter(), {"events": len(document["traceEvents"])})
"""


def measure(python: str, program: str, trace: str) -> dict[str, float]:
    result = subprocess.run(
        [python, "-c", MEASURE + program, trace], capture_output=True, text=True, check=False
    )
    if result.returncode:
        raise SystemExit(f"{python} failed:\n{result.stderr[-2000:]}")
    figures: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace")
    parser.add_argument("--hta", required=True, metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--critical-path", action="store_true")
    given = parser.parse_args()
    contenders = {
        "headrace": (sys.executable, HEADRACE),
        "headrace.compat.hta": (sys.executable, COMPAT + BOTH),
        "gzip + json.loads": (sys.executable, PYTHON_JSON),
        "traceinsight": (given.hta, HTA + BOTH),
    }
    if given.critical_path:
        contenders = {"headrace": (sys.executable, PATH_HEADRACE), "traceinsight": (given.hta, PATH_HTA)}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in contenders}
    for _ in range(given.rounds):
        for name, (python, program) in contenders.items():
            runs[name].append(measure(python, program, given.trace))
    for name, results in runs.items():
        seconds = [r["load_s"] + r["tables_s"] for r in results]
        memory = statistics.median(r["peak_bytes"] for r in results) / 1e6
        print(
            f"{name:22} {statistics.median(seconds):9.3f} s ({min(seconds):.3f} to {max(seconds):.3f})"
            f"  {memory:8.1f} MB  {results[0]}"
        )
    ours, theirs = runs["headrace"][0], runs["traceinsight"][0]
    if "launches" in ours and ours["kernels"] < theirs["kernels"]:
        raise SystemExit("headrace found fewer kernel names")
    compat = runs.get("headrace.compat.hta")
    if compat and compat[0]["idle_us"] != theirs["idle_us"]:
        raise SystemExit(f"idle time differs: {compat[0]['idle_us']} and {theirs['idle_us']}")


if __name__ == "__main__":
    main()
