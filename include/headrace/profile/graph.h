// The graph: operators, their workers and the queues between them, from the calls of the threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/profile/figures.h"
#include "headrace/profile/operator_profile.h"

namespace headrace::profile {

/// One operator as the report shows it, with the cells that count for it.
struct GraphNode {
  std::uint32_t op = 0;  ///< record in the segment
  std::string name;
  Word<OperatorKind> kind;
  std::uint32_t flags = 0;
  bool in_sink = false;  ///< runs in the sink's thread, inside GetNext
  bool in_step = false;  ///< runs in the training step itself
  bool serves = false;   ///< passes on what others made (hand-off, pinning): its own time, not a worker's
  bool is_source_object = false;  ///< the wrapped object itself
  int segment = -1;
  int stage = -1;  ///< of its loader's model
  int pool = 0;    ///< threads of its stage's pool, where all of them are busy; 0: its workers are its own
  std::int64_t first_done_ns = 0;
  std::vector<std::uint32_t> cells;   ///< indexes into SegmentFigures::cells
  std::vector<std::uint32_t> inputs;  ///< queue numbers in the segment
  std::vector<std::uint32_t> outputs;
};

struct GraphQueue {
  std::uint32_t queue = 0;  ///< number in the segment
  std::vector<int> from;    ///< indexes of nodes
  std::vector<int> to;
  bool to_sink = false;
};

struct Graph {
  std::vector<GraphNode> nodes;    ///< in the order of the data flow, source first
  std::vector<GraphQueue> queues;  ///< the same
  /// Node that shows the time of an operator record: itself, or the annotated operator of the thread whose
  /// loop it is; -1 if it is not shown.
  std::vector<int> node_of_operator;

  /// The part of the run that feeds `loader`. A thread's own loop is shown where it has no annotated operator
  /// or does a good part of the work itself.
  /// `model`: of that loader, if it has one.
  static Graph of(const SegmentImage& image, const SegmentFigures& figures, std::uint32_t loader,
                  const LoaderModel* model);
};

}  // namespace headrace::profile
