// The folders that the Ascend profilers of PyTorch and MindSpore write, their communication and their
// counters.
//
//     for (const auto& profile : headrace::trace::ascend::find_profiles("profiles/"))
//       std::cout << profile.rank.value_or(-1) << ": " << profile.events_file() << '\n';
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/profile/errors.h"

namespace headrace::trace {
class Database;
}

namespace headrace::trace::ascend {

/// One `*_ascend_pt` or `*_ascend_ms` folder: what one rank recorded. Paths that do not exist are empty.
struct ProfileFolder {
  std::string path;
  /// Folder of tables and traces: `ASCEND_PROFILER_OUTPUT`, or `path` itself.
  std::string output;
  /// From the name of `profiler_info_N.json`, else from what that file says, else from the database's name.
  std::optional<std::int64_t> rank;
  std::string trace_view;
  std::string database;
  /// `analysis.db` or `communication_analyzer.db`: tables about communication and steps.
  std::string analysis_database;
  std::string info;
  std::string metadata;

  /// The file with the events: the JSON if there is one, because the database leaves some of them out. Empty
  /// if the folder has neither.
  const std::string& events_file() const noexcept { return trace_view.empty() ? database : trace_view; }
};

/// Profiles at `path` (a profile's folder or its `ASCEND_PROFILER_OUTPUT`) or up to three folders below it,
/// by rank and then by path; empty if there is none. Folders that cannot be read count as empty. At most
/// 100,000 entries are looked at.
std::vector<ProfileFolder> find_profiles(const std::string& path);

/// The profile that a trace or a table file belongs to, nothing if it lies in no such folder.
std::optional<ProfileFolder> profile_of(const std::string& file);

/// The number at the end of `<folder>/..._profiler_N.db`, nothing for other names.
std::optional<std::int64_t> rank_of_database(const std::string& file);

/// Rank and operation that a record is about.
struct CommunicationName {
  std::int64_t rank = -1;  ///< -1 if unknown
  std::string step;
  bool point_to_point = false;
  /// "hcom_allReduce__271_0_1", "Total Op Info" for sums; of a matrix "allreduce-top1".
  std::string operation;
  std::string group;
};

/// Times in seconds, NaN where the file has none. idle = elapse - transit - wait; synchronisation is the wait
/// before the first transfer.
struct CommunicationTime {
  CommunicationName of;
  /// -1 if unknown. The file's microseconds have a grain of 0.25.
  std::int64_t start_ns = -1;
  double elapse_s = 0;
  double transit_s = 0;
  double wait_s = 0;
  double synchronisation_s = 0;
  double idle_s = 0;
};

/// One row per size of packets, or one with `packets` 0 if the file has no sizes. Sizes in 10^6 bytes.
struct CommunicationBandwidth {
  CommunicationName of;
  std::string transport;  ///< RDMA, HCCS, PCIE, SDMA, SIO
  double size_mb = 0;
  double transit_s = 0;
  double bandwidth_gbps = 0;
  double large_packet_ratio = 0;
  double packet_mb = 0;
  std::int64_t packets = 0;
  double packets_s = 0;
};

/// Ranks are local to the group; of a cluster's summary, which is of no rank, they are global.
struct CommunicationLink {
  CommunicationName of;
  std::int64_t source = -1;
  std::int64_t target = -1;
  std::string transport;
  double size_mb = 0;
  double transit_s = 0;
  double bandwidth_gbps = 0;
  std::string slowest;  ///< the operation that the figures are of
};

struct Communication {
  std::vector<CommunicationTime> times;
  std::vector<CommunicationBandwidth> bandwidths;
  std::vector<CommunicationLink> links;
  /// The files that were read; empty if no profile has one.
  std::vector<std::string> files;
  std::size_t profiles = 0;  ///< with such files
  /// Files that could not be read, and why.
  std::vector<FormatError> failures;
};

/// Each profile's `communication.json` and `communication_matrix.json`, else the same tables of its analysis
/// database. Members of other types than expected count as absent. A file that is no JSON, or over 256 MiB,
/// or a damaged database is in `failures`; the other file is read all the same.
Communication read_communication(std::span<const ProfileFolder> profiles);

/// The text of such a file; `name` is what errors call it. FormatError if it is not an object.
using ReadCommunication = void(std::string_view text, const std::string& name, Communication& into);
ReadCommunication read_communication_json, read_communication_matrix_json;
/// Those of the summary of a cluster: `cluster_communication.json` and `cluster_communication_matrix.json`.
ReadCommunication read_cluster_communication_json, read_cluster_matrix_json;
/// Its tables ClusterCommunicationTime, -Bandwidth and -Matrix; CommunicationGroupMapping tells which groups
/// are point to point. `of_cluster` false: CommAnalyzerTime, -Bandwidth and -Matrix of one profile.
void read_communication_tables(Database& database, bool of_cluster, Communication& into);

/// A counter over time.
struct Counter {
  std::string process;                                  ///< the row of the timeline: "HBM"
  std::int64_t pid = 0;                                 ///< of that row, as in trace_view.json
  std::string name;                                     ///< "HBM 0/Read"
  std::string unit;                                     ///< "Read(MB/s)"; MB is 2^20 bytes, KB is 2^10
  std::vector<std::pair<std::int64_t, double>> values;  ///< nanoseconds and value, in the order of the file
};

/// From the tables AICORE_FREQ, HBM, LLC, NPU_MEM, SOC_BANDWIDTH_LEVEL and ACC_PMU, those that there are.
/// Rows without a moment or a value are left out. Nothing of a file that is no database.
std::vector<Counter> read_counters(const std::string& path);
std::vector<Counter> read_counters(Database& database);

}  // namespace headrace::trace::ascend
