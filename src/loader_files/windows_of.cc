#include "windows_of.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/metrics/windows.h"
#include "loop_calls.h"

namespace headrace::loader_files {
namespace {

using profile::Window;

/// A value for each of some stretches of time that follow each other.
struct Series {
  std::span<const double> end_s;  ///< since the end of the first batch; does not fall, and may be longer
  std::span<const double> values;

  /// Mean of `read(value)` over the stretches between the two moments, weighted by time; the last value holds on.
  template <class Read>
  double mean(double from_s, double to_s, Read&& read) const {
    double sum = 0;
    double start_s = from_s;
    const auto first = std::upper_bound(end_s.begin(), end_s.end(), from_s);
    for (auto at = static_cast<std::size_t>(first - end_s.begin()); at < values.size() && start_s < to_s;
         ++at) {
      const double until_s = std::min(to_s, end_s[at]);
      sum += read(values[at]) * (until_s - start_s);
      start_s = until_s;
    }
    sum += read(values.back()) * (to_s - start_s);
    return sum / (to_s - from_s);
  }
};

/// The level of a queue over time.
struct Level {
  std::vector<double> end_s;
  std::vector<double> values;
};

class WindowBuilder {
 public:
  WindowBuilder(const RankFiles& files, const SampleRange& range, const FilePlaces& places,
                const SampledWork& work, profile::Profile& profile)
      : files_(files),
        range_(range),
        places_(places),
        work_(work),
        profile_(profile),
        calls_(calls_on_host(files)) {}

  void build() {
    if (calls_.size() < 2 || profile_.elapsed_s <= 0) return;
    begin_s_ = calls_.front().end_s();
    end_s_ = profile_.elapsed_s;
    if (!add_sample_ends() || !add_levels()) return;
    const double width_s = width();
    if (!(width_s < end_s_)) return;
    for (double start_s = 0; start_s < end_s_; start_s += width_s) {
      const double end_s = std::min(end_s_, start_s + width_s);
      if (end_s <= start_s) break;
      add_window(start_s, end_s);
    }
    add_steps(width_s);
  }

 private:
  /// False where operators were sampled at moments that are not known.
  bool add_sample_ends() {
    if (!files_.pipeline || range_.size() == 0) return true;
    if (range_.stamps_ms.size() < range_.end) return false;
    for (std::size_t i = range_.begin; i < range_.end; ++i)
      sample_ends_s_.push_back(std::max(0.0, range_.stamps_ms[i] * 1e-3 - begin_s_));
    end_s_ = std::min(end_s_, sample_ends_s_.back());
    return std::is_sorted(sample_ends_s_.begin(), sample_ends_s_.end());
  }

  /// False where the level of a queue over time is not known.
  bool add_levels() {
    for (std::size_t q = 0; q < profile_.queues.size(); ++q) {
      Level level;
      if (const std::vector<std::int32_t>* levels = places_.levels(files_, q)) {
        for (std::size_t i = range_.begin; i < std::min(range_.end, levels->size()); ++i) {
          level.end_s.push_back(sample_ends_s_[i - range_.begin]);
          level.values.push_back((*levels)[i]);
        }
      } else {
        levels_of_batches(level);
      }
      if (level.values.empty()) return false;
      levels_.push_back(std::move(level));
    }
    return true;
  }

  void levels_of_batches(Level& level) const {
    for (const BatchRecord& each : files_.batches()->batches) {
      if (!each.level || !each.end_ms) continue;
      level.end_s.push_back(std::max(0.0, *each.end_ms * 1e-3 - begin_s_));
      level.values.push_back(static_cast<double>(*each.level));
    }
    if (!std::is_sorted(level.end_s.begin(), level.end_s.end())) level = {};
  }

  double width() const {
    double width_s = static_cast<double>(metrics::kFirstWindowNs) * 1e-9;
    const double interval_s =
        sample_ends_s_.empty() ? 0 : end_s_ / static_cast<double>(sample_ends_s_.size());
    while (width_s * metrics::kWindows < end_s_ || width_s < interval_s) width_s *= 2;
    return width_s;
  }

  void add_window(double start_s, double end_s) {
    Window window;
    window.start_s = start_s;
    window.end_s = end_s;
    for (std::size_t i = 0; i < profile_.operators.size(); ++i) {
      profile::WindowOperator op{-1, -1, {}};
      if (i < work_.size() && !work_[i].empty()) {
        const Series series{sample_ends_s_, work_[i]};
        op.busy_share = series.mean(start_s, end_s, [](double value) { return value; });
      }
      window.operators.push_back(op);
    }
    for (std::size_t q = 0; q < levels_.size(); ++q) {
      const auto capacity = static_cast<double>(profile_.queues[q].capacity);
      const Series series{levels_[q].end_s, levels_[q].values};
      const auto mean = [&](auto&& read) { return series.mean(start_s, end_s, read); };
      window.queues.push_back(
          {mean([](double level) { return level; }),
           mean([](double level) { return level <= 0 ? 1.0 : 0.0; }),
           mean([&](double level) { return capacity > 0 && level >= capacity ? 1.0 : 0.0; })});
    }
    profile_.windows.push_back(std::move(window));
  }

  /// Spreads each wait and each compute over the windows that it lies in; a batch is of the window of its end.
  void add_steps(double width_s) {
    double compute_from_s = 0;
    for (std::size_t i = 1; i < calls_.size(); ++i) {
      const double start_s = std::max(compute_from_s, calls_[i].start_s - begin_s_);
      const double end_s = std::max(start_s, calls_[i].end_s() - begin_s_);
      spread(compute_from_s, start_s, width_s,
             [](Window& window, double part_s) { window.compute_s += part_s; });
      const bool ready = calls_[i].ready;
      spread(start_s, end_s, width_s, [ready](Window& window, double part_s) {
        window.wait_s += part_s;
        window.starved_s += ready ? 0 : part_s;
      });
      compute_from_s = end_s;
      const auto at = static_cast<std::size_t>(end_s / width_s);
      if (end_s <= end_s_) ++profile_.windows[std::min(at, profile_.windows.size() - 1)].steps;
    }
    for (Window& window : profile_.windows) {
      for (profile::WindowOperator& op : window.operators) {
        if (op.busy_share < 0) continue;
        op.demand_s = window.steps > 0 ? op.busy_share * (window.end_s - window.start_s) /
                                             static_cast<double>(window.steps)
                                       : 0;
      }
    }
  }

  template <class Add>
  void spread(double from_s, double to_s, double width_s, Add&& add) {
    for (auto at = static_cast<std::size_t>(from_s / width_s); at < profile_.windows.size(); ++at) {
      Window& window = profile_.windows[at];
      if (window.start_s >= to_s) return;
      add(window, std::max(0.0, std::min(to_s, window.end_s) - std::max(from_s, window.start_s)));
    }
  }

  const RankFiles& files_;
  const SampleRange& range_;
  const FilePlaces& places_;
  const SampledWork& work_;
  profile::Profile& profile_;
  std::vector<Call> calls_;
  double begin_s_ = 0;
  double end_s_ = 0;
  std::vector<double> sample_ends_s_;  ///< of the steady samples
  std::vector<Level> levels_;          ///< of each queue
};

}  // namespace

void add_windows(const RankFiles& files, const SampleRange& range, const FilePlaces& places,
                 const SampledWork& work, profile::Profile& profile) {
  // The device's GetNext calls are stamped by another clock than everything else.
  if (files.getnext && files.getnext->calls.size() > 1) return;
  WindowBuilder(files, range, places, work, profile).build();
}

}  // namespace headrace::loader_files
