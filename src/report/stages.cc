// The recorded graph as columns from left to right.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "loader_sections.h"
#include "page_parts.h"

namespace headrace::report {
namespace {

using profile::OperatorProfile;
using profile::Profile;
using profile::QueueProfile;

/// Operators that the same workers run in turn, in the order of the data flow; the training step is one
/// without operators.
struct Box {
  std::vector<const OperatorProfile*> operators;
  bool in_sink = false;  ///< they run inside GetNext
};

struct StageQueue {
  QueueProfile queue;  ///< numbered queues of the workers are one (loader_sections.h)
  bool clear = true;   ///< its place tells which two boxes it connects
};

struct Stage {
  std::vector<StageQueue> queues;  ///< those that the boxes take from
  std::vector<Box> boxes;
};

/// Boxes in the order of their first operators; the sink is the last.
std::vector<Box> boxes_of(const Profile& profile) {
  std::vector<Box> boxes;
  std::map<int, std::size_t> of_segment;
  std::optional<std::size_t> in_sink;
  for (const OperatorProfile& op : profile.operators) {
    std::size_t at = boxes.size();
    if (op.in_sink) {
      at = in_sink.value_or(at);
      in_sink = at;
    } else if (op.segment >= 0) {
      at = of_segment.try_emplace(op.segment, at).first->second;
    }
    if (at == boxes.size()) boxes.emplace_back();
    boxes[at].operators.push_back(&op);
    boxes[at].in_sink = op.in_sink;
  }
  boxes.emplace_back();
  return boxes;
}

/// Which box an operator's name means.
class Places {
 public:
  explicit Places(const std::vector<Box>& boxes) {
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      for (const OperatorProfile* op : boxes[i].operators) box_of_.try_emplace(op->name, i);
    }
    box_of_.try_emplace("sink", boxes.size() - 1);
  }

  /// A queue's end is one name, or several joined by ", " (which may also stand in one name).
  std::vector<std::size_t> find(const std::string& names) const {
    if (const auto known = box_of_.find(names); known != box_of_.end()) return {known->second};
    std::vector<std::size_t> found;
    for (std::size_t begin = 0; begin < names.size();) {
      const std::size_t end = std::min(names.find(", ", begin), names.size());
      if (const auto known = box_of_.find(names.substr(begin, end - begin)); known != box_of_.end()) {
        found.push_back(known->second);
      }
      begin = end + 2;
    }
    return found;
  }

 private:
  std::map<std::string, std::size_t> box_of_;
};

struct Ends {
  std::vector<std::size_t> from;
  std::vector<std::size_t> to;
};

/// Which boxes each queue connects. Indices that no operator puts come from the sampler, where it is
/// recorded.
std::vector<Ends> ends_of(const std::vector<Box>& boxes, const std::vector<QueueProfile>& queues) {
  const Places places(boxes);
  std::vector<std::size_t> samplers;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    if (!boxes[i].operators.empty() && boxes[i].operators.front()->kind == profile::OperatorKind::sampler)
      samplers.push_back(i);
  }
  std::vector<Ends> ends;
  for (const QueueProfile& queue : queues) {
    ends.push_back({places.find(queue.from), places.find(queue.to)});
    if (queue.from.empty() && !ends.back().to.empty()) ends.back().from = samplers;
  }
  return ends;
}

/// A box stands right of everything that it takes from. Queues that lead back are not followed.
std::vector<std::size_t> columns_of(const std::vector<Box>& boxes, const std::vector<Ends>& queues) {
  std::vector<std::vector<std::size_t>> before(boxes.size());
  std::vector<bool> puts(boxes.size(), false);
  for (const Ends& queue : queues) {
    for (const std::size_t from : queue.from) {
      puts[from] = true;
      for (const std::size_t to : queue.to) {
        if (from < to) before[to].push_back(from);
      }
    }
  }
  std::vector<std::size_t> column(boxes.size(), 0);
  std::size_t last = 0;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    for (const std::size_t from : before[i]) column[i] = std::max(column[i], column[from] + 1);
    // Nothing is known of its input: where the data flow has it.
    if (before[i].empty() && !puts[i] && i > 0) column[i] = column[i - 1] + 1;
    if (i + 1 < boxes.size()) last = std::max(last, column[i]);
  }
  column.back() = boxes.size() > 1 ? last + 1 : 0;
  return column;
}

std::size_t place_of(const Ends& ends, const std::vector<std::size_t>& column) {
  std::size_t after = 0;
  for (const std::size_t from : ends.from) after = std::max(after, column[from] + 1);
  std::optional<std::size_t> place;
  for (const std::size_t to : ends.to) {
    if (column[to] >= after) place = std::min(place.value_or(column[to]), column[to]);
  }
  if (!place && !ends.to.empty()) place = column[ends.to.front()];  // it leads back
  return std::min(place.value_or(after), column.back());
}

/// The sink's stage is the last one.
std::vector<Stage> stages_of(const Profile& profile) {
  std::vector<Box> boxes = boxes_of(profile);
  const std::vector<QueueProfile> queues = folded(profile.queues, 1);
  const std::vector<Ends> ends = ends_of(boxes, queues);
  const std::vector<std::size_t> column = columns_of(boxes, ends);

  std::vector<Stage> stages(column.back() + 1);
  for (std::size_t i = 0; i < queues.size(); ++i) {
    const std::size_t place = place_of(ends[i], column);
    const bool clear = std::all_of(ends[i].from.begin(), ends[i].from.end(),
                                   [&](std::size_t from) { return column[from] + 1 == place; }) &&
                       std::all_of(ends[i].to.begin(), ends[i].to.end(),
                                   [&](std::size_t to) { return column[to] == place; });
    stages[place].queues.push_back({queues[i], clear});
  }
  for (std::size_t i = 0; i < boxes.size(); ++i) stages[column[i]].boxes.push_back(std::move(boxes[i]));
  // Ends are clear only where one box stands on either side.
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const bool single = stages[i].boxes.size() <= 1 && (i == 0 || stages[i - 1].boxes.size() <= 1);
    for (StageQueue& queue : stages[i].queues) queue.clear = queue.clear && single;
  }
  return stages;
}

}  // namespace

nlohmann::json graph_json(const Profile& profile) {
  nlohmann::json graph = nlohmann::json::array();
  for (const Stage& stage : stages_of(profile)) {
    nlohmann::json queues = nlohmann::json::array();
    nlohmann::json boxes = nlohmann::json::array();
    for (const StageQueue& each : stage.queues) {
      queues.push_back(queue_json(each.queue));
      queues.back()["is_clear"] = each.clear;
    }
    for (const Box& box : stage.boxes) {
      nlohmann::json operators = nlohmann::json::array();
      for (const OperatorProfile* op : box.operators) operators.push_back(op - profile.operators.data());
      boxes.push_back({{"operators", operators}, {"in_sink", box.in_sink}});
    }
    graph.push_back({{"queues", queues}, {"boxes", boxes}});
  }
  return graph;
}

}  // namespace headrace::report
