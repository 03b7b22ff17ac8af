// Bytes as a trace file: the reader refuses them or makes columns of them, and every table is made of those.
//
// The first byte chooses the window, from one byte up, so that short inputs cross its borders too; the rest
// is the file.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "demand.h"
#include "headrace/analysis/device/annotations.h"
#include "headrace/analysis/device/collectives.h"
#include "headrace/analysis/device/critical_path.h"
#include "headrace/analysis/device/device_idle.h"
#include "headrace/analysis/device/launches.h"
#include "headrace/analysis/device/memory.h"
#include "headrace/analysis/device/operators.h"
#include "headrace/analysis/device/step_points.h"
#include "headrace/analysis/device/steps.h"
#include "headrace/analysis/device/time_breakdown.h"
#include "headrace/profile/errors.h"
#include "headrace/trace/trace.h"

namespace {

using namespace headrace;
using analysis::Table;

/// What every analysis may rely on.
void check(const trace::TraceFile& file) {
  const trace::Columns& columns = file.columns;
  const std::size_t rows = columns.size();
  demand(columns.name.size() == rows && columns.category.size() == rows && columns.phase.size() == rows &&
             columns.duration_ns.size() == rows && columns.lane.size() == rows &&
             columns.stream.size() == rows && columns.correlation.size() == rows &&
             columns.external_id.size() == rows && columns.position.size() == rows,
         "columns have one length");
  for (trace::Row row = 0; row < rows; ++row) {
    demand(columns.name[row] < columns.names.size() && columns.category[row] < columns.names.size(),
           "names exist");
    demand(columns.lane[row] < columns.lanes.size(), "lanes exist");
    demand(columns.duration_ns[row] >= 0 && columns.end_ns(row) >= columns.start_ns[row],
           "an event ends after it begins");
    demand(row == 0 || columns.position[row] > columns.position[row - 1],
           "rows are in the order of the file");
  }
  for (const trace::ArgumentColumn& column : columns.arguments) {
    demand(column.rows.size() == column.integers.size() + column.numbers.size() + column.texts.size(),
           "an argument has a value in each of its rows");
    for (std::size_t i = 0; i < column.rows.size(); ++i) {
      demand(column.rows[i] < rows && (i == 0 || column.rows[i] > column.rows[i - 1]),
             "rows of an argument ascend");
    }
  }
  demand(file.notes.sentences().empty() == file.notes.clean(), "what is wrong is said");
}

/// Each table of whatever the file holds.
void make_tables(const trace::Trace& trace) {
  using namespace analysis::device;
  const std::span<const trace::Trace> one(&trace, 1);
  IdleBreakdownOptions idle_options;
  idle_options.interval_statistics = true;
  const Table time = time_breakdown(one);
  for (const double idle : time.numbers("idle_s")) demand(idle >= 0, "idle time is not negative");
  overlap(one);
  kernel_breakdown(one);
  kernels(one);
  steps(one);
  idle_breakdown(one, idle_options);
  queue_length(one);
  memory_bandwidth(one);
  launches(one);
  annotations(one);
  SequencesOptions sequence_options;
  sequence_options.operator_name = "a";
  sequences(one, sequence_options);
  operator_sequences(one);
  OperatorsOptions operator_options;
  operator_options.by_input_shapes = true;
  operator_options.stack_frames = 3;
  operators(one, operator_options);
  step_breakdown(one);
  step_points(one);
  stragglers(one);
  diff(trace, trace);
  const CriticalPath path = critical_path(trace);
  demand(!path.acyclic || path.length_ns >= 0, "a path has a length");
  const DeviceIdle idle = device_idle(trace, loader_waits(trace));
  const Table& parts = idle.steps;
  for (std::size_t row = 0; row < parts.rows(); ++row) {
    double sum = 0;
    for (const char* cause :
         {"input_s", "launch_s", "communication_s", "copy_s", "kernel_gap_s", "unknown_s"}) {
      sum += parts.numbers(cause)[row];
    }
    const double whole = parts.numbers("idle_s")[row];
    demand(std::abs(sum - whole) <= 1e-9 * (1 + std::abs(whole)), "causes sum to the idle time");
  }
}

void read(std::string_view text, std::size_t window) {
  trace::ReadOptions options;
  options.window_bytes = window;
  options.longest_event_bytes = 4096;
  trace::MemoryBytes source(text);
  try {
    trace::TraceFile file = trace::read_source(source, "input", options);
    check(file);
    make_tables(trace::resolve(std::move(file)));
  } catch (const FormatError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  read(text, std::size_t{1} + 3 * std::size_t{data[0]});
  return 0;
}
