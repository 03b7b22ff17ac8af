#include "profile/graph_parts.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>

namespace headrace::profile {
namespace {

using metrics::Place;

/// A thread's own loop is an operator of its own when it does more than this share of the thread's work.
constexpr double kLoopShare = 0.10;
/// ... and is busy for more than this share of the time.
constexpr double kLoopTimeShare = 0.02;
/// The wrapped object itself is shown beside recorded operators when it takes more than this share of the
/// wait.
constexpr double kSourceShare = 0.05;

template <class Number>
void add_unique(std::vector<Number>& list, Number value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

/// The graph of a user's own pipeline: from the calls of the threads.
class GraphBuilder : GraphParts {
 public:
  GraphBuilder(const SegmentImage& image, const SegmentFigures& figures, std::uint32_t loader)
      : GraphParts(image, figures, loader), loader_(image.loaders()[loader]) {
    canonical_.resize(kMaxOperators);
    for (std::uint32_t i = 0; i < kMaxOperators; ++i) canonical_[i] = same_as(i);
  }

  Graph build() {
    merge_loops();
    for (std::uint32_t worker = 0; worker < figures_.workers.size(); ++worker) add_worker(worker);
    add_sink_operators();
    for (std::uint32_t op = 0; op < kMaxOperators; ++op) {
      if (graph_.node_of_operator[op] < 0)
        graph_.node_of_operator[op] = graph_.node_of_operator[canonical_[op]];
    }
    connect_declared();
    keep_what_feeds_the_sink();
    name_kinds();
    number_segments();
    sort_by_flow();
    return std::move(graph_);
  }

 private:
  /// Two processes that met an operator at the same moment may both have made its record.
  std::uint32_t same_as(std::uint32_t op) const {
    const auto operators = image_.operators();
    for (std::uint32_t i = 0; i < op; ++i) {
      if (operators[i].life.load(std::memory_order_relaxed) ==
              operators[op].life.load(std::memory_order_relaxed) &&
          operators[i].key == operators[op].key &&
          operators[i].loader.load() == operators[op].loader.load() &&
          operators[i].name.view() == operators[op].name.view() && operators[i].kind == operators[op].kind) {
        return i;
      }
    }
    return op;
  }

  /// The queues that the threads of one loop take from and put to.
  struct LoopQueues {
    std::uint32_t op;
    std::set<std::uint32_t> inputs;
    std::set<std::uint32_t> outputs;
  };

  std::vector<LoopQueues> queues_of_loops() const {
    std::vector<LoopQueues> loops;
    for (const CellFigures& cell : figures_.cells) {
      const std::uint32_t op = canonical_[cell.op];
      if (!cell.is_loop || cell.place != Place::worker || is_foreign(op)) continue;
      auto found = std::find_if(loops.begin(), loops.end(), [&](const auto& one) { return one.op == op; });
      if (found == loops.end()) found = loops.insert(loops.end(), {op, {}, {}});
      for (const EdgeFigures& edge : figures_.workers[cell.worker].edges) {
        if (edge.items > 0) (edge.is_put ? found->outputs : found->inputs).insert(edge.queue);
      }
    }
    return loops;
  }

  /// Threads are one operator if they run the same function between the same queues. A loop's record is made
  /// at the first call that was recorded, which is of another queue in a thread that was found later.
  void merge_loops() {
    const std::vector<LoopQueues> loops = queues_of_loops();
    for (std::size_t i = 0; i < loops.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const bool same = loops[i].inputs == loops[j].inputs && loops[i].outputs == loops[j].outputs &&
                          base_name(loops[i].op) == base_name(loops[j].op);
        if (!same) continue;
        for (std::uint32_t& op : canonical_) {
          if (op == loops[i].op) op = canonical_[loops[j].op];
        }
        break;
      }
    }
  }

  /// "decode" of "decode#2".
  std::string_view base_name(std::uint32_t op) const {
    const std::string_view name = record_of(op).name.view();
    return name.substr(0, numbered_from(name));
  }

  /// Start of the number in a name that others have too; npos: it has none.
  static std::size_t numbered_from(std::string_view name) {
    const std::size_t mark = name.rfind('#');
    if (mark == std::string_view::npos) return mark;
    return name.find_first_not_of("0123456789", mark + 1) == std::string_view::npos ? mark
                                                                                    : std::string_view::npos;
  }

  int node(std::uint32_t op, bool in_sink) {
    op = canonical_[op];
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (graph_.nodes[i].op == op && graph_.nodes[i].in_sink == in_sink) return static_cast<int>(i);
    }
    GraphNode& made = add_node(op);
    made.in_sink = in_sink;
    made.is_source_object = (made.flags & kIsWrappedObject) != 0;
    const int index = static_cast<int>(graph_.nodes.size()) - 1;
    if (graph_.node_of_operator[op] < 0) graph_.node_of_operator[op] = index;
    return index;
  }

