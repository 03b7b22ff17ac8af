// Queues against each other: every contender moves the same items between the same threads, in turns.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace headrace::bench {

struct Crowd {
  int producers;
  int consumers;
};

struct Took {
  double ns_per_item;
  int threads;
  double cores;  ///< that its threads had meanwhile: threads that share a core do not contend
};

/// Moves `items` numbers through a new queue and checks what arrived: std::runtime_error where they do not
/// add up.
using Run = std::function<Took(Crowd crowd, std::uint64_t items)>;

struct Contender {
  std::string
      contest;  ///< "items", "rings": try, pause, yield; "waiting": blocking calls; "one thread": put, get
  std::string name;
  Run run;
};

inline std::vector<Contender>& contenders() {
  static std::vector<Contender> all;
  return all;
}

/// Enters a contender before main.
struct Entered {
  Entered(std::string contest, std::string name, Run run) {
    contenders().push_back({std::move(contest), std::move(name), std::move(run)});
  }
};

inline constexpr std::int64_t kCapacity = 1024;

}  // namespace headrace::bench
