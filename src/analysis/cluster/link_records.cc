#include "headrace/analysis/cluster/link_records.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "headrace/analysis/device/collectives.h"
#include "headrace/trace/ascend/profile_folder.h"

namespace headrace::analysis::cluster {
namespace {

constexpr std::size_t kMaxRanks = 1'000'000;
/// A group of scattered ranks is not worth more of a summary.
constexpr std::size_t kLongestMembers = 1000;
constexpr std::size_t kLongestName = 100;
/// Sums of operations in the vendor's files.
constexpr std::string_view kSums = "Total Op Info";
constexpr std::string_view kTotal = "-total";
constexpr std::array<std::string_view, 3> kPartsOfSdma = {"HCCS", "PCIE", "SIO"};
constexpr double kMegabyte = 1e6;

template <class Number>
bool read(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// Without what would end a field.
std::string name(std::string_view text) {
  std::string plain(text.substr(0, kLongestName));
  std::replace_if(
      plain.begin(), plain.end(), [](char letter) { return static_cast<unsigned char>(letter) < ' '; }, ' ');
  return plain;
}

std::string number_text(double number) {
  std::array<char, 32> digits{};
  const auto [end, error] =
      std::to_chars(digits.data(), digits.data() + digits.size(), number, std::chars_format::general, 6);
  return {digits.data(), error == std::errc() ? end : digits.data()};
}

bool is_figure(double number) { return std::isfinite(number) && number >= 0; }

void add_collectives(const trace::Trace& trace, std::vector<std::int64_t> numbers,
                     std::vector<LinkRecord>& records) {
  const auto steps = static_cast<double>(numbers.size());
  device::Scope scope;
  scope.steps = std::move(numbers);
  for (const device::CollectiveCalls& calls : device::collective_calls(trace, scope)) {
    if (calls.ranks.size() < 2 || calls.bytes <= 0 || calls.transfer_s <= 0) continue;
    LinkRecord record;
    record.rank = trace.rank;
    record.kind = calls.collective;
    record.members = ranks_text(calls.ranks);
    record.calls = static_cast<double>(calls.calls) / steps;
    record.bytes = calls.bytes * device::bus_factor(calls.collective, calls.members);
    record.seconds = calls.transfer_s;
    records.push_back(std::move(record));
  }
}

struct Sum {
  double bytes = 0;
  double seconds = 0;
};

void add_sums(std::int64_t rank, LinkForm form, double steps,
              const std::map<std::tuple<std::string, std::string, std::string>, Sum>& sums,
              std::vector<LinkRecord>& records) {
  for (const auto& [key, sum] : sums) {
    const auto& [kind, group, members] = key;
    if (sum.seconds <= 0 || sum.bytes <= 0) continue;
    records.push_back({rank, form, kind, group, members, 1, sum.bytes / steps, sum.seconds / steps});
  }
}

void add_communication(std::int64_t rank, const trace::ascend::Communication& communication,
                       std::vector<LinkRecord>& records) {
  std::map<std::tuple<std::string, std::string, std::string>, Sum> pairs, groups;
  std::set<std::string> pair_steps, group_steps;
  for (const auto& link : communication.links) {
    if (!link.of.operation.ends_with(kTotal) || link.source < 0 || link.target < 0) continue;
    const std::string members = std::to_string(link.source) + '>' + std::to_string(link.target);
    // Its copy to itself says which rank of the group it is.
    if (link.source == link.target) {
      LinkRecord own{rank, LinkForm::local_pair, name(link.transport), name(link.of.group), members, 1, 0, 0};
      const auto same = [&](const LinkRecord& other) {
        return other.group == own.group && other.members == own.members;
      };
      if (std::none_of(records.begin(), records.end(), same)) records.push_back(std::move(own));
      continue;
    }
    if (!is_figure(link.size_mb) || !is_figure(link.transit_s)) continue;
    pair_steps.insert(link.of.step);
    Sum& sum = pairs[{name(link.transport), name(link.of.group), members}];
    sum.bytes += link.size_mb * kMegabyte;
    sum.seconds += link.transit_s;
  }
  std::set<std::tuple<std::string, std::string, std::string, std::string>>
      seen;  // a row for each packet size
  for (const auto& row : communication.bandwidths) {
    if (row.of.operation.starts_with(kSums) || row.of.group.empty()) continue;
    if (!is_figure(row.size_mb) || !is_figure(row.transit_s)) continue;
    if (!seen.insert({row.of.step, row.of.group, row.of.operation, row.transport}).second) continue;
    group_steps.insert(row.of.step);
    Sum& sum = groups[{name(row.transport), name(row.of.group), ""}];
    sum.bytes += row.size_mb * kMegabyte;
    sum.seconds += row.transit_s;
  }
  // SDMA is the sum of the transports inside a node, where these are listed.
  std::erase_if(groups, [&](const auto& each) {
    const auto has = [&](std::string_view part) {
      return groups.contains({std::string(part), std::get<1>(each.first), std::get<2>(each.first)});
    };
    return std::get<0>(each.first) == "SDMA" && std::any_of(kPartsOfSdma.begin(), kPartsOfSdma.end(), has);
  });
  add_sums(rank, LinkForm::local_pair, static_cast<double>(pair_steps.size()), pairs, records);
  add_sums(rank, LinkForm::transit, static_cast<double>(group_steps.size()), groups, records);
}

}  // namespace

std::vector<LinkRecord> link_records(const trace::Trace& trace, const trace::ascend::ProfileFolder* profile,
                                     std::vector<std::int64_t> steps, std::vector<std::string>& notes) {
  std::vector<LinkRecord> records;
  if (!steps.empty()) add_collectives(trace, std::move(steps), records);
  if (profile != nullptr) {
    const trace::ascend::Communication communication = trace::ascend::read_communication({profile, 1});
    add_communication(trace.rank, communication, records);
    for (const FormatError& failure : communication.failures) notes.emplace_back(failure.what());
  }
  return records;
}

std::string to_text(std::vector<LinkRecord> records) {
  // Those without a time name the rank's place in its groups: few, and needed for all others.
  std::stable_sort(records.begin(), records.end(), [](const LinkRecord& a, const LinkRecord& b) {
    return std::tuple(a.seconds > 0, -a.seconds * a.calls) < std::tuple(b.seconds > 0, -b.seconds * b.calls);
  });
  std::string text;
  std::size_t lines = 0;
  for (const LinkRecord& record : records) {
    if (lines == kMaxLinkRecords) break;
    if (record.members.size() > kLongestMembers) continue;
    ++lines;
    text += static_cast<char>(record.form);
    for (const std::string& field : {record.kind, record.group, record.members, number_text(record.calls),
                                     number_text(record.bytes), number_text(record.seconds)}) {
      text += '\t';
      text += field;
    }
    text += '\n';
  }
  return text;
}

void add_link_records(std::string_view text, std::int64_t rank, std::vector<LinkRecord>& into) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::array<std::string_view, 7> fields;
    std::size_t count = 0;
    for (bool more = true; more && count < fields.size(); ++count) {
      const std::size_t tab = line.find('\t');
      more = tab != std::string_view::npos;
      fields[count] = line.substr(0, tab);
      line.remove_prefix(more ? tab + 1 : line.size());
    }
    if (count != fields.size() || !line.empty() || fields[0].size() != 1) continue;
    if (std::string_view("ctpl").find(fields[0]) == std::string_view::npos) continue;
    LinkRecord record;
    record.rank = rank;
    record.form = static_cast<LinkForm>(fields[0][0]);
    record.kind = fields[1];
    record.group = fields[2];
    record.members = fields[3];
    if (!read(fields[4], record.calls) || !read(fields[5], record.bytes) || !read(fields[6], record.seconds))
      continue;
    if (is_figure(record.calls) && is_figure(record.bytes) && is_figure(record.seconds))
      into.push_back(std::move(record));
  }
}

