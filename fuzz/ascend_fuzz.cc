// Bytes as the files of an Ascend profile: a database, a CSV table, what is said about communication, and the
// database of a cluster's analysis.
//
// The first byte chooses which of them the rest is.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/device/profiler_tables.h"
#include "demand.h"
#include "demand_rows.h"
#include "headrace/analysis/device/advice.h"
#include "headrace/analysis/device/cluster.h"
#include "headrace/analysis/device/steps.h"
#include "headrace/profile/errors.h"
#include "headrace/trace/ascend/profile_folder.h"
#include "headrace/trace/csv_reader.h"
#include "headrace/trace/trace.h"

namespace {

using namespace headrace;

void read_events(trace::TraceFile file) {
  demand_rows(file.columns);
  std::vector<trace::Trace> traces;
  traces.push_back(trace::resolve(std::move(file)));
  const analysis::Table steps = analysis::device::step_time(traces);
  for (const double free : steps.numbers("free_s")) demand(free >= 0, "free time is not negative");
  const analysis::Table advice = analysis::device::advice(traces);
  demand(advice.rows() >= 13, "each rule says something");
}

void read_csv(std::string_view text) {
  trace::MemoryBytes bytes(text);
  trace::CsvReader reader(bytes, "input.csv");
  std::vector<std::string> fields;
  std::size_t sum = 0;
  while (reader.next(fields)) {
    demand(!fields.empty(), "a record has a field");
    for (const std::string& field : fields) sum += field.size();
  }
  demand(sum <= text.size(), "fields are of the file");
}

void read_communication(std::string_view text) {
  analysis::device::ClusterData data;
  for (int rank = 0; rank < 3; ++rank) {
    trace::ascend::Communication& into = data.communication;
    trace::ascend::read_communication_json(text, "input.json", into);
    trace::ascend::read_communication_matrix_json(text, "input.json", into);
    for (auto* const read :
         {&trace::ascend::read_cluster_communication_json, &trace::ascend::read_cluster_matrix_json}) {
      try {
        read(text, "input.json", into);
      } catch (const FormatError&) {
      }
    }
    for (auto& time : into.times) time.of.rank = time.of.rank < 0 ? rank : time.of.rank;
    for (auto& bandwidth : into.bandwidths)
      bandwidth.of.rank = bandwidth.of.rank < 0 ? rank : bandwidth.of.rank;
    for (auto& link : into.links) link.of.rank = link.of.rank < 0 ? rank : link.of.rank;
  }
  analysis::device::cluster_tables(data);
}

void read_tables(std::string_view bytes) {
  trace::Database database(bytes, "input.db");
  for (const std::string& name : analysis::device::database_tables(database))
    demand(!analysis::device::database_table(database, 0, name).columns().empty(), "a table has columns");
}

void read_cluster(std::string_view bytes) {
  trace::Database database(bytes, "input.db");
  analysis::device::ClusterData data;
  analysis::device::read_cluster_database(database, data);
  analysis::device::cluster_tables(data);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0] % 6) {
      case 0:
        for (trace::TraceFile& file : trace::read_bytes(text, "input.db")) read_events(std::move(file));
        break;
      case 1:
        read_csv(text);
        break;
      case 2:
        read_communication(text);
        break;
      case 3: {
        trace::MemoryBytes source(text);
        read_events(trace::read_source(source, "trace_view.json"));
        break;
      }
      case 4:
        read_tables(text);
        break;
      case 5:
        read_cluster(text);
        break;
    }
  } catch (const FormatError&) {
  }
  return 0;
}
