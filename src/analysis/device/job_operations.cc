#include "headrace/analysis/device/job_operations.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/device/job_groups.h"
#include "headrace/analysis/device/collectives.h"
#include "headrace/analysis/device/device_idle.h"
#include "headrace/analysis/device/device_work.h"

namespace headrace::analysis::device {
namespace {

using job::Operation;
using Type = job::OperationType;

constexpr double kNanosecond = 1e-9;

constexpr const char* kNoSteps = "the traces have no complete steps: call profiler.step() after each step";
constexpr const char* kNoRanges =
    "no ranges name the micro-batches: put torch.profiler.record_function(f\"Forward {i}\") around the "
    "forward "
    "pass of micro-batch i and f\"Backward {i}\" around its backward pass";
constexpr const char* kSplit =
    "the schedule splits or overlaps backward passes (ranges such as PP:0I1, PP:0W1, OVERLAP_F_B), and such "
    "a "
    "schedule is not simulated: record a run with GPipe, 1F1B or interleaved 1F1B";
constexpr const char* kNoKernels =
    "no kernels were launched in the ranges of the micro-batches: record with ProfilerActivity.CUDA";
constexpr const char* kNoPipeline =
    "ranks send to each other, but no process group is described as the pipeline: make it with "
    "init_device_mesh(..., mesh_dim_names=(\"pp\", \"dp\")) or new_group(..., group_desc=\"pp\"), or "
    "give the ranks of each stage with --stage (stages=)";
constexpr const char* kUnevenStages =
    "the given stages have different numbers of ranks and no process group has one rank of each, so it "
    "is unknown which ranks form a pipeline: make that group with init_device_mesh or new_group";
constexpr const char* kNoTransfers =
    "sends and receives between the stages do not name their peer (\"Src Rank\", \"Dst Rank\"): record with "
    "a newer PyTorch and torch.distributed point-to-point calls";
constexpr const char* kNoChunks =
    "a rank has several model chunks and their ranges do not name them: name the ranges of computes "
    "PP:1F3 and PP:1B3 and those of transfers PP:1SEND_F3 and PP:1RECV_F3 (model chunk, then micro-batch)";
constexpr const char* kNotOneEach =
    "the sends and receives of a stage are not one for each of its micro-batches, so it is unknown which is "
    "which: put torch.profiler.record_function(\"PP:1SEND_F3\") around each (stage, micro-batch; RECV_F, "
    "SEND_B, RECV_B)";
constexpr const char* kNoGroups =
    "collectives do not name their process group: record with PyTorch 2.3 or later";

/// A range of the host that names a micro-batch.
struct Range {
  enum class Kind : std::uint8_t { compute, transfer, split };
  Kind kind = Kind::compute;
  Type type = Type::forward_compute;
  std::int32_t micro_batch = -1;
  std::int32_t model_chunk = -1;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t step = 0;
};

bool take_number(std::string_view& text, std::int32_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

struct Action {
  std::string_view word;
  Range::Kind kind;
  Type type;
};
constexpr std::array<Action, 8> kActions = {{{"F", Range::Kind::compute, Type::forward_compute},
                                             {"B", Range::Kind::compute, Type::backward_compute},
                                             {"SEND_F", Range::Kind::transfer, Type::forward_send},
                                             {"RECV_F", Range::Kind::transfer, Type::forward_recv},
                                             {"SEND_B", Range::Kind::transfer, Type::backward_send},
                                             {"RECV_B", Range::Kind::transfer, Type::backward_recv},
                                             {"I", Range::Kind::split, Type::backward_compute},
                                             {"W", Range::Kind::split, Type::backward_compute}}};

/// "Forward 3", "Backward 3", "PP:1F3".
std::optional<Range> range_of_name(std::string_view name) {
  Range range;
  for (const auto& [word, type] : {std::pair<std::string_view, Type>{"Forward ", Type::forward_compute},
                                   {"Backward ", Type::backward_compute}}) {
    if (!name.starts_with(word)) continue;
    name.remove_prefix(word.size());
    range.type = type;
    if (take_number(name, range.micro_batch) && name.empty()) return range;
    return std::nullopt;
  }
  if (!name.starts_with("PP:")) return std::nullopt;
  name.remove_prefix(3);
  if (name.ends_with("OVERLAP_F_B")) {
    range.kind = Range::Kind::split;
    return range;
  }
  if (!take_number(name, range.model_chunk)) return std::nullopt;
  const std::size_t letters = name.find_first_of("0123456789");
  for (const Action& action : kActions) {
    if (action.word != name.substr(0, letters)) continue;
    name.remove_prefix(action.word.size());
    range.kind = action.kind;
    range.type = action.type;
    if (take_number(name, range.micro_batch) && name.empty()) return range;
  }
  return std::nullopt;
}

/// By begin. They are on one thread, so they do not overlap.
std::vector<Range> ranges_of(const trace::Trace& trace, const std::vector<std::int64_t>& steps) {
  const trace::Columns& columns = trace.columns();
  std::vector<std::optional<Range>> by_name(columns.names.size());
  for (trace::Names::Id id = 0; id < columns.names.size(); ++id)
    by_name[id] = range_of_name(columns.names[id]);
  std::vector<Range> ranges;
  for (trace::Row row = 0; row < columns.size(); ++row) {
    const std::optional<Range>& named = by_name[columns.name[row]];
    if (!named || trace.kinds[row] != trace::EventKind::annotation) continue;
    const std::int32_t step = trace.steps.step_of(row);
    if (step == trace::Steps::kNone) continue;
    Range range = *named;
    range.begin_ns = columns.start_ns[row];
    range.end_ns = columns.end_ns(row);
    range.step = trace.steps.all()[static_cast<std::size_t>(step)].number;
    if (std::find(steps.begin(), steps.end(), range.step) != steps.end()) ranges.push_back(range);
  }
  std::stable_sort(ranges.begin(), ranges.end(),
                   [](const Range& a, const Range& b) { return a.begin_ns < b.begin_ns; });
  return ranges;
}

/// Whether a micro-batch has two forward passes before its backward pass, so that only a model chunk can tell
/// them apart.
bool has_unnamed_chunks(const std::vector<Range>& ranges) {
  std::set<std::pair<std::int64_t, std::int32_t>> open;
  for (const Range& range : ranges) {
    if (range.kind != Range::Kind::compute || range.model_chunk >= 0) continue;
    const std::pair micro_batch(range.step, range.micro_batch);
    if (range.type == Type::backward_compute) {
      open.erase(micro_batch);
    } else if (!open.insert(micro_batch).second) {
      return true;
    }
  }
  return false;
}

/// The host's record of a point-to-point call.
struct Peer {
  std::int64_t at_ns = 0;
  std::int64_t rank = trace::kAbsent;
  bool sends = false;
};

class Builder {
 public:
  Builder(const trace::Trace& trace, JobGroups groups, std::vector<Range> ranges)
      : trace_(trace), columns_(trace.columns()), groups_(std::move(groups)), ranges_(std::move(ranges)) {
    computed_.resize(ranges_.size());
    for (const Range& range : ranges_) {
      if (range.type == Type::backward_compute) {
        StepRanges& step = steps_[range.step];
        step.first_backward_ns = std::min(step.first_backward_ns, range.begin_ns);
        step.last_backward_ns = std::max(step.last_backward_ns, range.end_ns);
      }
      if (range.kind == Range::Kind::compute) steps_[range.step].end_ns = range.end_ns;
    }
  }

  RankOperations build(const std::vector<std::int64_t>& steps) {
    Scope scope;
    scope.steps = steps;
    const DeviceWork work = device_work(trace_, scope);
    for (const Work& each : work.work) {
      if (each.kind == KernelKind::computation) add_computation(each);
    }
    if (std::none_of(computed_.begin(), computed_.end(), [](const Span& span) { return span.is_known(); }))
      return {{}, kNoKernels};
    find_peers();
    add_computes();
    std::vector<const Work*> communication;
    for (const Work& each : work.work) {
      if (each.kind == KernelKind::communication) communication.push_back(&each);
    }
    // Calls of the host and their kernels are tied in the order of the launches.
    std::stable_sort(communication.begin(), communication.end(), [&](const Work* a, const Work* b) {
      return launched_ns(*a).value_or(0) < launched_ns(*b).value_or(0);
    });
    for (const Work* each : communication) add_communication(*each);
    add_optimizers();
    add_transfers();
    if (transfers_ > 0 && groups_.pipeline.empty()) return {{}, kNoPipeline};
    if (groups_.pipeline.size() > 1 && (transfers_ == 0 || without_peer_ > 0)) return {{}, kNoTransfers};
    if (to_others_ > 0) return {{}, kNoChunks};
    if (without_group_ > 0) return {{}, kNoGroups};
    if (operations_.empty()) return {{}, kNotOneEach};
    number();
    return {std::move(operations_), ""};
  }

 private:
  struct Span {
    std::int64_t begin_ns = std::numeric_limits<std::int64_t>::max();
    std::int64_t end_ns = std::numeric_limits<std::int64_t>::min();

    bool is_known() const { return begin_ns <= end_ns; }
    void add(const Work& work) {
      begin_ns = std::min(begin_ns, work.start_ns);
      end_ns = std::max(end_ns, work.end_ns);
    }
  };
  /// A send or a receive.
  struct Call {
    Span span;
    std::int32_t kernel = -1;
  };
  struct StepRanges {
    std::int64_t first_backward_ns = std::numeric_limits<std::int64_t>::max();  ///< on the host, as the next
    std::int64_t last_backward_ns = std::numeric_limits<std::int64_t>::min();
    std::int64_t end_ns = std::numeric_limits<std::int64_t>::max();
    std::int64_t first_launch_ns = std::numeric_limits<std::int64_t>::max();
    std::int64_t computed_ns =
        std::numeric_limits<std::int64_t>::min();  ///< on the device: of the last compute
    std::int64_t communicated_ns = std::numeric_limits<std::int64_t>::min();
    Span behind;  ///< computations behind the ranges
  };

  std::optional<std::int64_t> launched_ns(const Work& work) const {
    const trace::Row launch = trace_.correlation.launch_of(work.row);
    if (launch == trace::kNoRow) return std::nullopt;
    return columns_.start_ns[launch];
  }

  /// Index into ranges_.
  std::optional<std::size_t> range_at(std::int64_t at_ns) const {
    const auto after =
        std::upper_bound(ranges_.begin(), ranges_.end(), at_ns,
                         [](std::int64_t ns, const Range& range) { return ns < range.begin_ns; });
    if (after == ranges_.begin() || at_ns >= std::prev(after)->end_ns) return std::nullopt;
    return static_cast<std::size_t>(std::prev(after) - ranges_.begin());
  }

  /// nullptr for a step without ranges.
  StepRanges* step_of_work(const Work& work, std::int64_t& number) {
    const std::int32_t step = step_of(trace_, work.row);
    if (step == trace::Steps::kNone) return nullptr;
    number = trace_.steps.all()[static_cast<std::size_t>(step)].number;
    const auto found = steps_.find(number);
    return found == steps_.end() ? nullptr : &found->second;
  }

  void add_computation(const Work& work) {
    const std::optional<std::int64_t> at_ns = launched_ns(work);
    std::int64_t number = 0;
    StepRanges* step = step_of_work(work, number);
    if (!at_ns || step == nullptr) return;
    const std::optional<std::size_t> range = range_at(*at_ns);
    if (range && ranges_[*range].kind == Range::Kind::compute) {
      computed_[*range].add(work);
      step->first_launch_ns = std::min(step->first_launch_ns, *at_ns);
    } else if (!range && *at_ns >= step->end_ns) {
      step->behind.add(work);
    }
  }

  Operation operation(Type type, std::int64_t step, std::int64_t begin_ns, std::int64_t end_ns) const {
    Operation result;
    result.type = type;
    result.dp_rank = groups_.dp_rank;
    result.stage = groups_.stage;
    result.step = step;
    result.start_s = static_cast<double>(begin_ns) * kNanosecond;
    result.duration_s = static_cast<double>(std::max<std::int64_t>(0, end_ns - begin_ns)) * kNanosecond;
    return result;
  }

  void add_computes() {
    const Intervals waits = loader_waits(trace_);
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      if (computed_[i].is_known()) order.push_back(i);
    }
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(computed_[a].begin_ns, a) < std::pair(computed_[b].begin_ns, b);
    });
    std::int64_t free_ns = std::numeric_limits<std::int64_t>::min();
    for (const std::size_t i : order) {
      const Range& range = ranges_[i];
      StepRanges& step = steps_[range.step];
      for (const trace::Step& each : trace_.steps.all()) {
        if (each.number == range.step) free_ns = std::max(free_ns, each.start_ns);
      }
      // One begins when the one before has ended, also if a few of its kernels ran earlier on another stream.
      const std::int64_t begin_ns = std::max(computed_[i].begin_ns, free_ns);
      const std::int64_t end_ns = std::max(computed_[i].end_ns, begin_ns);
      Operation compute = operation(range.type, range.step, begin_ns, end_ns);
      if (begin_ns > free_ns) {
        const std::array<Interval, 1> gap = {Interval{free_ns, begin_ns}};
        compute.input_s = static_cast<double>(total_ns(intersected(waits, gap))) * kNanosecond;
      }
      place(compute, range);
      operations_.push_back(compute);
      free_ns = end_ns;
      step.computed_ns = std::max(step.computed_ns, end_ns);
    }
  }

