// Small traces as Kineto writes them, made in the test.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

/// Times are in microseconds; what is left out of `arguments` is not in the event.
class TraceBuilder {
 public:
  TraceBuilder& rank(int number) {
    rank_ = number;
    return *this;
  }

  TraceBuilder& event(std::string_view category, std::string_view name, std::string_view pid,
                      std::string_view tid, double start_us, double duration_us,
                      std::string_view arguments = "") {
    if (!events_.empty()) events_ += ",\n";
    events_ += R"({"ph": "X", "cat": ")" + std::string(category) + R"(", "name": ")" + std::string(name) +
               R"(", "pid": )" + std::string(pid) + R"(, "tid": )" + std::string(tid) + R"(, "ts": )" +
               std::to_string(start_us) + R"(, "dur": )" + std::to_string(duration_us) + R"(, "args": {)" +
               std::string(arguments) + "}}";
    return *this;
  }

  /// Something on a thread of the host.
  TraceBuilder& host(std::string_view category, std::string_view name, double start_us, double duration_us,
                     int thread = 1) {
    return event(category, name, "100", std::to_string(thread), start_us, duration_us);
  }

  TraceBuilder& step(int number, double start_us, double duration_us) {
    return host("user_annotation", "ProfilerStep#" + std::to_string(number), start_us, duration_us);
  }

  /// A call of the runtime.
  TraceBuilder& call(std::string_view name, int correlation, double start_us, double duration_us,
                     int thread = 1) {
    return event("cuda_runtime", name, "100", std::to_string(thread), start_us, duration_us,
                 R"("correlation": )" + std::to_string(correlation));
  }

  /// Something on a stream of a device.
  TraceBuilder& device(std::string_view category, std::string_view name, int correlation, double start_us,
                       double duration_us, int stream = 7, int device = 0, std::string_view more = "") {
    std::string arguments =
        R"("device": )" + std::to_string(device) + R"(, "stream": )" + std::to_string(stream);
    if (correlation > 0) arguments += R"(, "correlation": )" + std::to_string(correlation);
    if (!more.empty()) arguments += ", " + std::string(more);
    return event(category, name, std::to_string(device), std::to_string(stream), start_us, duration_us,
                 arguments);
  }

  TraceBuilder& kernel(std::string_view name, int correlation, double start_us, double duration_us,
                       int stream = 7, int on_device = 0) {
    return device("kernel", name, correlation, start_us, duration_us, stream, on_device);
  }

  TraceBuilder& copy(std::string_view name, int correlation, double start_us, double duration_us,
                     int stream = 7, std::string_view more = "") {
    return device("gpu_memcpy", name, correlation, start_us, duration_us, stream, 0, more);
  }

  std::string text() const {
    return R"({"distributedInfo": {"backend": "nccl", "rank": )" + std::to_string(rank_) +
           R"(, "world_size": 2}, "traceEvents": [)" + events_ + "]}";
  }

  trace::Trace build() const { return trace_of(text()); }

  static trace::Trace trace_of(std::string_view text) {
    trace::MemoryBytes source(text);
    return trace::resolve(trace::read_source(source, "test.json"));
  }

 private:
  int rank_ = 0;
  std::string events_;
};

inline std::span<const trace::Trace> one(const trace::Trace& trace) { return {&trace, 1}; }

}  // namespace headrace::analysis::device
