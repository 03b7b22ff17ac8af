// Numbers and queues as sentences have them: "36.8 ms", "42 %", "the queue behind decode".
#pragma once

#include <string>

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Three figures and a unit that suits: "850 us", "36.8 ms", "2.40 s"; "-" where it is negative or not
/// finite.
std::string duration(double seconds);

/// "42 %"; below 10 % with one decimal where that says something; "-" where it is not finite.
std::string percent(double share);

/// "2.4 GB", "850 kB"; "-" where it is negative or not finite.
std::string memory_size(double bytes);

/// "1 worker", "4 workers".
std::string counted(double number, const std::string& noun);

/// The queues of a native pipeline have the names of the operators before them.
inline bool is_named_after_producer(const profile::QueueProfile& queue) {
  return !queue.name.empty() && queue.name == queue.from;
}

/// In a sentence: "decoded", "the queue behind decode".
inline std::string in_a_sentence(const profile::QueueProfile& queue) {
  return is_named_after_producer(queue) ? "the queue behind " + queue.name : queue.name;
}

/// In a table: "decoded", "decode ->".
inline std::string in_a_table(const profile::QueueProfile& queue) {
  return is_named_after_producer(queue) ? queue.name + " ->" : queue.name;
}

}  // namespace headrace::analysis
