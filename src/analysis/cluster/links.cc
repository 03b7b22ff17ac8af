#include "headrace/analysis/cluster/links.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "step_matrix.h"

namespace headrace::analysis::cluster {
namespace {

/// Fewest links for a spread: among fewer, one below half of the median is slow.
constexpr std::size_t kFewForSpread = 8;

/// Messages of one size, of one link.
struct Use {
  bool is_pair = false;
  std::string kind;
  std::string members;
  bool has_latency = false;
  double calls = 0;
  double bytes = 0;    ///< of a call
  double seconds = 0;  ///< of a call
  std::size_t records = 0;
  bool slow = false;
  double excess_s = 0;
  double usual_s = 0;  ///< 0: too few of its kind

  double rate() const { return bytes / seconds; }
};

std::optional<std::pair<std::int64_t, std::int64_t>> pair_of(std::string_view members) {
  const std::size_t mark = members.find('>');
  if (mark == std::string_view::npos) return std::nullopt;
  const auto number = [](std::string_view text) {
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? value : -1;
  };
  const std::pair ranks(number(members.substr(0, mark)), number(members.substr(mark + 1)));
  if (ranks.first < 0 || ranks.second < 0) return std::nullopt;
  return ranks;
}

/// Doublings of the size.
int size_class(double bytes) { return static_cast<int>(std::floor(std::log2(std::max(bytes, 1.0)))); }

/// Ranks of groups by their place in the job.
class Places {
 public:
  explicit Places(std::span<const LinkRecord> records) {
    for (const LinkRecord& record : records) {
      if (record.form == LinkForm::transit) members_[record.group].push_back(record.rank);
      const auto pair = record.form == LinkForm::local_pair ? pair_of(record.members) : std::nullopt;
      if (pair && pair->first == pair->second) ranks_.try_emplace({record.group, pair->first}, record.rank);
    }
    for (auto& [group, ranks] : members_) texts_[group] = ranks_text(ranks);
  }
  /// "3>5" in ranks of the job; empty if they are not known.
  std::string pair(const LinkRecord& record) const {
    const auto local = pair_of(record.members);
    if (!local) return "";
    if (record.form == LinkForm::pair) return record.members;
    const auto source = ranks_.find({record.group, local->first});
    const auto target = ranks_.find({record.group, local->second});
    if (source == ranks_.end() || target == ranks_.end()) return "";
    return std::to_string(source->second) + '>' + std::to_string(target->second);
  }
  std::string members(const std::string& group) const { return texts_.at(group); }

