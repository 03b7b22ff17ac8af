// Slices of one row as Chrome events in a gzip file (bar: <= 60 ns a slice), plain and compressed, beside
// ISA-L alone on the same text (checked to be the same), a text of that length copied, and one written as it
// is.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "headrace/timeline/event_writer.h"
#include "headrace/timeline/gzip_writer.h"
#include "headrace/trace/byte_source.h"
#include "scratch_file.h"

namespace {

using headrace::bench::ScratchFile;
namespace timeline = headrace::timeline;

constexpr int kSlices = 1'000'000;
constexpr std::int64_t kBase = 1'700'000'000'000'000'000;

/// Times of a worker's slices: a few milliseconds each, no two alike.
struct Times {
  std::vector<std::int64_t> begin_ns;
  std::vector<std::int64_t> end_ns;
  Times() {
    std::uint64_t state = 1;
    std::int64_t now = kBase;
    for (int i = 0; i < kSlices; ++i) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      begin_ns.push_back(now += 100'000 + static_cast<std::int64_t>(state >> 44));
      end_ns.push_back(now += 2'000'000 + static_cast<std::int64_t>(state >> 42));
    }
  }
};
const Times& times() {
  static const Times instance;
  return instance;
}

/// Nanoseconds a slice, by the clock.
class Watch {
 public:
  explicit Watch(benchmark::State& state) : state_(state), began_(std::chrono::steady_clock::now()) {}
  ~Watch() {
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began_;
    state_.counters["ns_per_slice"] = took.count() / static_cast<double>(state_.iterations()) / kSlices;
  }

 private:
  benchmark::State& state_;
  std::chrono::steady_clock::time_point began_;
};

/// About what a slice is as text.
const std::string& text_of_a_slice() {
  static const std::string text =
      ",\n{\"ph\":\"X\",\"cat\":\"headrace\",\"name\":\"decode\",\"pid\":2000000000,\"tid\":7,\"ts\":"
      "123456789.123,\"dur\":2345.678}";
  return text;
}

std::uint64_t write_slices(timeline::GzipWriter& out) {
  const Times& slices = times();
  out.write("{\"traceEvents\":[");
  timeline::EventWriter events(out, kBase, true);
  auto prepared = events.slice_name({2'000'000'000, 7}, "decode");
  for (std::size_t i = 0; i < kSlices; ++i) events.slice(prepared, slices.begin_ns[i], slices.end_ns[i]);
  out.write("]}");
  out.finish();
  return events.slices();
}

void headrace_export(benchmark::State& state, const char* name) {
  const ScratchFile file(name);
  times();
  const Watch watch(state);
  for (auto _ : state) {
    timeline::GzipWriter out(file.path());
    if (write_slices(out) != kSlices) state.SkipWithError("slices are missing");
    state.counters["MB"] = static_cast<double>(out.bytes_out()) / 1e6;
  }
}

std::string read_back(const std::string& path) {
  headrace::trace::FileBytes bytes(path);
  headrace::trace::GzipStream inflated(bytes, path);
  std::string text;
  std::string part(1 << 20, '\0');
  for (std::size_t got = 0; (got = inflated.read(part)) > 0;) text.append(part, 0, got);
  return text;
}

/// The text that `headrace_export` makes.
const std::string& text_of_all_slices() {
  static const std::string text = [] {
    const ScratchFile file("expected.json");
    timeline::GzipWriter out(file.path());
    write_slices(out);
    return read_back(file.path());
  }();
  return text;
}

void isal_alone(benchmark::State& state) {
  const ScratchFile file("isal.json.gz");
  const std::string& text = text_of_all_slices();
  {
    const Watch watch(state);
    for (auto _ : state) {
      timeline::GzipWriter out(file.path());
      out.write(text);
      out.finish();
      state.counters["MB"] = static_cast<double>(out.bytes_out()) / 1e6;
    }
  }
  const ScratchFile ours("ours.json.gz");
  timeline::GzipWriter out(ours.path());
  write_slices(out);
  if (read_back(file.path()) != text || read_back(ours.path()) != text)
    state.SkipWithError("not the same text");
}

void plain_copy(benchmark::State& state) {
  std::vector<char> buffer(text_of_a_slice().size() * 1024);
  const Watch watch(state);
  for (auto _ : state) {
    for (int i = 0; i < kSlices; ++i) {
      std::memcpy(buffer.data() + text_of_a_slice().size() * static_cast<std::size_t>(i % 1024),
                  text_of_a_slice().data(), text_of_a_slice().size());
      benchmark::ClobberMemory();
    }
  }
}

void plain_fwrite(benchmark::State& state) {
  const ScratchFile file("plain.json");
  const Watch watch(state);
  for (auto _ : state) {
    std::FILE* out = std::fopen(file.path().c_str(), "wb");
    for (int i = 0; i < kSlices; ++i) std::fwrite(text_of_a_slice().data(), 1, text_of_a_slice().size(), out);
    std::fclose(out);
  }
}

BENCHMARK_CAPTURE(headrace_export, plain, "export.json")
    ->Name("timeline/export/headrace_json")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(headrace_export, gzip, "export.json.gz")
    ->Name("timeline/export/headrace_gzip")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(isal_alone)
    ->Name("timeline/export/isal_alone_same_text")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(plain_copy)->Name("timeline/export/memcpy_alone")->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(plain_fwrite)
    ->Name("timeline/export/fwrite_uncompressed")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
