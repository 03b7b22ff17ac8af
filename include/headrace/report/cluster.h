// The page of a job of many ranks: the verdict, a heat map of ranks against steps, the tables.
//
//     page.map = analysis::cluster::heat_map(ranks);
//     std::ofstream("job.html") << report::to_html(page);
#pragma once

#include <string>
#include <vector>

#include "headrace/analysis/cluster/heat_map.h"

namespace headrace::report {

struct ClusterTable {
  std::string title;
  std::vector<std::string> columns;  ///< "#" in front: numbers
  std::vector<std::vector<std::string>> rows;
};

/// The sentences are those of the text; they are escaped here.
struct ClusterPage {
  std::string title;                 ///< "4,096 ranks"
  std::string kind;                  ///< "SLOW RANK"
  bool is_bad = false;               ///< whether the verdict is one to act on
  std::string summary;               ///< the heading: one sentence
  std::string why;                   ///< what follows it; may be empty
  std::vector<std::string> advice;   ///< what to do, best first
  analysis::cluster::HeatMap worst;  ///< the latest ranks, a row each
  analysis::cluster::HeatMap map;    ///< all of them
  std::vector<std::string> columns;  ///< of the table of ranks; "#" in front: numbers
  std::vector<std::vector<std::string>> rows;
  std::vector<ClusterTable> tables;  ///< in front of the ranks: stages, links
  std::vector<std::string> remarks;
};

/// UTF-8, one file without script, as `to_html` of a report. Its size does not depend on the number of ranks.
/// Thread-safe; never fails.
std::string to_html(const ClusterPage& page);

}  // namespace headrace::report
