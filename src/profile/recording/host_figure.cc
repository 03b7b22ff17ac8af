#include "host_figure.h"

#include <algorithm>

#include "headrace/metrics/clock.h"

namespace headrace::profile {

std::int64_t running_part(std::int64_t growth, std::int64_t loop_ns, std::int64_t real_ns) noexcept {
  if (growth <= 0 || loop_ns <= 0 || real_ns <= 0) return 0;
  if (loop_ns >= real_ns) return growth;
  return static_cast<std::int64_t>(static_cast<metrics::uint128>(growth) *
                                   static_cast<std::uint64_t>(loop_ns) / static_cast<std::uint64_t>(real_ns));
}

FigureTracker::FigureTracker(metrics::HostCell& cell, metrics::HostFigure figure) noexcept
    : cell_(cell), figure_(static_cast<int>(figure)) {
  show(false);
}

void FigureTracker::show(bool available) noexcept {
  const std::uint32_t bit = 1U << figure_;
  const std::uint32_t all = cell_.available.load();
  cell_.available.store(available ? all | bit : all & ~bit);
  if (!available) total().store(metrics::HostCell::kUnknown);
}

void FigureTracker::begin() noexcept {
  begun_ = true;
  at_loop_ns_ = 0;
  if (has_baseline_) total().store(0);
}

void FigureTracker::add(std::int64_t raw, std::int64_t now, std::int64_t loop_ns) noexcept {
  failures_ = 0;
  if (!has_baseline_) {
    has_baseline_ = true;
    raw_ = raw;
    at_ns_ = now;
    at_loop_ns_ = loop_ns;
    show(true);
    if (begun_) total().store(0);
    return;
  }
  if (now <= at_ns_) return;
  rate_ = static_cast<double>(raw - raw_) / static_cast<double>(now - at_ns_);
  if (begun_) {
    const std::int64_t before = total().load();
    const std::int64_t growth = running_part(raw - raw_, loop_ns - at_loop_ns_, now - at_ns_);
    total().store(before + growth);
    lay(at_loop_ns_, loop_ns, before, growth);
  }
  raw_ = raw;
  at_ns_ = now;
  at_loop_ns_ = begun_ ? std::max(at_loop_ns_, loop_ns) : loop_ns;
}

void FigureTracker::fail() noexcept {
  constexpr int kPatience = 3;
  if (!has_baseline_ || ++failures_ < kPatience) return;
  has_baseline_ = false;
  rate_ = 0;
  show(false);
}

void FigureTracker::lay(std::int64_t from_loop_ns, std::int64_t to_loop_ns, std::int64_t from_total,
                        std::int64_t growth) noexcept {
  const std::int64_t width = cell_.grid.width_ns();
  const auto closed = static_cast<std::int64_t>(cell_.grid.closed.load());
  for (std::int64_t window = from_loop_ns / width; window < closed; ++window) {
    const std::int64_t boundary = (window + 1) * width;
    if (boundary > to_loop_ns) return;
    cell_.windows.at(static_cast<int>(window), figure_)
        .store(from_total + running_part(growth, boundary - from_loop_ns, to_loop_ns - from_loop_ns));
  }
}

}  // namespace headrace::profile
