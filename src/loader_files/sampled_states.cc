#include "sampled_states.h"

#include <algorithm>
#include <map>
#include <optional>

#include "host_of.h"
#include "units.h"

namespace headrace::loader_files {
namespace {

using profile::OperatorProfile;
using profile::QueueProfile;

/// Share of the samples at work below which the others may hide as much again.
constexpr double kMostlyAtWork = 0.5;
/// Share of a window that the loop starves for, from which on the window tells what it waits for.
constexpr double kStarves = 0.1;

enum class Seen : std::uint8_t { at_work, without_input, without_room };

/// Of one operator, of each steady sample.
using Sightings = std::vector<Seen>;

class StateReader {
 public:
  StateReader(const RankFiles& files, const SampleRange& range, const FilePlaces& places,
              profile::Profile& profile)
      : files_(files), range_(range), places_(places), profile_(profile) {}

  SampledWork read() {
    const PipelineFile& pipeline = *files_.pipeline;
    SampledWork work(profile_.operators.size());
    std::map<std::int64_t, const OperatorCpu*> cpu_of;
    if (files_.cpu) {
      for (const OperatorCpu& op : files_.cpu->operators) cpu_of.emplace(op.id, &op);
    }
    for (std::size_t at = 0; at < pipeline.operators.size(); ++at) {
      const int place = places_.in_profile[at];
      if (place < 0) continue;
      OperatorProfile& op = profile_.operators[static_cast<std::size_t>(place)];
      const auto cpu = cpu_of.find(pipeline.operators[at].id);
      const std::optional<double> cores =
          cpu == cpu_of.end() ? std::nullopt : steady_cores(files_, cpu->second->percent);
      if (cores && profile_.elapsed_s > 0) op.cpu_s = *cores * profile_.elapsed_s;
      if (places_.is_inlined(place) || place == places_.feeder) continue;
      const Sightings seen = sightings(place);
      std::vector<double>& at_work = work[static_cast<std::size_t>(place)];
      for (const Seen each : seen) at_work.push_back(each == Seen::at_work ? 1 : 0);
      if (!seen.empty()) set_states(seen, op);
      if (!cores || profile_.elapsed_s <= 0) continue;
      // Its workers were at work for at least the CPU time that they used; for longer if they use less than a
      // core each while they have input and room.
      const std::optional<double> cores_used = cores_at_work(seen, cpu->second->percent);
      const double full_load = cores_used ? *cores_used : static_cast<double>(op.workers);
      const double computed = std::min(1.0 - op.states.blocked_out, *cores / full_load);
      if (op.states.busy >= computed) continue;
      set_busy(op, computed);
      raise(seen, cpu->second->percent, full_load, at_work);
    }
    return work;
  }

 private:
  /// Empty where too few samples, or not all queues around the operator, tell what it did.
  Sightings sightings(int place) const {
    std::vector<const std::vector<std::int32_t>*> inputs;
    const std::vector<std::int32_t>* output = nullptr;
    std::int64_t capacity = 0;
    bool is_fed = false;
    for (std::size_t q = 0; q < profile_.queues.size(); ++q) {
      const QueueProfile& queue = profile_.queues[q];
      const std::vector<std::int32_t>* levels = places_.levels(files_, q);
      const bool feeds =
          std::find(queue.to_operators.begin(), queue.to_operators.end(), place) != queue.to_operators.end();
      is_fed = is_fed || feeds;
      if (levels == nullptr) continue;
      if (feeds) inputs.push_back(levels);
      if (!queue.from_operators.empty() && queue.from_operators.front() == place) {
        output = levels;
        capacity = queue.capacity;
      }
    }
    // Without its output's levels it is not known whether it was blocked; without those of an input, whether it
    // had anything to do.
    const bool has_input = !files_.pipeline->operators[places_.in_file(place)].children.empty();
    if (output == nullptr || (has_input && inputs.empty()) || (is_fed && inputs.empty())) return {};
    Sightings seen;
    for (std::size_t i = range_.begin; i < range_.end && i < output->size(); ++i) {
      const bool full = capacity > 0 && (*output)[i] >= capacity;
      const bool fed = std::all_of(
          inputs.begin(), inputs.end(),
          [i](const std::vector<std::int32_t>* levels) { return i < levels->size() && (*levels)[i] > 0; });
      seen.push_back(full ? Seen::without_room : fed ? Seen::at_work : Seen::without_input);
    }
    if (seen.size() < profile::kFewestLevelSamples) seen.clear();
    return seen;
  }

