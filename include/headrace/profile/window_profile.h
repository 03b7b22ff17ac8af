// A profile over time: the same figures per window. Declared as figure.h says; part of profile.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/profile/figure.h"

namespace headrace::profile {

struct WindowOperator {
  double busy_share = 0;               ///< negative: not known
  double demand_s = 0;                 ///< negative: not known
  std::optional<std::uint64_t> items;  ///< empty: not counted
};

constexpr About about(Of<WindowOperator>) {
  return {"WindowOperator", "An operator in one window, in the order of `operators`."};
}
template <class Visit>
constexpr void figures_of(Of<WindowOperator>, Visit&& figure) {
  figure("busy_share", &WindowOperator::busy_share,
         {"Part of its workers' time in its body; null where that is not known.", nullptr, Null::when_unset});
  figure(
      "demand_s", &WindowOperator::demand_s,
      {"Busy time per batch delivered in this window / workers; 0 where no batch was delivered, null where "
       "the busy time is not known.",
       nullptr, Null::when_unset});
  figure("items", &WindowOperator::items, {"Items made; null where they were not counted."});
}

struct WindowQueue {
  double mean = 0;
  double empty_share = 0;
  double full_share = 0;
};

constexpr About about(Of<WindowQueue>) {
  return {"WindowQueue", "A queue in one window, in the order of `queues`."};
}
template <class Visit>
constexpr void figures_of(Of<WindowQueue>, Visit&& figure) {
  figure("mean", &WindowQueue::mean, {"Mean level."});
  figure("empty_share", &WindowQueue::empty_share, {"Share of the window empty."});
  figure("full_share", &WindowQueue::full_share, {"Share of the window full."});
}

struct WindowHost {
  std::optional<double> cpu_share;
  std::optional<double> foreign_cpu_share;
  std::optional<double> throttled_share;
};

constexpr About about(Of<WindowHost>) { return {"WindowHost", "The machine in one window."}; }
template <class Visit>
constexpr void figures_of(Of<WindowHost>, Visit&& figure) {
  figure("cpu_share", &WindowHost::cpu_share, {"Share of the cores that this run's process trees use."});
  figure("foreign_cpu_share", &WindowHost::foreign_cpu_share,
         {"Share of the cores that everybody else uses, plus stolen time."});
  figure("throttled_share", &WindowHost::throttled_share,
         {"Share of the window in which the CPU quota stopped the run."});
}

struct Window {
  double start_s = 0;
  double end_s = 0;
  std::uint64_t steps = 0;
  double wait_s = 0;
  double starved_s = 0;
  double compute_s = 0;
  std::vector<WindowOperator> operators;
  std::vector<WindowQueue> queues;
  WindowHost host;
};

constexpr About about(Of<Window>) {
  return {"Window", "The same figures per stretch of time, 0.1 s at first, wider in long runs."};
}
template <class Visit>
constexpr void figures_of(Of<Window>, Visit&& figure) {
  figure("start_s", &Window::start_s, {"Since the loop began, start-up and pauses between epochs excluded."});
  figure("end_s", &Window::end_s, {"The same."});
  figure("steps", &Window::steps, {"Batches delivered."});
  figure("wait_s", &Window::wait_s, {"Time in GetNext."});
  figure("starved_s", &Window::starved_s, {"The part of it in which no batch was there."});
  figure("compute_s", &Window::compute_s, {"Time between GetNext calls."});
  figure("operators", &Window::operators, {"As of the whole run, in its order."});
  figure("queues", &Window::queues, {"As of the whole run, in its order."});
  figure("host", &Window::host, {"The machine meanwhile."});
}

}  // namespace headrace::profile
