// How texts name a queue. The queues of a native pipeline have the names of the operators before them.
#pragma once

#include <string>

#include "headrace/profile/profile.h"

namespace headrace::analysis {

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
