// Runs every contest: contenders in turns, medians, and the bars as medians of the ratios within a turn.
//
//     bench_queues [TURNS [CONTEST]]      CONTEST: its name begins so
#include "contest.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/metrics/clock.h"
#include "strangers.h"

namespace headrace::bench {
namespace {

/// Times of each contender of one contest with one crowd, one per turn.
using Times = std::map<std::string, std::vector<double>>;

struct Contest {
  const char* name;
  Crowd crowd;
  std::uint64_t items;
  bool spins;     ///< its threads use all of a core each, or share all of them
  int times = 1;  ///< so many times the turns: where a few ns are to be told apart
};
constexpr Contest kContests[] = {
    {"one thread", {1, 1}, 2'000'000, true}, {"items, one to one", {1, 1}, 2'000'000, true},
    {"items", {1, 1}, 2'000'000, true},      {"items", {2, 2}, 2'000'000, true},
    {"items", {4, 4}, 2'000'000, true},      {"rings", {1, 1}, 2'000'000, true, 9},
    {"rings", {2, 2}, 2'000'000, true, 9},   {"rings", {4, 4}, 2'000'000, true, 9},
    {"waiting", {1, 1}, 500'000, false},     {"waiting", {2, 2}, 500'000, false},
    {"waiting", {4, 4}, 500'000, false},
};

enum class Is { at_least_times, at_most_times, at_most_ns_more };
/// How many times `that` takes what `than` takes (or how many ns more).
struct Bar {
  const char* contest;
  int threads;  ///< on each side
  const char* that;
  const char* than;
  Is is;
  double limit;
};
/// Its nodes carry tags of 16 bits, which can come round while a thread is off its core. Seen here: such runs
/// are told and left out.
constexpr const char* kLosesItems = "boost::lockfree::queue";
constexpr const char* kRing = "MpmcRing (counters)";
constexpr const char* kWaiting = "BoundedQueue<MpmcRing>";
constexpr Bar kBars[] = {
    {"items", 1, "boost::lockfree::queue", kRing, Is::at_least_times, 6},
    {"items", 2, "boost::lockfree::queue", kRing, Is::at_least_times, 6},
    {"items", 4, "boost::lockfree::queue", kRing, Is::at_least_times, 6},
    {"items", 1, "tbb::concurrent_bounded_queue", kRing, Is::at_least_times, 2.5},
    {"items", 2, "tbb::concurrent_bounded_queue", kRing, Is::at_least_times, 8},
    {"items", 4, "tbb::concurrent_bounded_queue", kRing, Is::at_least_times, 8},
    {"rings", 1, kRing, "bare ring", Is::at_most_times, 1.05},
    {"rings", 2, kRing, "bare ring", Is::at_most_times, 1.05},
    {"rings", 4, kRing, "bare ring", Is::at_most_times, 1.05},
    {"rings", 1, "MpmcRing, recorded", "bare ring", Is::at_most_times, 1.15},
    {"rings", 2, "MpmcRing, recorded", "bare ring", Is::at_most_times, 1.15},
    {"rings", 4, "MpmcRing, recorded", "bare ring", Is::at_most_times, 1.15},
    {"one thread", 1, "SpscQueue (counters)", "boost::lockfree::spsc_queue", Is::at_most_ns_more, 4},
    {"waiting", 1, "ring + std::atomic::wait", kWaiting, Is::at_least_times, 1.1},
    {"waiting", 2, "ring + std::atomic::wait", kWaiting, Is::at_least_times, 1.1},
    {"waiting", 4, "ring + std::atomic::wait", kWaiting, Is::at_least_times, 1.1},
    {"waiting", 1, "mutex + condition variables", kWaiting, Is::at_least_times, 2},
    {"waiting", 2, "mutex + condition variables", kWaiting, Is::at_least_times, 2},
    {"waiting", 4, "mutex + condition variables", kWaiting, Is::at_least_times, 2},
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// A run beside others is run again, up to so often; then it counts as it is.
constexpr int kTries = 5;

struct Quiet {
  int runs = 0;
  int quiet = 0;
  /// Runs of a contender in which items were lost or doubled: no figures.
  std::map<std::string, int> wrong;
};

double run_quietly(const Contender& contender, const Contest& contest, Quiet& counted) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  ++counted.runs;
  for (int tries = 1;; ++tries) {
    const Strangers strangers;
    Took took{};
    try {
      took = contender.run(contest.crowd, contest.items);
    } catch (const std::runtime_error& error) {
      std::printf("  %s: %s\n", contender.name.c_str(), error.what());
      ++counted.wrong[contender.name];
      if (counted.wrong[contender.name] == kTries) throw;
      continue;
    }
    const bool quiet = !contest.spins ? strangers.quiet() : took.cores >= 0.9 * std::min(took.threads, cores);
    if (quiet) ++counted.quiet;
    if (quiet || tries == kTries) return took.ns_per_item;
  }
}

Times measure(const Contest& contest, int turns, Quiet& counted) {
  Times times;
  for (int turn = -1; turn < turns; ++turn) {  // the first one warms up
    for (const Contender& contender : contenders()) {
      if (contender.contest != contest.name) continue;
      const double ns = run_quietly(contender, contest, counted);
      if (turn >= 0) times[contender.name].push_back(ns);
    }
  }
  return times;
}

void print(const Contest& contest, const Times& times) {
  std::printf("\n%s, %d producing, %d consuming\n", contest.name, contest.crowd.producers,
              contest.crowd.consumers);
  std::vector<std::pair<double, std::string>> rows;
  for (const auto& [name, ns] : times) rows.emplace_back(median(ns), name);
  std::sort(rows.begin(), rows.end());
  for (const auto& [ns, name] : rows) {
    const auto [least, most] = std::minmax_element(times.at(name).begin(), times.at(name).end());
    std::printf("  %-44s %8.1f ns/item  (%.1f to %.1f)\n", name.c_str(), ns, *least, *most);
  }
}

bool holds(const Bar& bar, const Times& times) {
  const std::vector<double>& that = times.at(bar.that);
  const std::vector<double>& than = times.at(bar.than);
  std::vector<double> figures;
  for (std::size_t i = 0; i < that.size(); ++i) {
    figures.push_back(bar.is == Is::at_most_ns_more ? that[i] - than[i] : that[i] / than[i]);
  }
  const double figure = median(figures);
  const bool good = bar.is == Is::at_least_times ? figure >= bar.limit : figure <= bar.limit;
  std::printf("  %-30s / %-28s %s %7.2f  %s %g  %s\n", bar.that, bar.than,
              bar.is == Is::at_most_ns_more ? "+ns" : "  x", figure,
              bar.is == Is::at_least_times ? ">=" : "<=", bar.limit, good ? "ok" : "MISSED");
  return good;
}

int run(int turns, const std::string& wanted) {
  metrics::Clock::calibrate();
  bool all = true;
  for (const Contest& contest : kContests) {
    if (!std::string(contest.name).starts_with(wanted)) continue;
    Quiet counted;
    const Strangers strangers;
    const Times times = measure(contest, turns * contest.times, counted);
    print(contest, times);
    std::printf("  quiet runs: %d of %d; others used %.0f %% of the cores meanwhile\n", counted.quiet,
                counted.runs, 100 * strangers.share());
    for (const auto& [name, runs] : counted.wrong) {
      std::printf("  %s lost or doubled items in %d runs\n", name.c_str(), runs);
      all &= name == kLosesItems;
    }
    for (const Bar& bar : kBars) {
      if (std::string(bar.contest) == contest.name && bar.threads == contest.crowd.producers)
        all &= holds(bar, times);
    }
    std::fflush(stdout);
  }
  return all ? 0 : 1;
}

}  // namespace
}  // namespace headrace::bench

int main(int argc, char** argv) {
  const int turns = argc > 1 ? std::atoi(argv[1]) : 9;
  if (turns < 1) {
    std::fprintf(stderr, "usage: bench_queues [TURNS [CONTEST]]\n");
    return 2;
  }
  return headrace::bench::run(turns, argc > 2 ? argv[2] : "");
}
