// What an Ascend profile says about communication: its operations, their bandwidths, and who sent to whom.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/profile/errors.h"
#include "headrace/trace/ascend/profile_folder.h"

namespace headrace::trace::ascend {

/// Which operation a record is about.
struct CommunicationName {
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

/// Ranks are local to the group.
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
  /// The files that were read; empty if the profile has none.
  std::vector<std::string> files;
  /// Files that could not be read, and why.
  std::vector<FormatError> failures;
};

/// `communication.json` and `communication_matrix.json`, else the same tables of the analysis database.
/// Members of other types than expected count as absent. A file that is no JSON, or over 256 MiB, or a damaged
/// database is in `failures`; the other file is read all the same.
Communication read_communication(const ProfileFolder& profile);

/// The texts of those two files; `name` is what errors call them. FormatError if it is not an object.
void read_communication_json(std::string_view text, const std::string& name, Communication& into);
void read_communication_matrix_json(std::string_view text, const std::string& name, Communication& into);

}  // namespace headrace::trace::ascend