  void place(Operation& operation, const Range& range) {
    operation.micro_batch = range.micro_batch;
    operation.model_chunk = range.model_chunk;
    if (range.model_chunk < 0) return;
    // The chunks of a rank are every n-th of the model, for n stages.
    const auto stages = static_cast<std::int32_t>(std::max<std::size_t>(1, groups_.pipeline.size()));
    operation.chunk = range.model_chunk / stages;
  }

  std::optional<Peer> peer_of(trace::Row row) const {
    const std::int64_t target = integer_at(target_, row).value_or(trace::kAbsent);
    const std::int64_t source = integer_at(source_, row).value_or(trace::kAbsent);
    if (target == trace::kAbsent && source == trace::kAbsent) return std::nullopt;
    return Peer{columns_.start_ns[row], target == trace::kAbsent ? source : target, target != trace::kAbsent};
  }

  /// The calls of the host, lane by lane. Several that are sent as one have one kernel.
  void find_peers() {
    for (const trace::ArgumentColumn* column : {target_, source_}) {
      if (column == nullptr) continue;
      for (const trace::Row row : column->rows) {
        if (trace::is_on_device(trace_.kinds[row])) continue;
        if (const auto peer = peer_of(row)) peers_[columns_.lane[row]].push_back(*peer);
      }
    }
    for (auto& [lane, peers] : peers_) {
      std::stable_sort(peers.begin(), peers.end(),
                       [](const Peer& a, const Peer& b) { return a.at_ns > b.at_ns; });
    }
  }

