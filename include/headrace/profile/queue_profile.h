// A queue of a profile. Declared as figure.h says; part of profile.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/profile/figure.h"
#include "headrace/profile/operator_profile.h"

namespace headrace::profile {

/// Readings of a queue's level: fewer say nothing about the queue, nor about the operators around it.
inline constexpr std::uint64_t kFewestLevelSamples = 8;

struct QueueProfile {
  std::string name;
  std::string from;
  std::string to;
  std::vector<int> from_operators;
  std::vector<int> to_operators;
  bool to_sink = false;
  std::int64_t capacity = 0;
  std::string unit = "items";
  std::vector<double> occupancy;
  int levels_per_bin = 1;
  double mean = 0;
  double empty_share = 0;
  double full_share = 0;
  std::optional<std::uint64_t> samples = std::nullopt;
  std::optional<std::uint64_t> puts = std::nullopt;
  std::optional<std::uint64_t> gets = std::nullopt;
  std::optional<double> put_wait_s = std::nullopt;
  std::optional<double> get_wait_s = std::nullopt;
  std::optional<Latency> item_age = std::nullopt;
  Word<Fidelity> fidelity;
  std::vector<Parameter> parameters;
};

constexpr About about(Of<QueueProfile>) { return {"Queue", "A bounded buffer between two operators."}; }
template <class Visit>
constexpr void figures_of(Of<QueueProfile>, Visit&& figure) {
  figure("name", &QueueProfile::name, {"What you called it."});
  figure("from", &QueueProfile::from,
         {"Operator that puts; several are joined by \", \", and it is \"\" where unknown."});
  figure("to", &QueueProfile::to, {"Operator that takes; `sink`: the training loop."});
  figure("from_operators", &QueueProfile::from_operators,
         {"Places in `operators` of those that put.", &kName});
  figure("to_operators", &QueueProfile::to_operators, {"Places in `operators` of those that take.", &kName});
  figure("to_sink", &QueueProfile::to_sink, {"Whether the training loop takes from it."});
  figure("capacity", &QueueProfile::capacity, {"What it holds; 0: no limit is known."});
  figure("unit", &QueueProfile::unit, {"What an entry is: `items` or `batches`."});
  figure("occupancy", &QueueProfile::occupancy,
         {"Share of time at each level from 0 up; empty where no time passed. One end only: one side always "
          "waits. Both ends: they take turns, and a longer queue may help.",
          &kShare});
  figure("levels_per_bin", &QueueProfile::levels_per_bin,
         {"Levels that one entry of `occupancy` stands for; above 1 for long queues.", &kOneOrMore});
  figure("mean", &QueueProfile::mean, {"Mean level."});
  figure("empty_share", &QueueProfile::empty_share, {"Share of time empty: what takes from it waits."});
  figure("full_share", &QueueProfile::full_share, {"Share of time full: what fills it waits."});
  figure("samples", &QueueProfile::samples,
         {"How often its level was read, where it was only read at times; null where each change was seen."});
  figure("puts", &QueueProfile::puts, {"Items in; null where they were not counted."});
  figure("gets", &QueueProfile::gets, {"Items out; null where they were not counted."});
  figure("put_wait_s", &QueueProfile::put_wait_s,
         {"Time that producers waited for room, summed; null where it was not measured."});
  figure("get_wait_s", &QueueProfile::get_wait_s,
         {"Time that consumers waited for items, summed; null where it was not measured."});
  figure("item_age", &QueueProfile::item_age,
         {"For how long an item lay in it, from its put to its get; null where that is unknown. Many steps: "
          "what the training loop takes is stale, as rollouts of an older policy are."});
  figure("fidelity", &QueueProfile::fidelity,
         {"`exact`: each put and get was seen. `sampled`: the level was read at times: 1000 times a second "
          "where items came too fast (`puts` and `gets` are exact), or as often as `samples` says."});
  figure("parameters", &QueueProfile::parameters, {"Parameters that set its capacity."});
}

}  // namespace headrace::profile