  GraphNode& at(int index) { return graph_.nodes[static_cast<std::size_t>(index)]; }

  GraphQueue& queue(std::uint32_t number) {
    for (GraphQueue& known : graph_.queues) {
      if (known.queue == number) return known;
    }
    graph_.queues.push_back({number, {}, {}, false});
    return graph_.queues.back();
  }

  void connect(int index, std::uint32_t number, bool is_put) {
    GraphNode& node = at(index);
    add_unique(is_put ? node.outputs : node.inputs, number);
    add_unique(is_put ? queue(number).from : queue(number).to, index);
  }

  /// Part of another loader's own graph.
  bool is_foreign(std::uint32_t op) const {
    const std::uint32_t loader = record_of(op).loader.load();
    return loader != 0 && loader != number_ + 1;
  }

  /// The operators that one thread runs, in the order in which an item passes them.
  void add_worker(std::uint32_t worker) {
    // A framework's loader has a graph of its own.
    if (image_.workers()[figures_.workers[worker].index].loader.load() != 0) return;
    std::vector<std::uint32_t> bodies;
    std::vector<std::uint32_t> loops;
    double body_ns = 0;
    double loop_ns = 0;
    for (std::uint32_t i = 0; i < figures_.cells.size(); ++i) {
      const CellFigures& cell = figures_.cells[i];
      if (cell.worker != worker || cell.place != Place::worker || is_foreign(cell.op) || is_idle(cell))
        continue;
      (cell.is_loop ? loops : bodies).push_back(i);
      (cell.is_loop ? loop_ns : body_ns) += cell.busy_ns;
    }
    const double least_ns = kLoopTimeShare * static_cast<double>(figures_.loop_ns);
    const bool works_itself =
        !figures_.workers[worker].is_sink && loop_ns > least_ns && loop_ns > kLoopShare * (loop_ns + body_ns);
    const bool show_loop = bodies.empty() || works_itself;
    std::sort(bodies.begin(), bodies.end(), [&](std::uint32_t a, std::uint32_t b) {
      return figures_.cells[a].first_done_ns < figures_.cells[b].first_done_ns;
    });
    std::vector<std::uint32_t> shown = bodies;
    if (show_loop) shown.insert(shown.end(), loops.begin(), loops.end());
    if (shown.empty()) return;
    std::vector<int> chain;
    for (const std::uint32_t cell : shown) {
      chain.push_back(node(figures_.cells[cell].op, false));
      add_cell(at(chain.back()), cell);
    }
    if (!show_loop) {
      for (const std::uint32_t cell : loops)
        graph_.node_of_operator[canonical_[figures_.cells[cell].op]] = chain.front();
    }
    chains_.push_back(chain);
    for (const EdgeFigures& edge : figures_.workers[worker].edges) {
      // The sink's thread takes for its GetNext; what it put before the loop, it put as a
      // source.
      if (figures_.workers[worker].is_sink && !edge.is_put) continue;
      if (edge.items > 0) connect(edge.is_put ? chain.back() : chain.front(), edge.queue, edge.is_put);
    }
  }

  /// Copies to a device belong to the picture wherever they run.
  bool is_copy_in_step(const CellFigures& cell) const {
    return cell.place == Place::step && cell.items > 0 && is_ours(cell.op) && ran_in_sink(cell.op) &&
           is_transfer(cell.op);
  }

  void add_sink_operators() {
    const std::uint32_t source = loader_.source_operator.load();
    const double wait_ns = std::max(1.0, figures_.sink.wait_ns);
    std::vector<int> chain;
    std::vector<std::uint32_t> source_cells;
    for (std::uint32_t i = 0; i < figures_.cells.size(); ++i) {
      const CellFigures& cell = figures_.cells[i];
      if (is_copy_in_step(cell)) {
        GraphNode& copy = at(node(cell.op, false));
        copy.in_step = true;
        add_cell(copy, i);
      }
      if (cell.place != Place::get_next || record_of(cell.op).loader.load() != 0 || !ran_in_sink(cell.op))
        continue;
      if (source != 0 && cell.op == source - 1) {
        source_cells.push_back(i);
      } else if ((record_of(cell.op).flags.load() & kIsWrappedObject) == 0) {
        const int index = node(cell.op, true);
        add_cell(at(index), i);
        add_unique(chain, index);
      }
    }
    double source_ns = -figures_.sink.redirected_ns;
    for (const std::uint32_t cell : source_cells) source_ns += figures_.cells[cell].busy_ns;
    const bool nothing_else = graph_.nodes.empty();
    if (!source_cells.empty() && (nothing_else || source_ns > kSourceShare * wait_ns)) {
      const int index = node(source - 1, true);
      for (const std::uint32_t cell : source_cells) add_cell(at(index), cell);
      chain.push_back(index);
    }
    sink_chain_ = chain;
    for (std::uint32_t number = 0; number < kMaxQueues; ++number) {
      if ((sink_.queues.load() >> number & 1) == 0) continue;
      if (chain.empty()) {
        queue(number).to_sink = true;
      } else {
        connect(chain.front(), number, false);
      }
    }
  }

