// The page of a memory snapshot: the finding, memory over the events by who holds it, the tables.
//
//     page.devices.push_back({"device 0", {"model.py:10 forward", "others"}, {{1e9, 2e9}, {1e8, 1e8}}, {}});
//     std::ofstream("memory.html") << report::to_html(page);
#pragma once

#include <string>
#include <vector>

#include "headrace/report/cluster.h"

namespace headrace::report {

/// Memory of a device at moments that follow each other.
struct MemoryLevels {
  std::string title;                            ///< "device 0"
  std::vector<std::string> places;              ///< who holds it
  std::vector<std::vector<double>> held_bytes;  ///< of each place, at each moment
  std::string highest;                          ///< "23.4 GiB", the label of the scale
  std::string begins;                           ///< the labels below: "event 0"
  std::string ends;
};

/// The sentences are those of the text; they are escaped here.
struct MemoryPage {
  std::string title;                  ///< "MemorySnapshot: 5 segments, 24 events"
  bool is_bad = false;                ///< whether a request failed, or memory grows
  std::vector<std::string> findings;  ///< the first is the heading
  std::vector<MemoryLevels> devices;
  std::vector<ClusterTable> tables;
  std::vector<std::string> remarks;
};

/// UTF-8, one file without script, as `to_html` of a report. Draws at most eight places of a device; more are
/// left out. Thread-safe; never fails.
std::string to_html(const MemoryPage& page);

}  // namespace headrace::report
