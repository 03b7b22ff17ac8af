#include "analysis/traced_input/iterators.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/device/callers.h"

namespace headrace::analysis {
namespace {

using trace::Row;

constexpr std::string_view kRoot = "Iterator::";
/// A call of a buffer that lasts longer than this has waited.
constexpr std::int64_t kWaitsNs = 100'000;

/// Path with merged inputs of an interleave, which are many and alike. "ParallelInterleaveV4[3]"
/// loses its number, "Zip[1]" keeps it.
std::string path_of(std::string_view name) {
  std::string path;
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t colons = std::min(name.find("::", at), name.size());
    std::string_view part = name.substr(at, colons - at);
    const std::size_t bracket = part.find('[');
    const bool is_merged = (part.find("Interleave") != std::string_view::npos ||
                            part.find("FlatMap") != std::string_view::npos) &&
                           !part.starts_with("Directed");  // it chooses among datasets that the user named
    if (is_merged) part = part.substr(0, bracket);
    path.append(path.empty() ? "" : "::").append(part);
    at = colons + 2;
  }
  return path;
}

/// "Iterator::Root::Zip[1]::Map" -> "Iterator::Root::Zip"; "" above the root.
std::string path_above(const std::string& path) {
  const std::size_t colons = path.rfind("::");
  if (colons == std::string::npos) return "";
  std::string above = path.substr(0, colons);
  if (above.ends_with(']')) above.resize(above.rfind('['));
  return above == "Iterator" ? "" : above;
}

/// "ParallelMapV2" -> "ParallelMap".
std::string family_of(std::string_view path) {
  std::string_view family = path.substr(path.rfind(':') + 1);
  family = family.substr(0, family.find('['));
  const std::size_t version = family.find_last_not_of("0123456789");
  if (version != std::string_view::npos && version > 0 && version + 1 < family.size() &&
      family[version] == 'V')
    family = family.substr(0, version);
  return std::string(family);
}

class IteratorFinder {
 public:
  IteratorFinder(const trace::Trace& trace, device::Interval time, const std::vector<int>& dataset_of_row,
                 int dataset)
      : trace_(trace),
        columns_(trace.columns()),
        time_(time),
        dataset_of_row_(dataset_of_row),
        dataset_(dataset),
        of_name_(columns_.names.size(), kUnknown),
        self_(columns_.size()),
        iterators_(
            device::names_that(columns_, [](std::string_view name) { return name.starts_with(kRoot); })),
        callers_(trace, IsIterator{&columns_, &iterators_}) {}

