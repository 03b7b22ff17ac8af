#include "headrace/analysis/device/collectives.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "analysis/device/order.h"
#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/device/figures.h"
#include "headrace/trace/process_groups.h"

namespace headrace::analysis::device {
namespace {

constexpr const char* kAllToAll = "all_to_all";

struct Form {
  std::string_view text;  ///< in a recorded name, without underscores and in lower case
  const char* name;
};
/// The first that is found counts: "reduce" is part of others.
constexpr std::array<Form, 10> kForms = {{{"allreduce", kAllReduce},
                                          {"allgather", kAllGather},
                                          {"reducescatter", kReduceScatter},
                                          {"alltoall", kAllToAll},
                                          {"sendrecv", kSendReceive},
                                          {"send", kSendReceive},
                                          {"recv", kSendReceive},
                                          {"broadcast", "broadcast"},
                                          {"reduce", "reduce"},
                                          {"barrier", "barrier"}}};

struct ElementType {
  std::string_view name;
  int bytes;
};
/// `at::toString` of a scalar type.
constexpr std::array<ElementType, 16> kTypes = {{{"Float", 4},
                                                 {"BFloat16", 2},
                                                 {"Half", 2},
                                                 {"Double", 8},
                                                 {"Int", 4},
                                                 {"Long", 8},
                                                 {"Byte", 1},
                                                 {"Char", 1},
                                                 {"Bool", 1},
                                                 {"Short", 2},
                                                 {"UInt16", 2},
                                                 {"UInt32", 4},
                                                 {"UInt64", 8},
                                                 {"ComplexHalf", 4},
                                                 {"ComplexFloat", 8},
                                                 {"ComplexDouble", 16}}};

double bytes_of_type(std::string_view name) {
  for (const ElementType& type : kTypes) {
    if (type.name == name) return type.bytes;
  }
  return name.starts_with("Float8") ? 1 : kNoFigure;
}

/// Arguments of a collective's event, by Kineto's names.
class Arguments {
 public:
  explicit Arguments(const trace::Columns& columns)
      : columns_(columns),
        collective_(columns.argument("Collective name")),
        type_(columns.argument("dtype")),
        in_(columns.argument("In msg nelems")),
        out_(columns.argument("Out msg nelems")),
        size_(columns.argument("Group size")),
        group_(columns.argument("Process Group Name")),
        ranks_(columns.argument("Process Group Ranks")),
        first_(columns.argument("Global rank start")),
        stride_(columns.argument("Global rank stride")) {}

  std::string_view collective(trace::Row row) const { return text_at(columns_, collective_, row); }
  std::string_view group(trace::Row row) const { return text_at(columns_, group_, row); }
  std::string_view ranks(trace::Row row) const { return text_at(columns_, ranks_, row); }
  /// Ranks of a shortened list (from 30 ranks on): from the first by the stride. Empty if not given.
  std::vector<std::int64_t> spaced_ranks(trace::Row row) const {
    constexpr std::int64_t kMost = 1'000'000;
    const std::int64_t first = integer_at(first_, row).value_or(trace::kAbsent);
    const std::int64_t stride = integer_at(stride_, row).value_or(trace::kAbsent);
    const std::int64_t count = members(row);
    std::vector<std::int64_t> found;
    if (first < 0 || stride < 1 || count < 1 || count > kMost || stride > kMost) return found;
    for (std::int64_t i = 0; i < count; ++i) found.push_back(first + i * stride);
    return found;
  }
  std::int64_t members(trace::Row row) const { return integer_at(size_, row).value_or(trace::kAbsent); }
  double bytes(trace::Row row) const {
    const std::int64_t elements = std::max(integer_at(in_, row).value_or(trace::kAbsent),
                                           integer_at(out_, row).value_or(trace::kAbsent));
    return elements < 0 ? kNoFigure
                        : static_cast<double>(elements) * bytes_of_type(text_at(columns_, type_, row));
  }

