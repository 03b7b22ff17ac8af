// tf.data's iterators in a trace: what each did, and which of them have threads of their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/analysis/device/intervals.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis {

/// All iterators of one dataset.
struct TracedIterator {
  std::string path;     ///< "Iterator::Root::Prefetch", without numbers of inputs
  std::string family;   ///< "ParallelMap"
  std::string dataset;  ///< what the user called it, or what TensorFlow did
  int parent = -1;
  std::vector<int> children;
  std::uint64_t calls = 0;
  std::int64_t total_ns = 0;
  /// Without the iterators that it asked in the same thread.
  std::int64_t self_ns = 0;
  std::vector<std::int64_t> self_times_ns;
  std::uint64_t waited_calls = 0;  ///< that lasted longer than a hand-over does
  /// At most so many calls at one time.
  int at_once = 1;
  /// What asks it gets from a buffer that other threads fill.
  bool has_threads = false;
  bool runs_python = false;      ///< perhaps
  std::int64_t cores = 0;        ///< that tf.data counts with; 0: not said
  std::int64_t parallelism = 0;  ///< 0: not said
  std::int64_t capacity = 0;     ///< of the buffer; 0: not said
  std::vector<std::int64_t> levels;
};

/// Parents before children. Only calls that began within `time`.
std::vector<TracedIterator> traced_iterators(const trace::Trace& trace, device::Interval time);

}  // namespace headrace::analysis
