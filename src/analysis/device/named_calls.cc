#include "analysis/device/named_calls.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace headrace::analysis::device {
namespace {

/// How many of `calls` come before the rest.
std::size_t count_shown(std::span<const NamedCalls> calls, const ShownNames& shown) {
  const std::size_t limit = shown.most == 0 ? calls.size() : std::min(shown.most, calls.size());
  if (shown.time_share >= 1) return limit;
  double whole = 0;
  for (const NamedCalls& each : calls) whole += static_cast<double>(each.calls.total_ns());
  double covered = 0;
  for (std::size_t i = 0; i < limit; ++i) {
    if (covered >= shown.time_share * whole) return i;
    covered += static_cast<double>(calls[i].calls.total_ns());
  }
  return limit;
}

}  // namespace

CallsByName::CallsByName(const trace::Names& names) : names_(names), place_(names.size(), {-1, -1, -1, -1}) {}

void CallsByName::add(trace::Names::Id name, KernelKind kind, std::int64_t duration_ns) {
  std::int32_t& at = place_[name][static_cast<std::size_t>(kind)];
  if (at < 0) {
    at = static_cast<std::int32_t>(calls_.size());
    calls_.push_back({names_[name], kind, {}});
  }
  calls_[static_cast<std::size_t>(at)].calls.add(duration_ns);
}

std::vector<NamedCalls> CallsByName::take() {
  std::sort(calls_.begin(), calls_.end(), [](const NamedCalls& a, const NamedCalls& b) {
    return std::tuple(a.kind, -a.calls.total_ns(), a.name) < std::tuple(b.kind, -b.calls.total_ns(), b.name);
  });
  return std::move(calls_);
}

std::vector<NamedCalls> folded(std::span<const NamedCalls> calls, const ShownNames& shown) {
  std::vector<NamedCalls> result;
  while (!calls.empty()) {
    const auto end = std::find_if(calls.begin(), calls.end(),
                                  [&](const NamedCalls& each) { return each.kind != calls[0].kind; });
    const auto of_kind = calls.first(static_cast<std::size_t>(end - calls.begin()));
    calls = calls.subspan(of_kind.size());
    const std::size_t count = count_shown(of_kind, shown);
    NamedCalls others{kOthers, of_kind[0].kind, {}};
    for (std::size_t i = 0; i < of_kind.size(); ++i) {
      const bool always = std::any_of(shown.always.begin(), shown.always.end(), [&](const std::string& part) {
        return of_kind[i].name.find(part) != std::string_view::npos;
      });
      if (i < count || always) {
        result.push_back(of_kind[i]);
      } else {
        others.calls.add(of_kind[i].calls);
      }
    }
    if (others.calls.calls() > 0) result.push_back(others);
  }
  return result;
}

std::int64_t total_ns(std::span<const NamedCalls> calls) noexcept {
  std::int64_t total = 0;
  for (const NamedCalls& each : calls) total += each.calls.total_ns();
  return total;
}

}  // namespace headrace::analysis::device