 private:
  std::map<std::pair<std::string, std::int64_t>, std::int64_t> ranks_;
  std::map<std::string, std::vector<std::int64_t>> members_;
  std::map<std::string, std::string> texts_;
};

/// The records of one link and one size, from all ranks that have them.
std::vector<Use> uses_of(std::span<const LinkRecord> records, std::size_t& unknown) {
  const Places places(records);
  std::map<std::tuple<LinkForm, std::string, std::string, int>, Use> found;
  for (const LinkRecord& record : records) {
    if (!(record.seconds > 0) || !(record.bytes > 0)) continue;
    Use use{
        false, record.kind, record.members, false, record.calls, record.bytes, record.seconds, 1, false, 0,
        0};
    LinkForm form = record.form;
    if (form == LinkForm::pair || form == LinkForm::local_pair) {
      form = LinkForm::pair;
      use.is_pair = true;
      use.members = places.pair(record);
    } else if (form == LinkForm::transit) {
      use.members = places.members(record.group);
    } else {
      use.has_latency = true;
    }
    if (use.members.empty()) {
      ++unknown;
      continue;
    }
    const auto [at, is_new] = found.try_emplace({form, use.kind, use.members, size_class(use.bytes)}, use);
    if (is_new) continue;
    Use& known = at->second;
    known.calls = std::max(known.calls, use.calls);
    ++known.records;
    if (use.has_latency) {
      if (use.rate() > known.rate()) std::tie(known.bytes, known.seconds) = std::tie(use.bytes, use.seconds);
    } else {  // sums become means below
      known.bytes += use.bytes;
      known.seconds += use.seconds;
    }
  }
  std::vector<Use> uses;
  for (auto& [key, use] : found) {
    if (!use.has_latency) {
      use.bytes /= static_cast<double>(use.records);
      use.seconds /= static_cast<double>(use.records);
    }
    uses.push_back(std::move(use));
  }
  return uses;
}

/// Features that two groups' ranks share if the groups are of one kind: distances, not numbers.
std::string shape_of(const Use& use) {
  if (use.is_pair) return "";
  const std::vector<RankRun> runs = runs_of_text(use.members);
  std::string shape;
  for (const RankRun& run : runs) {
    shape += std::to_string(run.first - runs.front().first) + '-' +
             std::to_string(run.last - runs.front().first) + '/' + std::to_string(run.stride) + ',';
  }
  return runs.empty() ? use.members : shape;
}

void judge_kind(std::span<Use*> uses, const LinkThresholds& thresholds) {
  std::map<int, std::vector<double>> seconds_a_byte;
  for (const Use* use : uses) seconds_a_byte[size_class(use->bytes)].push_back(1 / use->rate());
  struct Usual {
    double rate = 0;
    double least = 0;  // that a slow one is below
  };
  std::map<int, Usual> usual;
  for (const auto& [size, own] : seconds_a_byte) {
    // Sizes close to a power of two fall to both sides of it.
    std::vector<double> rates;
    for (int near = size - 1; near <= size + 1; ++near) {
      const auto at = seconds_a_byte.find(near);
      if (at == seconds_a_byte.end()) continue;
      for (const double each : at->second) rates.push_back(1 / each);
    }
    if (rates.size() < thresholds.fewest) continue;
    const double spread = spread_of(rates);
    const std::size_t count = rates.size();
    const double rate = lower_median(rates);
    // The spread of a few is a matter of chance.
    const double most = count < kFewForSpread ? rate / 2 : rate;
    usual[size] = {rate, std::min(thresholds.spreads * spread, most)};
  }
  for (Use* use : uses) {
    const auto at = usual.find(size_class(use->bytes));
    if (at == usual.end()) continue;
    const auto& [rate, least] = at->second;
    use->usual_s = use->bytes / rate;
    const bool is_small = use->has_latency && use->bytes <= thresholds.latency_bytes;
    const double share = is_small ? 1 / thresholds.slow_latency : thresholds.slow_share;
    use->slow = use->rate() < share * rate && rate - use->rate() > least;
    if (use->slow) use->excess_s = use->calls * (use->seconds - use->usual_s);
  }
}

/// Sizes of one link together. `uses`: ascending by size.
Link link_of(std::span<const Use* const> uses, const LinkThresholds& thresholds) {
  Link link;
  link.is_pair = uses.front()->is_pair;
  link.kind = uses.front()->kind;
  link.members = uses.front()->members;
  for (const Use* use : uses) {
    link.calls += use->calls;
    link.bytes += use->calls * use->bytes;
    link.busy_s += use->calls * use->seconds;
    link.excess_s += use->excess_s;
    link.slow = link.slow || use->slow;
    const bool is_small = use->has_latency && use->bytes <= thresholds.latency_bytes;
    if (is_small && !link.latency_s) {
      link.latency_s = use->seconds;
      if (use->usual_s > 0) link.usual_latency_s = use->usual_s;
    }
    if (is_small) continue;
    link.bandwidth_gbps = use->rate() / 1e9;
    link.usual_gbps.reset();
    if (use->usual_s > 0) link.usual_gbps = use->bytes / use->usual_s / 1e9;
  }
  return link;
}

bool has(const Link& link, std::int64_t rank) {
  if (const auto pair = pair_of(link.members)) return pair->first == rank || pair->second == rank;
  const std::vector<RankRun> runs = runs_of_text(link.members);
  return std::any_of(runs.begin(), runs.end(), [&](const RankRun& run) {
    return run.first <= rank && rank <= run.last && (rank - run.first) % run.stride == 0;
  });
}

std::optional<std::int64_t> common_rank(std::span<const Link> slow) {
  if (slow.size() < 2) return std::nullopt;
  std::vector<std::int64_t> common = ranks_of_text(slow[0].members);
  if (const auto pair = pair_of(slow[0].members)) common = {pair->first, pair->second};
  for (const Link& link : slow.subspan(1))
    std::erase_if(common, [&](std::int64_t rank) { return !has(link, rank); });
  return common.size() == 1 ? std::optional(common.front()) : std::nullopt;
}

}  // namespace

Links judge_links(std::span<const LinkRecord> records, const LinkThresholds& thresholds) {
  Links result;
  std::vector<Use> uses = uses_of(records, result.unknown);
  std::map<std::tuple<bool, bool, std::string, std::string>, std::vector<Use*>> kinds;
  std::map<std::string, std::string> shapes;
  for (Use& use : uses) {
    const auto [shape, is_new] = shapes.try_emplace(use.members);
    if (is_new) shape->second = shape_of(use);
    kinds[{use.is_pair, use.has_latency, use.kind, shape->second}].push_back(&use);
  }
  for (auto& [kind, of_kind] : kinds) judge_kind(of_kind, thresholds);
  std::map<std::tuple<bool, std::string, std::string>, std::vector<const Use*>> by_link;
  for (const Use& use : uses) by_link[{use.is_pair, use.kind, use.members}].push_back(&use);
  for (auto& [key, of_link] : by_link) {
    std::stable_sort(of_link.begin(), of_link.end(),
                     [](const Use* a, const Use* b) { return a->bytes < b->bytes; });
    result.links.push_back(link_of(of_link, thresholds));
  }
  std::stable_sort(result.links.begin(), result.links.end(), [](const Link& a, const Link& b) {
    return std::tuple(!a.slow, -a.excess_s, -a.busy_s) < std::tuple(!b.slow, -b.excess_s, -b.busy_s);
  });
  while (result.slow < result.links.size() && result.links[result.slow].slow) ++result.slow;
  result.common_rank = common_rank(std::span(result.links).first(result.slow));
  return result;
}

}  // namespace headrace::analysis::cluster