 private:
  const trace::Columns& columns_;
  const trace::ArgumentColumn* collective_;
  const trace::ArgumentColumn* type_;
  const trace::ArgumentColumn* in_;
  const trace::ArgumentColumn* out_;
  const trace::ArgumentColumn* size_;
  const trace::ArgumentColumn* group_;
  const trace::ArgumentColumn* ranks_;
  const trace::ArgumentColumn* first_;
  const trace::ArgumentColumn* stride_;
};

/// The 10th percentile of the durations; the shortest of fewer than ten.
std::int64_t shortest_tenth(std::vector<std::int64_t>& durations_ns) {
  const auto at = durations_ns.begin() + static_cast<std::ptrdiff_t>(durations_ns.size() / 10);
  std::nth_element(durations_ns.begin(), at, durations_ns.end());
  return *at;
}

}  // namespace

std::string collective_form(std::string_view recorded) {
  std::string plain;
  for (const char letter : recorded) {
    if (letter != '_') plain.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(letter))));
  }
  for (const Form& form : kForms) {
    if (plain.find(form.text) != std::string::npos) return form.name;
  }
  return std::string(recorded);
}

double bus_factor(const std::string& collective, std::int64_t members) noexcept {
  if (members < 2) return 1;
  const double others = static_cast<double>(members - 1) / static_cast<double>(members);
  if (collective == kAllReduce) return 2 * others;
  if (collective == kAllGather || collective == kReduceScatter || collective == kAllToAll) return others;
  return 1;
}

std::vector<CollectiveCalls> collective_calls(const trace::Trace& trace, const Scope& scope,
                                              std::int64_t* without) {
  const Arguments arguments(trace.columns());
  using Key = std::tuple<std::string_view, std::string_view, std::string_view, std::int64_t, double>;
  struct Calls {
    trace::Row first = trace::kNoRow;
    std::vector<std::int64_t> times_ns;
  };
  std::map<Key, Calls> found;
  std::int64_t unknown = 0;
  const DeviceWork work = device_work(trace, scope);
  for (const Work& each : work.work) {
    if (each.kind != KernelKind::communication) continue;
    const std::string_view collective = arguments.collective(each.row);
    const std::string_view group = arguments.group(each.row);
    const double bytes = arguments.bytes(each.row);
    if (collective.empty() || (group.empty() && arguments.ranks(each.row).empty()) || !(bytes >= 0)) {
      ++unknown;
      continue;
    }
    Calls& calls = found[{collective, group, arguments.ranks(each.row), arguments.members(each.row), bytes}];
    if (calls.first == trace::kNoRow) calls.first = each.row;
    calls.times_ns.push_back(each.end_ns - each.start_ns);
  }
  if (without != nullptr) *without = unknown;
  std::map<std::string, std::vector<std::int64_t>, std::less<>> members;
  for (trace::ProcessGroup& group : trace::process_groups(trace.file))
    members[std::move(group.name)] = std::move(group.ranks);
  std::vector<CollectiveCalls> result;
  for (auto& [key, same] : found) {
    std::vector<std::int64_t>& times_ns = same.times_ns;
    const auto& [collective, group, ranks, size, bytes] = key;
    CollectiveCalls calls;
    calls.collective = collective_form(collective);
    calls.group = group;
    calls.bytes = bytes;
    calls.ranks = trace::ranks_in(ranks);
    const auto known = members.find(group);
    // Long lists are shortened in events.
    if (calls.ranks.empty() && known != members.end()) calls.ranks = known->second;
    if (calls.ranks.empty()) calls.ranks = arguments.spaced_ranks(same.first);
    calls.members = calls.ranks.empty() ? size : static_cast<std::int64_t>(calls.ranks.size());
    calls.calls = static_cast<std::int64_t>(times_ns.size());
    for (const std::int64_t each : times_ns) calls.total_s += seconds(each);
    calls.transfer_s = seconds(shortest_tenth(times_ns));
    result.push_back(std::move(calls));
  }
  sort_descending(result, [](const CollectiveCalls& each) { return each.total_s; });
  return result;
}

Table collectives(std::span<const trace::Trace> traces, const Scope& scope) {
  Rows<CollectivesColumns> rows;
  for (const trace::Trace& trace : traces) {
    std::int64_t without = 0;
    for (const CollectiveCalls& each : collective_calls(trace, scope, &without)) {
      const double moved = each.bytes * bus_factor(each.collective, each.members);
      rows.add(trace.rank, each.collective, each.group, joined_numbers(each.ranks), each.members, each.bytes,
               each.calls, each.total_s, each.transfer_s,
               each.transfer_s > 0 ? moved / each.transfer_s / 1e9 : kNoFigure);
    }
    if (without > 0)
      rows.note(trace.rank,
                ": " + std::to_string(without) + " collectives are recorded without group or size");
  }
  if (rows.size() == 0 && rows.notes.empty()) rows.note("no collective is recorded");
  return rows.take();
}

}  // namespace headrace::analysis::device