  void connect_declared() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const OperatorRecord& record = record_of(graph_.nodes[i].op);
      for (const std::uint32_t input : record.inputs) {
        if (input > 0 && input <= kMaxQueues) connect(static_cast<int>(i), input - 1, false);
      }
      for (const std::uint32_t output : record.outputs) {
        if (output > 0 && output <= kMaxQueues) connect(static_cast<int>(i), output - 1, true);
      }
    }
  }

  /// With several loaders in one process: what is upstream of this loader's queues, and what runs inside
  /// its GetNext. Operators without any queue may feed every loader that has none either.
  void keep_what_feeds_the_sink() {
    std::vector<char> keep(graph_.nodes.size(), 0);
    std::vector<int> pending = sink_chain_;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) keep[i] = graph_.nodes[i].in_step ? 1 : 0;
    const auto take_producers = [&](const GraphQueue& of) {
      pending.insert(pending.end(), of.from.begin(), of.from.end());
    };
    bool sink_has_queue = false;
    for (const GraphQueue& one : graph_.queues) {
      if (one.to_sink) take_producers(one);
      sink_has_queue |= one.to_sink;
    }
    while (!pending.empty()) {
      const auto index = static_cast<std::size_t>(pending.back());
      pending.pop_back();
      if (keep[index] != 0) continue;
      keep[index] = 1;
      sink_has_queue |= !graph_.nodes[index].inputs.empty();
      for (const std::uint32_t input : graph_.nodes[index].inputs) take_producers(queue(input));
      for (const auto& chain : chains_) {
        if (std::find(chain.begin(), chain.end(), static_cast<int>(index)) != chain.end()) {
          pending.insert(pending.end(), chain.begin(), chain.end());
        }
      }
    }
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const GraphNode& one = graph_.nodes[i];
      if (!sink_has_queue && one.inputs.empty() && one.outputs.empty() && !one.in_sink) keep[i] = 1;
    }
    std::vector<int> kept;
    for (std::size_t i = 0; i < keep.size(); ++i) {
      if (keep[i] != 0) kept.push_back(static_cast<int>(i));
    }
    arrange(kept);
    std::erase_if(graph_.queues,
                  [](const GraphQueue& one) { return one.from.empty() && one.to.empty() && !one.to_sink; });
    shorten_names();
  }

  /// "decode#2" is "decode" where what was first called so (a loop of that name, not worth showing) is not in
  /// the graph.
  void shorten_names() {
    for (GraphNode& one : graph_.nodes) {
      const std::size_t mark = numbered_from(one.name);
      if (mark == std::string::npos) continue;
      const std::string base = one.name.substr(0, mark);
      const auto operators = image_.operators();
      const bool numbered = std::any_of(operators.begin(), operators.end(), [&](const OperatorRecord& other) {
        return other.life.load(std::memory_order_relaxed) != 0 && other.name.view() == base;
      });
      const bool shown = std::any_of(graph_.nodes.begin(), graph_.nodes.end(),
                                     [&](const GraphNode& other) { return other.name == base; });
      if (numbered && !shown) one.name = base;
    }
  }

  /// Leaves the nodes of `order`, in that order.
  void arrange(const std::vector<int>& order) {
    std::vector<int> moved(graph_.nodes.size(), -1);
    std::vector<GraphNode> arranged;
    for (const int index : order) {
      moved[static_cast<std::size_t>(index)] = static_cast<int>(arranged.size());
      arranged.push_back(std::move(at(index)));
    }
    graph_.nodes = std::move(arranged);
    const auto now_at = [&](int index) { return index < 0 ? -1 : moved[static_cast<std::size_t>(index)]; };
    const auto move_all = [&](std::vector<int>& list) {
      for (int& index : list) index = now_at(index);
      std::erase(list, -1);
    };
    for (GraphQueue& one : graph_.queues) {
      move_all(one.from);
      move_all(one.to);
    }
    for (auto& chain : chains_) move_all(chain);
    move_all(sink_chain_);
    for (int& index : graph_.node_of_operator) index = now_at(index);
  }

  /// The rest of a thread whose annotated operators come first gets its items from them.
  bool follows_another(int index) const {
    return std::any_of(chains_.begin(), chains_.end(), [&](const std::vector<int>& chain) {
      return std::find(chain.begin(), chain.end(), index) > chain.begin() &&
             std::find(chain.begin(), chain.end(), index) != chain.end();
    });
  }

  /// The kind of an unnamed loop follows from its queue calls.
  void name_kinds() {
    for (std::size_t index = 0; index < graph_.nodes.size(); ++index) {
      GraphNode& one = graph_.nodes[index];
      if ((one.flags & kIsWorkerLoop) == 0) continue;
      std::uint64_t gets = 0;
      std::uint64_t puts = 0;
      for (const std::uint32_t cell : one.cells) {
        for (const EdgeFigures& edge : figures_.workers[figures_.cells[cell].worker].edges) {
          (edge.is_put ? puts : gets) += edge.items;
        }
      }
      if (one.inputs.empty() && !follows_another(static_cast<int>(index))) {
        one.kind = OperatorKind::source;
      } else {
        const bool gathers = puts > 0 && static_cast<double>(gets) > 1.5 * static_cast<double>(puts);
        one.kind = gathers ? OperatorKind::batch : OperatorKind::map;
      }
    }
  }

  void number_segments() {
    int next = 0;
    std::vector<std::vector<int>> shared = chains_;
    shared.push_back(sink_chain_);
    for (const auto& chain : shared) {
      if (chain.size() < 2) continue;
      int number = -1;
      for (const int index : chain) number = std::max(number, at(index).segment);
      if (number < 0) number = next++;
      for (const int index : chain) at(index).segment = number;
    }
  }

  /// Longest way from a source, by repeated relaxation; a cycle (a feedback queue) stops growing at the node
  /// count.
  std::vector<int> depths() const {
    std::vector<int> depth(graph_.nodes.size(), 0);
    const int limit = static_cast<int>(graph_.nodes.size());
    for (int round = 0; round < limit; ++round) {
      bool changed = false;
      const auto raise = [&](int from, int to) {
        const int wanted = std::min(limit, depth[static_cast<std::size_t>(from)] + 1);
        if (from != to && depth[static_cast<std::size_t>(to)] < wanted) {
          depth[static_cast<std::size_t>(to)] = wanted;
          changed = true;
        }
      };
      for (const GraphQueue& one : graph_.queues) {
        for (const int from : one.from) {
          for (const int to : one.to) raise(from, to);
        }
      }
      for (const auto& chain : chains_) {
        for (std::size_t i = 1; i < chain.size(); ++i) raise(chain[i - 1], chain[i]);
      }
      if (!changed) break;
    }
    return depth;
  }

  void sort_by_flow() {
    const std::vector<int> depth = depths();
    const auto rank_of = [&](int index) {
      const GraphNode& one = at(index);
      return std::tuple(one.in_step, one.in_sink, one.in_sink && one.is_source_object,
                        depth[static_cast<std::size_t>(index)], one.first_done_ns);
    };
    std::vector<int> order(graph_.nodes.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return rank_of(a) < rank_of(b); });
    arrange(order);
    const auto first_of = [](const GraphQueue& one) {
      return one.from.empty() ? -1 : *std::min_element(one.from.begin(), one.from.end());
    };
    std::stable_sort(graph_.queues.begin(), graph_.queues.end(),
                     [&](const GraphQueue& a, const GraphQueue& b) { return first_of(a) < first_of(b); });
  }

  const LoaderRecord& loader_;
  std::vector<std::uint32_t> canonical_;
  std::vector<std::vector<int>> chains_;  ///< nodes of each thread, in item order
  std::vector<int> sink_chain_;
};

}  // namespace

Graph Graph::of(const SegmentImage& image, const SegmentFigures& figures, std::uint32_t loader,
                const LoaderModel* model) {
  if (image.loaders()[loader].has_own_graph.load() == 0) return GraphBuilder(image, figures, loader).build();
  if (model != nullptr && window_of(*model) == nullptr) return stage_graph(image, figures, loader, *model);
  return window_graph(image, figures, loader, model);
}

}  // namespace headrace::profile
