// tf.data's iterators in a trace: what each did, and which of them have threads of their own.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
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
  /// Its caller gets from a buffer that other threads fill.
  bool has_threads = false;
  bool runs_python = false;      ///< perhaps
  std::int64_t cores = 0;        ///< that tf.data counts with; 0: not said
  std::int64_t parallelism = 0;  ///< 0: not said
  std::int64_t capacity = 0;     ///< of the buffer; 0: not said
  std::vector<std::int64_t> levels;
};

/// The datasets whose iterators a trace shows. Those of each epoch are of one dataset; training and
/// validation are two. Told apart by the numbers of the iterators, where the trace has them, and by what they
/// are called.
class TracedDatasets {
 public:
  explicit TracedDatasets(const trace::Trace& trace);

  /// The dataset that a wait for a batch asked; -1 if it is not known, and where no iterator has a number.
  int of_wait(trace::Row wait) const noexcept;

  /// Parents before children. Only calls that began within `time`; `dataset` -1: of all.
  std::vector<TracedIterator> iterators(int dataset, device::Interval time) const;

 private:
  const trace::Trace& trace_;
  std::vector<int> dataset_of_row_;  ///< -1: none
  std::unordered_map<trace::Row, int> of_wait_;
};

}  // namespace headrace::analysis
