// Bytes as what ranks recorded of their links (a part of a kept summary), and as the metadata of a trace that names
// its process groups.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "demand.h"
#include "headrace/analysis/cluster/links.h"
#include "headrace/trace/process_groups.h"

namespace {

using namespace headrace;

void judge(std::string_view text) {
  std::vector<analysis::cluster::LinkRecord> records;
  for (std::int64_t rank = 0; rank < 3; ++rank) analysis::cluster::add_link_records(text, rank, records);
  const analysis::cluster::Links found = analysis::cluster::judge_links(records);
  demand(found.slow <= found.links.size(), "slow links are links");
  for (std::size_t i = 0; i < found.links.size(); ++i) {
    demand(found.links[i].slow == (i < found.slow), "slow links come first");
    demand(found.links[i].excess_s >= 0, "a link costs nothing less than nothing");
  }
}

void read_groups(std::string_view text) {
  trace::TraceFile file;
  file.metadata.emplace_back("distributedInfo", std::string(text));
  const std::vector<trace::ProcessGroup> groups = trace::process_groups(file);
  for (const trace::ParallelPlace& place : trace::places_of(groups, 1))
    demand(place.index < place.size, "a rank is one of its group");
  trace::ranks_in(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  judge(text);
  read_groups(text);
  return 0;
}