  /// Calls up to the launch that no earlier kernel has taken; without these, what the kernel itself says.
  std::vector<Peer> take_peers(const Work& work) {
    std::vector<Peer> taken;
    const trace::Row launch = trace_.correlation.launch_of(work.row);
    if (launch != trace::kNoRow) {
      std::vector<Peer>& open = peers_[columns_.lane[launch]];
      for (; !open.empty() && open.back().at_ns <= columns_.start_ns[launch]; open.pop_back())
        taken.push_back(open.back());
    }
    if (const auto own = peer_of(work.row); taken.empty() && own) taken.push_back(*own);
    return taken;
  }

  /// In a plain pipeline, a stage sends activations to the next one and gradients back.
  static std::optional<Type> type_of(std::int64_t distance, bool sends) {
    if (distance == 1) return sends ? Type::forward_send : Type::backward_recv;
    if (distance == -1) return sends ? Type::backward_send : Type::forward_recv;
    return std::nullopt;
  }

  void add_communication(const Work& work) {
    const std::optional<std::int64_t> at_ns = launched_ns(work);
    std::int64_t number = 0;
    StepRanges* step = step_of_work(work, number);
    if (!at_ns || step == nullptr) return;
    const std::string_view recorded = text_at(columns_, collective_, work.row);
    const std::string form = collective_form(recorded.empty() ? columns_.name_of(work.row) : recorded);
    const std::optional<std::size_t> range = range_at(*at_ns);
    if (form == kSendReceive || form.starts_with("coalesced")) {
      add_transfer(work, number, range);
    } else {
      add_collective(work, number, *step, *at_ns, form);
    }
  }