  std::vector<TracedIterator> find() {
    for (Row row = 0; row < columns_.size(); ++row) {
      if (columns_.phase[row] != 'X') continue;
      if (!is_wanted(row)) continue;
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

  struct IsIterator {
    const trace::Columns* columns;
    const std::vector<bool>* names;
    bool operator()(Row row) const { return (*names)[columns->name[row]]; }
  };

  /// Rows of no dataset, of a Python function for one, are of any.
  bool is_wanted(Row row) const noexcept {
    return dataset_ < 0 || dataset_of_row_[row] < 0 || dataset_of_row_[row] == dataset_;
  }

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
    const std::string above = path_above(path);
    const int parent = above.empty() ? -1 : named(above);
    TracedIterator& made = found_[static_cast<std::size_t>(index)];
    made.path = path;
    made.family = family_of(path);
    made.parent = parent;
    if (parent >= 0) found_[static_cast<std::size_t>(parent)].children.push_back(index);
    return index;
  }

  /// Sizes and counts: nobody has a million.
  std::int64_t argument(Row row, std::string_view name, std::int64_t otherwise) const {
    constexpr std::int64_t kMost = 1'000'000;
    const auto value = integer_at(columns_.argument(name), row);
    return value ? std::clamp<std::int64_t>(*value, 0, kMost) : otherwise;
  }

  /// The iterator in whose call, on the same thread, this one was made.
  int caller_of(Row row) {
    const Row above = trace_.calls.parent_of(row);
    caller_row_ = above == trace::kNoRow ? above : callers_.innermost(above);
    if (caller_row_ == trace::kNoRow || columns_.lane[caller_row_] != columns_.lane[row]) return -1;
    return iterator_of(caller_row_);
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
    if (level > 0) had_elements_.push_back(row);
    if (it.dataset.empty()) it.dataset = text_at(columns_, columns_.argument("name"), row);
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
      const bool was_there = std::binary_search(had_elements_.begin(), had_elements_.end(), row);
      it.waited_calls += self > kWaitsNs && !was_there ? 1 : 0;
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
  const std::vector<int>& dataset_of_row_;
  int dataset_ = -1;
  std::vector<int> of_name_;
  std::map<std::string, int> of_path_;
  std::vector<TracedIterator> found_;
  std::vector<std::vector<Row>> times_;
  std::vector<std::uint64_t> nested_;
  std::vector<std::int64_t> self_;  ///< of each row
  std::vector<bool> iterators_;     ///< by name
  device::Callers<IsIterator> callers_;
  std::vector<Row> had_elements_;  ///< calls that found some, ascending
  Row caller_row_ = trace::kNoRow;
  bool python_elsewhere_ = false;
};

}  // namespace

TracedDatasets::TracedDatasets(const trace::Trace& trace)
    : trace_(trace), dataset_of_row_(trace.columns().size(), -1) {
  const trace::Columns& columns = trace.columns();
  const trace::ArgumentColumn* const ids = columns.argument("id");
  const trace::ArgumentColumn* const parents = columns.argument("parent_id");
  const trace::ArgumentColumn* const names = columns.argument("name");
  std::vector<Row> rows;
  std::unordered_map<std::int64_t, std::int64_t> above;
  for (Row row = 0; row < columns.size(); ++row) {
    if (columns.phase[row] != 'X' || !columns.name_of(row).starts_with(kRoot)) continue;
    const std::int64_t id = integer_at(ids, row).value_or(0);
    if (id == 0) continue;
    rows.push_back(row);
    above.try_emplace(id, integer_at(parents, row).value_or(0));
  }
  const auto root_of = [&](std::int64_t id) {
    constexpr int kDeepest = 1000;
    for (int i = 0; i < kDeepest; ++i) {
      const auto up = above.find(id);
      if (up == above.end() || up->second == 0 || !above.contains(up->second)) break;
      id = up->second;
    }
    return id;
  };
  // The names of the iterators below a root identify its dataset.
  std::map<std::int64_t, std::set<std::string>> below;
  for (const Row row : rows) {
    std::string called = path_of(columns.name_of(row));
    if (const std::string_view name = text_at(columns, names, row); !name.empty())
      called.append("=").append(name);
    below[root_of(integer_at(ids, row).value_or(0))].insert(std::move(called));
  }
  const std::vector<bool> asks =
      device::names_that(columns, [](std::string_view name) { return name.starts_with("IteratorGetNext"); });
  device::Callers callers(trace, [&](Row row) { return asks[columns.name[row]]; });
  std::map<std::set<std::string>, int> datasets;
  for (const auto& [root, called] : below) datasets.try_emplace(called, static_cast<int>(datasets.size()));
  for (const Row row : rows) {
    const int dataset = datasets.at(below.at(root_of(integer_at(ids, row).value_or(0))));
    dataset_of_row_[row] = dataset;
    const Row above = trace.calls.parent_of(row);
    const Row wait = above == trace::kNoRow ? above : callers.innermost(above);
    if (wait != trace::kNoRow) of_wait_.try_emplace(wait, dataset);
  }
}

int TracedDatasets::of_wait(Row wait) const noexcept {
  const auto at = of_wait_.find(wait);
  return at == of_wait_.end() ? -1 : at->second;
}

std::vector<TracedIterator> TracedDatasets::iterators(int dataset, device::Interval time) const {
  return IteratorFinder(trace_, time, dataset_of_row_, dataset).find();
}

}  // namespace headrace::analysis
