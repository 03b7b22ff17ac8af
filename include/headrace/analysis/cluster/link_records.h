// One rank's records of its links to other ranks: a bounded part of its summary.
//
//     const std::string text = to_text(link_records(trace, profile, steps, notes));   // where the rank's files are
//     add_link_records(text, rank, records);                                   // where the job is judged
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/trace/ascend/profile_folder.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::cluster {

enum class LinkForm : char {
  collective = 'c',  ///< a group; the time has waits for other ranks in it
  transit = 't',     ///< a group; the time is that of transfers alone
  pair = 'p',        ///< two ranks; the time is that of transfers alone
  local_pair = 'l',  ///< the same; its ranks are those within `group`
};

struct LinkRecord {
  std::int64_t rank = 0;  ///< who recorded it
  LinkForm form = LinkForm::collective;
  std::string kind;     ///< "all_reduce", "HCCS", "RDMA"
  std::string group;    ///< its name, where ranks are not known by their numbers in the job
  std::string members;  ///< as `ranks_text`, of a pair "3>5"; empty: the ranks that recorded the group
  double calls = 0;     ///< in a step
  double bytes = 0;     ///< over the busiest link, of a call
  double seconds = 0;   ///< of a call
};

/// Records beyond these are left out; the ones that take most time are kept.
inline constexpr std::size_t kMaxLinkRecords = 128;

/// Records of a rank's trace in the given steps (none: no records, because nothing can be compared with a step)
/// and, where it has one, of its Ascend profile, whose files count by their own steps. Files of the profile that
/// cannot be read are in `notes`.
std::vector<LinkRecord> link_records(const trace::Trace& trace, const trace::ascend::ProfileFolder* profile,
                                     std::vector<std::int64_t> steps, std::vector<std::string>& notes);

/// The records with most time, a line each: `form kind group members calls bytes seconds` between tabs.
std::string to_text(std::vector<LinkRecord> records);
/// Lines that are damaged are passed over.
void add_link_records(std::string_view text, std::int64_t rank, std::vector<LinkRecord>& into);

/// first, first + stride, ... last.
struct RankRun {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t stride = 1;
};

/// Ranks in a short form that is the same for the same ranks: "0-7", "0-56/8" (every eighth), "1,4,9".
std::string ranks_text(std::vector<std::int64_t> ranks);
/// The runs of such a text; empty for a text of another form.
std::vector<RankRun> runs_of_text(std::string_view text);
/// The ranks of such a text; empty for a text of another form, and for more than a million ranks.
std::vector<std::int64_t> ranks_of_text(std::string_view text);

}  // namespace headrace::analysis::cluster
