#include "analysis/traced_input/iterators.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace headrace::analysis {
namespace {

using trace::Row;

constexpr std::string_view kRoot = "Iterator::";
/// A call of a buffer that lasts longer than this has waited.
constexpr std::int64_t kWaitsNs = 100'000;

/// "Iterator::Root::Zip[1]::Map" -> "Iterator::Root::Zip::Map".
std::string path_of(std::string_view name) {
  std::string path;
  bool inside = false;
  for (const char c : name) {
    if (c == '[') inside = true;
    if (!inside) path += c;
    if (c == ']') inside = false;
  }
  return path;
}

/// "ParallelMapV2" -> "ParallelMap".
std::string family_of(std::string_view path) {
  std::string_view family = path.substr(path.rfind(':') + 1);
  const std::size_t version = family.find_last_not_of("0123456789");
  if (version != std::string_view::npos && version > 0 && version + 1 < family.size() &&
      family[version] == 'V')
    family = family.substr(0, version);
  return std::string(family);
}

class IteratorFinder {
 public:
  IteratorFinder(const trace::Trace& trace, device::Interval time)
      : trace_(trace),
        columns_(trace.columns()),
        time_(time),
        of_name_(columns_.names.size(), kUnknown),
        self_(columns_.size()) {}

  std::vector<TracedIterator> find() {
    for (Row row = 0; row < columns_.size(); ++row) {
      if (columns_.phase[row] != 'X') continue;
      const int at = iterator_of(row);
      if (at >= 0 && columns_.start_ns[row] >= time_.begin_ns && columns_.start_ns[row] < time_.end_ns)
        add(row, at);
      if (at < 0 && columns_.name_of(row).starts_with("PyFunc")) mark_python(row);
    }
    for (std::size_t i = 0; i < found_.size(); ++i) finish(i);
    return std::move(found_);
  }

 private:
  static constexpr int kUnknown = -2;

  int iterator_of(Row row) {
    int& known = of_name_[columns_.name[row]];
    if (known == kUnknown) {
      const std::string_view name = columns_.name_of(row);
      known = name.starts_with(kRoot) ? named(path_of(name)) : -1;
    }
    return known;
  }

  int named(const std::string& path) {
    const auto [at, is_new] = of_path_.try_emplace(path, static_cast<int>(of_path_.size()));
    if (!is_new) return at->second;
    const int index = at->second;
    found_.emplace_back();
    times_.emplace_back();
    nested_.push_back(0);
    const std::size_t above = path.rfind("::");
    // "Iterator::Root" is the first that is one.
    const int parent =
        above == std::string::npos || path.substr(0, above) == "Iterator" ? -1 : named(path.substr(0, above));
    TracedIterator& made = found_[static_cast<std::size_t>(index)];
    made.path = path;
    made.family = family_of(path);
    made.parent = parent;
    if (parent >= 0) found_[static_cast<std::size_t>(parent)].children.push_back(index);
    return index;
  }

  std::int64_t argument(Row row, std::string_view name, std::int64_t otherwise) const {
    const trace::ArgumentColumn* const column = columns_.argument(name);
    const auto at = column == nullptr ? std::nullopt : column->find(row);
    return at ? column->integers[*at] : otherwise;
  }

  /// The iterator in whose call, on the same thread, this one was made.
  int caller_of(Row row) {
    for (Row above = trace_.calls.parent_of(row); above != trace::kNoRow;
         above = trace_.calls.parent_of(above)) {
      if (columns_.lane[above] != columns_.lane[row]) return -1;
      const int at = iterator_of(above);
      if (at >= 0) {
        caller_row_ = above;
        return at;
      }
    }
    return -1;
  }

  void add(Row row, int index) {
    const std::int64_t duration = columns_.duration_ns[row];
    const int caller = caller_of(row);
    auto& it = found_[static_cast<std::size_t>(index)];
    ++it.calls;
    it.total_ns += duration;
    self_[row] += duration;
    if (caller >= 0) self_[caller_row_] -= duration;
    if (caller >= 0 && caller == it.parent) ++nested_[static_cast<std::size_t>(index)];
    times_[static_cast<std::size_t>(index)].push_back(row);
    it.parallelism = std::max(it.parallelism, argument(row, "parallelism", 0));
    it.cores = std::max(it.cores, argument(row, "cpu_budget", 0));
    it.capacity = std::max(it.capacity, argument(row, "buffer_limit", 0));
    const std::int64_t level = argument(row, "buffered_elements", -1);
    if (level >= 0) {
      it.levels.push_back(level);
    } else if (duration > kWaitsNs) {
      it.levels.push_back(0);
    }
    const trace::ArgumentColumn* const names = columns_.argument("name");
    const auto named_at = names == nullptr || !it.dataset.empty() ? std::nullopt : names->find(row);
    if (named_at && names->argument.kind == trace::ArgumentKind::text)
      it.dataset = columns_.names[names->texts[*named_at]];
  }

  /// The iterator in whose call a function in Python runs.
  void mark_python(Row row) {
    const int at = caller_of(row);
    if (at >= 0) found_[static_cast<std::size_t>(at)].runs_python = true;
    if (at < 0) python_elsewhere_ = true;
  }

  void finish(std::size_t i) {
    TracedIterator& it = found_[i];
    std::vector<std::pair<std::int64_t, int>> moments;
    for (const Row row : times_[i]) {
      const std::int64_t self = std::max<std::int64_t>(0, self_[row]);
      it.self_ns += self;
      it.self_times_ns.push_back(self);
      it.waited_calls += self > kWaitsNs ? 1 : 0;
      moments.emplace_back(columns_.start_ns[row], 1);
      moments.emplace_back(columns_.end_ns(row), -1);
    }
    std::sort(moments.begin(), moments.end());
    int now = 0;
    for (const auto& [ns, change] : moments) it.at_once = std::max(it.at_once, now += change);
    std::uint64_t below = 0;
    std::uint64_t nested = 0;
    for (const int child : it.children) {
      below += found_[static_cast<std::size_t>(child)].calls;
      nested += nested_[static_cast<std::size_t>(child)];
    }
    it.has_threads = below > 0 && it.calls > 0 && 2 * nested < below;
    // A function runs in a pool's thread, in the call of no iterator.
    it.runs_python |= python_elsewhere_ && it.family.find("Map") != std::string::npos;
    if (!it.has_threads) it.levels.clear();
  }

  const trace::Trace& trace_;
  const trace::Columns& columns_;
  device::Interval time_;
  std::vector<int> of_name_;
  std::map<std::string, int> of_path_;
  std::vector<TracedIterator> found_;
  std::vector<std::vector<Row>> times_;
  std::vector<std::uint64_t> nested_;
  std::vector<std::int64_t> self_;  ///< of each row
  Row caller_row_ = trace::kNoRow;
  bool python_elsewhere_ = false;
};

}  // namespace

std::vector<TracedIterator> traced_iterators(const trace::Trace& trace, device::Interval time) {
  return IteratorFinder(trace, time).find();
}

}  // namespace headrace::analysis
