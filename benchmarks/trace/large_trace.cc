#include "large_trace.h"

#include <isa-l/igzip_lib.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace headrace::bench {
namespace {

constexpr std::size_t kJsonBytes = std::size_t{128} << 20;

class TraceWriter {
 public:
  LargeTrace write() {
    trace_.json.reserve(kJsonBytes + (1 << 20));
    trace_.json =
        "{\n  \"schemaVersion\": 1,\n  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 0},\n"
        "  \"traceEvents\": [";
    while (trace_.json.size() < kJsonBytes) operation();
    trace_.json.pop_back();
    trace_.json += "\n  ],\n  \"traceName\": \"large.json\"\n}\n";
    compress();
    return std::move(trace_);
  }

 private:
  template <class... Values>
  void print(const char* format, Values... values) {
    std::array<char, 1024> text;
    const int length = std::snprintf(text.data(), text.size(), format, values...);
    if (length < 0 || static_cast<std::size_t>(length) >= text.size()) std::abort();
    trace_.json.append(text.data(), static_cast<std::size_t>(length));
  }

  void complete(const char* category, const char* name, int process, int thread, std::int64_t start_ns,
                std::int64_t duration_ns) {
    print(
        "\n  {\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d,\n"
        "    \"ts\": %lld.%03lld, \"dur\": %lld.%03lld,\n    \"args\": {\n      ",
        category, name, process, thread, static_cast<long long>(start_ns / 1000),
        static_cast<long long>(start_ns % 1000), static_cast<long long>(duration_ns / 1000),
        static_cast<long long>(duration_ns % 1000));
    ++trace_.totals.complete;
    trace_.totals.duration_ns += duration_ns;
  }

  void flow(const char* phase, int process, int thread, std::int64_t at_ns, int correlation) {
    print(
        "\n  {\n    \"ph\": \"%s\", \"id\": %d, \"pid\": %d, \"tid\": %d, \"ts\": %lld.%03lld,\n"
        "    \"cat\": \"ac2g\", \"name\": \"ac2g\"\n  },",
        phase, correlation, process, thread, static_cast<long long>(at_ns / 1000),
        static_cast<long long>(at_ns % 1000));
  }

  /// An operator; two in three launch a kernel.
  void operation() {
    static constexpr std::array<const char*, 8> kOperations = {
        "aten::mm",
        "aten::add",
        "aten::convolution",
        "aten::_convolution",
        "aten::empty_strided",
        "aten::copy_",
        "autograd::engine::evaluate_function: AddmmBackward0",
        "Optimizer.step#AdamW.step"};
    static constexpr std::array<const char*, 4> kKernels = {
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
        "at::detail::Array<char*,"
        " 3> >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)",
        "ampere_fp16_s1688gemm_fp16_128x128_ldg8_f2f_stages_32x1_nt",
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
        "namespace)::"
        "TensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4> >(float)",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"};
    const int id = ++last_id_;
    const auto pick = random_();
    complete("cpu_op", kOperations[pick % 8], 4711, 4711, now_ns_,
             20'000 + static_cast<std::int64_t>(pick % 9973));
    print(
        "\"External id\": %d, \"Record function id\": 0, \"Sequence number\": %d, \"Fwd thread id\": 0, "
        "\"Ev Idx\": %d, \"Input Dims\": [[%u, 1024], [1024, %u], []], \"Input type\": [\"float\", "
        "\"float\", \"\"]",
        id, id / 3, id, 1u << (pick % 8), 16u << (pick % 5));
    if (pick % 4 == 0) {
      print(
          ", \"Call stack\": \"train.py(%d): main;torch/nn/modules/module.py(1511): _wrapped_call_impl;"
          "torch/nn/modules/linear.py(114): forward\"",
          static_cast<int>(pick % 300));
    }
    trace_.json += "\n    }\n  },";
    if (pick % 3 != 0) kernel(id, kKernels[pick / 16 % 4], pick);
    now_ns_ += 25'000;
  }

  void kernel(int id, const char* name, std::mt19937::result_type pick) {
    complete("cuda_runtime", "cudaLaunchKernel", 4711, 4711, now_ns_ + 5'000, 4'001);
    print("\"External id\": %d, \"cbid\": 211, \"correlation\": %d\n    }\n  },", id, id);
    flow("s", 4711, 4711, now_ns_ + 5'000, id);
    complete("kernel", name, 0, 7, now_ns_ + 40'000, 10'000 + static_cast<std::int64_t>(pick % 5003));
    print(
        "\"External id\": %d,\n      \"queued\": 0, \"device\": 0, \"context\": 1,\n      \"stream\": 7, "
        "\"correlation\": %d,\n      \"registers per thread\": 90,\n      \"shared memory\": 49152,\n"
        "      \"blocks per SM\": 0.5925926,\n      \"warps per SM\": 2.3703704,\n      \"grid\": [64, 1, "
        "1],\n"
        "      \"block\": [128, 1, 1],\n      \"est. achieved occupancy %%\": 4\n    }\n  },",
        id, id);
    flow("f", 0, 7, now_ns_ + 40'000, id);
    trace_.totals.correlation_sum += 2 * static_cast<std::int64_t>(id);
  }

  void compress() {
    std::vector<std::uint8_t> work(ISAL_DEF_LVL3_DEFAULT);
    isal_zstream stream;
    isal_deflate_init(&stream);
    trace_.gzip.resize(trace_.json.size());
    stream.level = 3;
    stream.level_buf = work.data();
    stream.level_buf_size = static_cast<std::uint32_t>(work.size());
    stream.gzip_flag = IGZIP_GZIP;
    stream.end_of_stream = 1;
    stream.next_in = reinterpret_cast<std::uint8_t*>(trace_.json.data());
    stream.avail_in = static_cast<std::uint32_t>(trace_.json.size());
    stream.next_out = reinterpret_cast<std::uint8_t*>(trace_.gzip.data());
    stream.avail_out = static_cast<std::uint32_t>(trace_.gzip.size());
    if (isal_deflate(&stream) != COMP_OK || stream.avail_in != 0) std::abort();
    trace_.gzip.resize(stream.total_out);
  }

  LargeTrace trace_;
  std::mt19937 random_{7};
  std::int64_t now_ns_ = 1'661'203'462'584'767'123;
  int last_id_ = 0;
};

}  // namespace

const LargeTrace& large_trace() {
  static const LargeTrace trace = TraceWriter().write();
  return trace;
}

}  // namespace headrace::bench