  void add_transfer(const Work& work, std::int64_t number, std::optional<std::size_t> range) {
    const std::vector<Peer> peers = take_peers(work);
    if (range && ranges_[*range].kind == Range::Kind::transfer) {
      // A stage with several outputs has several kernels in a range.
      in_ranges_[*range].add(work);
      ++transfers_;
      return;
    }
    if (peers.empty()) ++without_peer_;
    if (groups_.pipeline.empty()) ++transfers_;
    ++kernels_;
    for (const Peer& peer : peers) {
      const auto at = std::find(groups_.pipeline.begin(), groups_.pipeline.end(), peer.rank);
      if (at == groups_.pipeline.end()) continue;
      const std::int64_t distance = at - groups_.pipeline.begin() - groups_.stage;
      if (const auto type = type_of(distance, peer.sends)) {
        Call& call = by_peer_[number][*type].emplace_back(Call{{}, kernels_});
        call.span.add(work);
        ++transfers_;
      } else {
        ++to_others_;
      }
    }
  }

  void add_transfers() {
    for (const auto& [range, span] : in_ranges_) {
      Operation transfer = operation(ranges_[range].type, ranges_[range].step, span.begin_ns, span.end_ns);
      place(transfer, ranges_[range]);
      operations_.push_back(transfer);
    }
    for (const auto& [number, by_type] : by_peer_) {
      const bool whole = std::all_of(by_type.begin(), by_type.end(), [&, step = number](const auto& each) {
        const std::size_t computes = computes_of(each.first, step);
        return computes > 0 && each.second.size() % computes == 0;
      });
      if (!whole) {
        std::erase_if(operations_, [&, step = number](const Operation& each) { return each.step == step; });
        continue;
      }
      for (const auto& [type, calls] : by_type) add_in_turn(type, number, calls);
    }
  }