std::string ranks_text(std::vector<std::int64_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::string text;
  for (std::size_t begin = 0; begin < ranks.size();) {
    std::size_t end = begin + 1;
    while (end + 1 < ranks.size() && ranks[end + 1] - ranks[end] == ranks[begin + 1] - ranks[begin]) ++end;
    // Two at a distance are shorter as they are.
    if (end < begin + 2 || end >= ranks.size()) end = begin;
    if (!text.empty()) text += ',';
    text += std::to_string(ranks[begin]);
    if (end > begin) {
      text += '-' + std::to_string(ranks[end]);
      if (const std::int64_t stride = ranks[begin + 1] - ranks[begin]; stride > 1)
        text += '/' + std::to_string(stride);
    }
    begin = end + 1;
  }
  return text;
}

std::vector<RankRun> runs_of_text(std::string_view text) {
  std::vector<RankRun> runs;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view word = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    RankRun run;
    if (const std::size_t slash = word.find('/'); slash != std::string_view::npos) {
      if (!read(word.substr(slash + 1), run.stride) || run.stride < 1) return {};
      word = word.substr(0, slash);
    }
    const std::size_t dash = word.find('-');
    if (!read(word.substr(0, dash), run.first) || run.first < 0) return {};
    run.last = run.first;
    if (dash != std::string_view::npos && (!read(word.substr(dash + 1), run.last) || run.last < run.first))
      return {};
    runs.push_back(run);
  }
  return runs;
}

std::vector<std::int64_t> ranks_of_text(std::string_view text) {
  std::vector<std::int64_t> ranks;
  for (const RankRun& run : runs_of_text(text)) {
    const std::int64_t more = (run.last - run.first) / run.stride;
    if (static_cast<std::uint64_t>(more) + ranks.size() >= kMaxRanks) return {};
    for (std::int64_t i = 0; i <= more; ++i) ranks.push_back(run.first + i * run.stride);
  }
  return ranks;
}

}  // namespace headrace::analysis::cluster
