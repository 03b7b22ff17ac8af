"""Write a large device trace as PyTorch's profiler writes them: steps of operators, launches, flows, kernels, copies.

python benchmarks/trace/generate.py 200M /tmp/large.json.gz
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

#: Kernel, its stream, microseconds on the device; names as long as real ones.
KERNELS = (
    ("ampere_sgemm_128x64_tn", 7, 41),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>,"
        " at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)",
        7,
        6,
    ),
    (
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float,"
        " at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>,"
        " unsigned int, float, 4> >(at::native::ReduceOp<float>)",
        7,
        9,
    ),
    (
        "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>(cudnnTensorStruct, float const*)",
        7,
        22,
    ),
)
OPERATORS = ("aten::addmm", "aten::add_", "aten::sum", "aten::batch_norm")
PER_STEP = 400  #: operators in a step


def step_text(number: int, start: int, correlation: int) -> str:
    """One step's events; times in microseconds."""
    events = []
    device = start + 120
    last = start
    for i in range(PER_STEP):
        name, stream, took = KERNELS[i % 4]
        operator, ts, corr = OPERATORS[i % 4], start + 20 + 25 * i, correlation + i
        begins = max(device, ts + 11)
        device = begins + took + i % 3
        fraction = (137 * i) % 1000
        events.append(
            f'  {{\n    "ph": "X", "cat": "cpu_op", "name": "{operator}", "pid": 4711, "tid": 4711,\n'
            f'    "ts": {ts}.{fraction:03}, "dur": 18.250,\n    "args": {{\n'
            f'      "External id": {corr},"Record function id": 0, "Sequence number": {corr},'
            f' "Fwd thread id": 0, "Input Dims": [[64, {64 + i % 7}], [64]], "Input type": ["float", "float"],'
            f' "Ev Idx": {i}\n    }}\n  }},\n'
            f'  {{\n    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4711, "tid": 4711,\n'
            f'    "ts": {ts + 4}.{fraction:03}, "dur": 5.125,\n    "args": {{\n'
            f'      "External id": {corr}, "cbid": 211, "correlation": {corr}\n    }}\n  }},\n'
            f'  {{\n    "ph": "s", "id": {corr}, "pid": 4711, "tid": 4711, "ts": {ts + 4}.{fraction:03},\n'
            f'    "cat": "ac2g", "name": "ac2g"\n  }},\n'
            f'  {{\n    "ph": "X", "cat": "kernel", "name": "{name}", "pid": 0, "tid": {stream},\n'
            f'    "ts": {begins}.{fraction:03}, "dur": {took}.000,\n    "args": {{\n'
            f'      "External id": {corr}, "queued": 0, "device": 0, "context": 1, "stream": {stream},'
            f' "correlation": {corr}, "registers per thread": 32, "shared memory": 0,'
            f' "blocks per SM": 1.185185, "warps per SM": 4.740741, "grid": [128, 1, 1],'
            f' "block": [128, 1, 1], "est. achieved occupancy %": 7\n    }}\n  }},\n'
            f'  {{\n    "ph": "f", "id": {corr}, "pid": 0, "tid": {stream}, "ts": {begins}.{fraction:03},\n'
            f'    "cat": "ac2g", "name": "ac2g", "bp": "e"\n  }},\n'
        )
        last = ts + 25
    copy = correlation + PER_STEP
    events.append(
        f'  {{\n    "ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 4711, "tid": 4711,\n'
        f'    "ts": {start + 5}.000, "dur": 8.000, "args": {{ "External id": {copy}, "correlation": {copy} }}\n  }},\n'
        f'  {{\n    "ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": 21,\n'
        f'    "ts": {start + 15}.000, "dur": 90.000, "args": {{ "External id": {copy}, "device": 0, "stream": 21,'
        f' "correlation": {copy}, "bytes": 1048576, "memory bandwidth (GB/s)": 11.650844 }}\n  }},\n'
        f'  {{\n    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4711, "tid": 4711,\n'
        f'    "ts": {last}.000, "dur": 5.000, "args": {{ "External id": {copy + 1}, "correlation": {copy + 1} }}\n'
        f"  }},\n"
        f'  {{\n    "ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)",\n'
        f'    "pid": 0, "tid": 20, "ts": {last + 10}.000, "dur": 400.000, "args": {{ "External id": {copy + 1},'
        f' "device": 0, "stream": 20, "correlation": {copy + 1} }}\n  }},\n'
        f'  {{\n    "ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{number}", "pid": 4711, "tid": 4711,\n'
        f'    "ts": {start}.000, "dur": {last + 450 - start}.000, "args": {{ "External id": {copy + 2} }}\n  }},\n'
    )
    return "".join(events)


HEAD = """{
  "schemaVersion": 1,
  "deviceProperties": [ { "id": 0, "name": "made up", "totalGlobalMem": 85097971712 } ],
  "distributedInfo": {"backend": "nccl", "rank": %d, "world_size": %d},
  "baseTimeNanoseconds": 1700000000000000000,
  "traceEvents": [
"""
TAIL = """  {
    "name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": %d.000
  } ],
  "traceName": "made up"
}
"""


def write(path: Path, size: int, rank: int = 0, ranks: int = 1) -> None:
    """About ``size`` bytes of JSON, compressed where the name says so."""
    with gzip.open(path, "wt", compresslevel=1) if path.name.endswith(".gz") else path.open("w") as file:
        written = file.write(HEAD % (rank, ranks))
        step, start, correlation = 1, 1_000_000, 1
        while written < size:
            written += file.write(step_text(step, start, correlation))
            step, start, correlation = step + 1, start + 12_000, correlation + PER_STEP + 3
        file.write(TAIL % (start + 1000))


def bytes_of(text: str) -> int:
    """``200M`` or ``4G`` in bytes."""
    factors = {"K": 10**3, "M": 10**6, "G": 10**9}
    return int(float(text[:-1]) * factors[text[-1]]) if text[-1] in factors else int(text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("size", type=bytes_of)
    parser.add_argument("path", type=Path)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=1)
    given = parser.parse_args()
    write(given.path, given.size, given.rank, given.ranks)