  /// Micro-batches in the direction of the transfers.
  std::size_t computes_of(Type transfer, std::int64_t step) const {
    const bool forward = transfer == Type::forward_send || transfer == Type::forward_recv;
    const Type compute = forward ? Type::forward_compute : Type::backward_compute;
    return static_cast<std::size_t>(
        std::count_if(operations_.begin(), operations_.end(),
                      [&](const Operation& each) { return each.type == compute && each.step == step; }));
  }

  /// Each micro-batch has the same number of calls, one for each output of the stage.
  void add_in_turn(Type type, std::int64_t step, const std::vector<Call>& calls) {
    const std::size_t each = calls.size() / computes_of(type, step);
    for (std::size_t i = 0; i < calls.size(); i += each) {
      Call whole = calls[i];
      for (std::size_t j = i + 1; j < i + each; ++j) {
        whole.span.begin_ns = std::min(whole.span.begin_ns, calls[j].span.begin_ns);
        whole.span.end_ns = std::max(whole.span.end_ns, calls[j].span.end_ns);
        if (calls[j].kernel != whole.kernel) whole.kernel = -1;
      }
      Operation& added =
          operations_.emplace_back(operation(type, step, whole.span.begin_ns, whole.span.end_ns));
      added.kernel = whole.kernel;
    }
  }

