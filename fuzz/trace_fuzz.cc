// Bytes as a trace file: the reader refuses them or makes columns of them, and nothing else.
//
// The first byte chooses the window, from one byte up, so that short inputs cross its borders too; the rest
// is the file.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "headrace/profile/errors.h"
#include "headrace/trace/reader.h"

namespace {

using namespace headrace;

void demand(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

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

void read(std::string_view text, std::size_t window) {
  trace::ReadOptions options;
  options.window_bytes = window;
  options.longest_event_bytes = 4096;
  trace::MemoryBytes source(text);
  try {
    check(trace::read_source(source, "input", options));
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