  void set_states(const Sightings& seen, OperatorProfile& op) const {
    const auto share = [&](Seen what) {
      return static_cast<double>(std::count(seen.begin(), seen.end(), what)) /
             static_cast<double>(seen.size());
    };
    op.states = {share(Seen::at_work), share(Seen::without_input), share(Seen::without_room), 0};
    if (profile_.elapsed_s <= 0) return;
    op.busy_s = op.states.busy * op.workers * profile_.elapsed_s;
    op.demand_s = op.states.busy * profile_.sink.step_s;
  }

  /// Cores of the sample's interval; empty where the CPU file does not have that moment.
  std::optional<double> cores_at(std::size_t sample, const TimedSeries& percent) const {
    const std::size_t i = range_.begin + sample;
    if (i >= range_.stamps_ms.size()) return std::nullopt;
    const auto at = std::lower_bound(percent.end_ms.begin(), percent.end_ms.end(), range_.stamps_ms[i]);
    if (at == percent.end_ms.end() || *at != range_.stamps_ms[i]) return std::nullopt;
    return percent.values[static_cast<std::size_t>(at - percent.end_ms.begin())] / kPercent;
  }

  /// Cores that it used at the samples at which it had input and room for output, so that none of its workers
  /// rested; empty where that was rare, or where the CPU time is too little to be measured.
  std::optional<double> cores_at_work(const Sightings& seen, const TimedSeries& percent) const {
    double sum = 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const std::optional<double> cores =
          seen[i] == Seen::at_work ? cores_at(i, percent) : std::optional<double>();
      if (!cores) continue;
      sum += *cores;
      ++count;
    }
    if (count < profile::kFewestLevelSamples || sum < kComputesCores * static_cast<double>(count))
      return std::nullopt;
    return sum / static_cast<double>(count);
  }

  void set_busy(OperatorProfile& op, double busy) const {
    const double others = op.states.blocked_in + op.states.blocked_out;
    const double left = others > 0 ? (1 - busy) / others : 0;
    op.states.blocked_in *= left;
    op.states.blocked_out *= left;
    if (others <= 0) op.states.idle = 1 - busy;
    op.states.busy = busy;
    op.busy_s = busy * op.workers * profile_.elapsed_s;
    op.demand_s = busy * profile_.sink.step_s;
  }

  /// The same for single samples.
  void raise(const Sightings& seen, const TimedSeries& percent, double full_load,
             std::vector<double>& at_work) const {
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const std::optional<double> cores = cores_at(i, percent);
      if (!cores || seen[i] == Seen::without_room) continue;
      at_work[i] = std::max(at_work[i], std::min(1.0, *cores / full_load));
    }
  }

  const RankFiles& files_;
  const SampleRange& range_;
  const FilePlaces& places_;
  profile::Profile& profile_;
};

/// Of the time of the windows in which the loop starves; empty where there is no such window.
std::optional<double> busy_while_starving(const profile::Profile& profile, std::size_t op) {
  double busy_s = 0;
  double span_s = 0;
  for (const profile::Window& window : profile.windows) {
    const double its_s = window.end_s - window.start_s;
    if (window.starved_s < kStarves * its_s || window.operators[op].busy_share < 0) continue;
    busy_s += window.operators[op].busy_share * its_s;
    span_s += its_s;
  }
  if (span_s <= 0) return std::nullopt;
  return busy_s / span_s;
}

}  // namespace

SampledWork add_states(const RankFiles& files, const SampleRange& range, const FilePlaces& places,
                       profile::Profile& profile) {
  return StateReader(files, range, places, profile).read();
}

void drop_unknown_work(profile::Profile& profile) {
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    OperatorProfile& op = profile.operators[i];
    if (op.fidelity != profile::Fidelity::sampled) continue;
    const double busy = std::max(op.states.busy, busy_while_starving(profile, i).value_or(0));
    if (busy < kMostlyAtWork) op.busy_s = op.demand_s = -1;
  }
}

}  // namespace headrace::loader_files