  void add_collective(const Work& work, std::int64_t number, StepRanges& step, std::int64_t at_ns,
                      const std::string& form) {
    const std::string_view group = text_at(columns_, group_, work.row);
    if (group.empty()) {
      ++without_group_;
      return;
    }
    const auto found = groups_.by_name.find(group);
    if (found == groups_.by_name.end()) return;
    std::optional<Type> type;
    std::int64_t begin_ns = work.start_ns;
    if (found->second == JobGroups::Use::data && form == kAllGather && at_ns < step.first_launch_ns) {
      type = Type::params_all_gather;
    } else if (found->second == JobGroups::Use::data && at_ns >= step.first_backward_ns) {
      if (form == kReduceScatter) type = Type::grads_reduce_scatter;
      if (form == kAllReduce) type = Type::separate_grads_all_reduce;
      begin_ns = std::max(begin_ns, step.computed_ns);
    } else if (form == kAllReduce && at_ns >= step.last_backward_ns) {
      if (found->second == JobGroups::Use::stages) type = Type::optimizer_clip_main_grad;
      if (found->second == JobGroups::Use::embedding) type = Type::embedding_grads_all_reduce;
    }
    if (!type) return;
    operations_.push_back(operation(*type, number, begin_ns, std::max(begin_ns, work.end_ns)));
    if (*type != Type::params_all_gather) step.communicated_ns = std::max(step.communicated_ns, work.end_ns);
  }

  void add_optimizers() {
    for (const auto& [number, step] : steps_) {
      if (!step.behind.is_known() || step.computed_ns == std::numeric_limits<std::int64_t>::min()) continue;
      const std::int64_t begin_ns = std::max({step.behind.begin_ns, step.computed_ns, step.communicated_ns});
      if (step.behind.end_ns > begin_ns)
        operations_.push_back(operation(Type::optimizer, number, begin_ns, step.behind.end_ns));
    }
  }

  /// By start; each gets its number among those of its type in its step.
  void number() {
    std::stable_sort(operations_.begin(), operations_.end(),
                     [](const Operation& a, const Operation& b) { return a.start_s < b.start_s; });
    std::map<std::pair<std::int64_t, Type>, std::int64_t> seen;
    for (Operation& each : operations_) each.sequence = seen[{each.step, each.type}]++;
  }

  const trace::Trace& trace_;
  const trace::Columns& columns_;
  JobGroups groups_;
  std::vector<Range> ranges_;
  std::vector<Span> computed_;  ///< by range
  std::map<std::int64_t, StepRanges> steps_;
  std::map<std::uint32_t, std::vector<Peer>> peers_;  ///< by lane, the latest first
  job::Operations operations_;
  std::map<std::size_t, Span> in_ranges_;                              ///< transfers, by range
  std::map<std::int64_t, std::map<Type, std::vector<Call>>> by_peer_;  ///< transfers, by step, as launched
  std::int32_t kernels_ = 0;                                           ///< of transfers by peer
  std::size_t transfers_ = 0;
  std::size_t to_others_ = 0;  ///< transfers with stages that are not the next ones
  std::size_t without_peer_ = 0;
  std::size_t without_group_ = 0;
  const trace::ArgumentColumn* collective_ = columns_.argument("Collective name");
  const trace::ArgumentColumn* group_ = columns_.argument("Process Group Name");
  const trace::ArgumentColumn* source_ = columns_.argument("Src Rank");
  const trace::ArgumentColumn* target_ = columns_.argument("Dst Rank");
};

}  // namespace

RankOperations job_operations(const trace::Trace& trace, const std::vector<trace::ProcessGroup>& groups,
                              std::int64_t rank, const std::vector<std::int64_t>& steps,
                              const std::vector<std::vector<std::int64_t>>& stages) {
  JobGroups of_rank = stages.empty() ? job_groups(groups, rank) : job_groups(groups, rank, stages);
  const bool in_pipeline = of_rank.pipeline.size() > 1;
  if (steps.empty()) return {{}, kNoSteps, in_pipeline};
  if (!stages.empty() && of_rank.pipeline.empty()) return {{}, kUnevenStages};
  std::vector<Range> ranges = ranges_of(trace, steps);
  if (ranges.empty()) return {{}, kNoRanges, in_pipeline};
  if (std::any_of(ranges.begin(), ranges.end(),
                  [](const Range& range) { return range.kind == Range::Kind::split; }))
    return {{}, kSplit};
  if (in_pipeline && has_unnamed_chunks(ranges)) return {{}, kNoChunks};
  return Builder(trace, std::move(of_rank), std::move(ranges)).build(steps);
}

}  // namespace headrace::analysis::device
