#include "headrace/analysis/device/operators.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/device/named_calls.h"
#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {
namespace {

/// By number of the name.
std::vector<CallSum> calls_by_name(const trace::Trace& trace, const Selection& selection, Side side) {
  const trace::Columns& columns = trace.columns();
  const trace::Names::Id spans = columns.names.find("Trace");
  std::vector<CallSum> calls(columns.names.size());
  for (trace::Row row = 0; row < columns.size(); ++row) {
    // Spans of the profiler itself are not calls; events without a category are none of its own.
    if (columns.phase[row] != 'X' || columns.category[row] == 0 || columns.category[row] == spans) continue;
    const bool on_device = trace::is_on_device(trace.kinds[row]);
    if ((side == Side::host && on_device) || (side == Side::device && !on_device)) continue;
    if (!selection.has(row)) continue;
    ++calls[columns.name[row]].count;
    calls[columns.name[row]].total_ns += columns.duration_ns[row];
  }
  return calls;
}

struct Compared {
  std::string name;
  std::array<CallSum, 2> sides;  // control, test

  std::int64_t diff_calls() const noexcept { return sides[1].count - sides[0].count; }
  std::int64_t diff_ns() const noexcept { return sides[1].total_ns - sides[0].total_ns; }
};

const char* change_of(const Compared& compared) noexcept {
  if (compared.sides[0].count == 0) return "added";
  if (compared.sides[1].count == 0) return "deleted";
  if (compared.diff_calls() == 0) return "unchanged";
  return compared.diff_calls() > 0 ? "increased" : "decreased";
}

const char* sign_of(std::int64_t difference) noexcept {
  if (difference == 0) return "=";
  return difference > 0 ? "+" : "-";
}

}  // namespace

Table diff(const trace::Trace& control, const trace::Trace& test, const DiffOptions& options) {
  Rows<DiffColumns> rows;
  std::unordered_map<std::string, std::size_t> place;
  std::vector<Compared> compared;
  const std::array<std::pair<const trace::Trace*, const Scope*>, 2> sides = {
      {{&control, &options.control}, {&test, &options.test}}};
  for (std::size_t side = 0; side < sides.size(); ++side) {
    const auto& [trace, scope] = sides[side];
    const Selection selection(*trace, *scope);
    for (const std::string& note : selection.notes()) rows.note((side == 0 ? "control, " : "test, ") + note);
    const std::vector<CallSum> calls = calls_by_name(*trace, selection, options.side);
    for (trace::Names::Id id = 0; id < calls.size(); ++id) {
      if (calls[id].count == 0) continue;
      const std::string_view full = trace->columns().names[id];
      std::string name = options.short_names ? short_name(full) : std::string(full);
      const auto [at, is_new] = place.try_emplace(std::move(name), compared.size());
      if (is_new) compared.push_back({at->first, {}});
      CallSum& sum = compared[at->second].sides[side];
      sum.count += calls[id].count;
      sum.total_ns += calls[id].total_ns;
    }
  }
  if (compared.empty()) rows.note("neither trace has events to compare");
  std::sort(compared.begin(), compared.end(), [](const Compared& a, const Compared& b) {
    const std::int64_t change_a = std::abs(a.diff_ns());
    const std::int64_t change_b = std::abs(b.diff_ns());
    return change_a != change_b ? change_a > change_b : a.name < b.name;
  });

  for (const Compared& each : compared) {
    const auto& [before, after] = each.sides;
    rows.add(each.name, before.count, seconds(before.total_ns), after.count, seconds(after.total_ns),
             each.diff_calls(), seconds(each.diff_ns()), sign_of(each.diff_calls()), change_of(each));
  }
  return rows.take();
}

std::string short_name(std::string_view name) {
  if (name.find_first_of("<(") == std::string_view::npos || kind_of_kernel(name) == KernelKind::memory)
    return std::string(name);
  std::string outside;
  std::string open;  // the brackets around the current place
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '-' && i + 1 < name.size() && name[i + 1] == '>') {
      ++i;  // an arrow closes nothing
    } else if (c == '<' || c == '(') {
      open += c;
    } else if (!open.empty() && ((c == '>' && open.back() == '<') || (c == ')' && open.back() == '('))) {
      open.pop_back();
    } else if (open.empty()) {
      outside += c;
    }
  }
  // ROCm names the copy of a kernel that it runs: "f(int) [clone .kd]".
  outside.resize(std::min(outside.size(), outside.find(" [clone ")));
  const std::size_t last = outside.find_last_not_of(' ');
  if (last == std::string::npos) return std::string(name);
  outside.resize(last + 1);
  const std::size_t space = outside.rfind(' ');
  return space == std::string::npos ? outside : outside.substr(space + 1);
}

}  // namespace headrace::analysis::device
