#include "dependencies.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

namespace headrace::analysis::job {
namespace {

using Type = OperationType;
using Positions = std::vector<std::uint32_t>;

/// Operations of one direction of the pipeline.
struct Direction {
  Type compute;
  Type send;
  Type receive;
  bool forward;
};

constexpr std::array<Direction, 2> kDirections = {
    Direction{Type::forward_compute, Type::forward_send, Type::forward_recv, true},
    Direction{Type::backward_compute, Type::backward_send, Type::backward_recv, false}};

/// A send and the receive that belongs to it: data-parallel rank, direction, the model chunk whose compute
/// receives, micro-batch, and how many of these were before.
using PairKey = std::tuple<std::int32_t, bool, std::int32_t, std::int32_t, std::size_t>;

class Builder {
 public:
  Builder(const Operations& operations, std::span<const std::uint32_t> members)
      : operations_(operations), members_(members) {
    result_.needs.resize(members.size());
    result_.in_batch.resize(members.size());
    in_group_.resize(members.size());
    Positions order(members.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(at(a).start_s, at(a).sequence, a) < std::tuple(at(b).start_s, at(b).sequence, b);
    });
    for (const std::uint32_t each : order) {
      workers_[{at(each).dp_rank, at(each).stage}][static_cast<std::size_t>(at(each).type)].push_back(each);
      first_stage_ = std::min(first_stage_, at(each).stage);
      last_stage_ = std::max(last_stage_, at(each).stage);
    }
    for (const std::uint32_t each : order) last_chunk_ = std::max(last_chunk_, chunk_of(each));
  }

  Dependencies build() {
    for (const auto& [worker, of_type] : workers_) {
      add_streams(of_type);
      for (const Direction& direction : kDirections) add_transfers(of_type, direction);
      add_parameters(of_type);
      add_end(of_type);
    }
    join_kernels();
    pair_transfers();
    add_collectives();
    for (std::uint32_t i = 0; i < members_.size(); ++i) {
      if (!in_group_[i]) result_.groups.push_back({i});
    }
    return std::move(result_);
  }

 private:
  using ByType = std::array<Positions, kOperationTypes>;

  const Operation& at(std::uint32_t position) const { return operations_[members_[position]]; }

  /// Chunk of the model; a job without interleaving has one a stage.
  std::int32_t chunk_of(std::uint32_t position) const {
    return at(position).model_chunk >= 0 ? at(position).model_chunk : at(position).stage;
  }

  static const Positions& of(const ByType& by_type, Type type) {
    return by_type[static_cast<std::size_t>(type)];
  }

  Positions together(const ByType& by_type, Type a, Type b) const {
    Positions both = of(by_type, a);
    both.insert(both.end(), of(by_type, b).begin(), of(by_type, b).end());
    std::stable_sort(both.begin(), both.end(),
                     [&](std::uint32_t x, std::uint32_t y) { return at(x).start_s < at(y).start_s; });
    return both;
  }

  void need(std::uint32_t later, std::uint32_t earlier) { result_.needs[later].push_back(earlier); }

  void chain(const Positions& stream) {
    for (std::size_t i = 1; i < stream.size(); ++i) need(stream[i], stream[i - 1]);
  }

  void add_streams(const ByType& by_type) {
    chain(together(by_type, Type::forward_compute, Type::backward_compute));
    for (const Direction& direction : kDirections) {
      chain(of(by_type, direction.send));
      chain(of(by_type, direction.receive));
    }
    chain(together(by_type, Type::params_all_gather, Type::grads_reduce_scatter));
  }

  /// Whether this end of the direction is the end of the pipeline: nothing to send or nothing to receive.
  bool is_end(std::uint32_t compute, bool forward, bool sends) const {
    return chunk_of(compute) == (forward == sends ? last_chunk_ : 0);
  }

  /// The compute of each transfer, by its number. Schedules record either all transfers or only those that have
  /// a partner, and a first backward send of an interleaved schedule that sends nothing.
  Positions computes_of(const Positions& computes, std::size_t transfers, bool forward, bool sends) const {
    if (transfers >= computes.size()) return computes;
    Positions inner;
    for (const std::uint32_t each : computes) {
      if (!is_end(each, forward, sends)) inner.push_back(each);
    }
    return inner.size() == transfers ? inner : computes;
  }

  void add_transfers(const ByType& by_type, const Direction& direction) {
    const Positions& computes = of(by_type, direction.compute);
    const Positions& receives = of(by_type, direction.receive);
    const Positions& sends = of(by_type, direction.send);
    const std::optional<std::uint32_t> warm = before_first_backward(by_type);

    const Positions received = computes_of(computes, receives.size(), direction.forward, false);
    std::size_t compute = 0;  // the place of received[i], which is in the same order
    for (std::size_t i = 0; i < receives.size() && i < received.size(); ++i) {
      need(received[i], receives[i]);
      while (computes[compute] != received[i]) ++compute;
      if (compute > 0) need(receives[i], computes[compute - 1]);
      if (!is_end(received[i], direction.forward, false)) {
        ends_[key_of(received[i], direction.forward, false)].receive = receives[i];
      }
    }
    if (!direction.forward && !receives.empty() && warm) need(receives.front(), *warm);

    const bool extra = !direction.forward && sends.size() == computes.size() + 1;
    if (extra && warm) need(sends.front(), *warm);
    const std::size_t skipped = extra ? 1 : 0;
    const Positions sent = computes_of(computes, sends.size(), direction.forward, true);
    for (std::size_t i = skipped; i < sends.size() && i - skipped < sent.size(); ++i) {
      const std::uint32_t compute = sent[i - skipped];
      need(sends[i], compute);
      if (!is_end(compute, direction.forward, true)) {
        ends_[key_of(compute, direction.forward, true)].send = sends[i];
      }
    }
  }

  /// The second-last forward before the first backward, if there is one.
  std::optional<std::uint32_t> before_first_backward(const ByType& by_type) const {
    const Positions& forwards = of(by_type, Type::forward_compute);
    const Positions& backwards = of(by_type, Type::backward_compute);
    if (backwards.empty()) return std::nullopt;
    std::size_t before = 0;
    while (before < forwards.size() && at(forwards[before]).start_s < at(backwards.front()).start_s) ++before;
    if (before < 2) return std::nullopt;
    return forwards[before - 2];
  }

  PairKey key_of(std::uint32_t compute, bool forward, bool sends) {
    const Operation& operation = at(compute);
    const std::int32_t chunk = chunk_of(compute) + (!sends ? 0 : forward ? 1 : -1);
    PairKey key{operation.dp_rank, forward, chunk, operation.micro_batch, 0};
    std::get<4>(key) = seen_[{sends, key}]++;
    return key;
  }

  void add_parameters(const ByType& by_type) {
    for (const std::uint32_t gather : of(by_type, Type::params_all_gather)) {
      for (const std::uint32_t compute : of(by_type, Type::forward_compute)) {
        if (at(gather).chunk >= 0 && at(compute).chunk >= 0 && at(gather).chunk != at(compute).chunk)
          continue;
        need(compute, gather);
        break;
      }
    }
  }

  void add_end(const ByType& by_type) {
    const bool overlapped = !of(by_type, Type::separate_grads_all_reduce).empty();
    const Positions& scatters = of(by_type, Type::grads_reduce_scatter);
    const Positions& backwards = of(by_type, Type::backward_compute);
    if (overlapped) {
      for (const std::uint32_t scatter : scatters) {
        const auto last = std::find_if(backwards.rbegin(), backwards.rend(), [&](std::uint32_t each) {
          return at(scatter).chunk < 0 || at(each).chunk < 0 || at(each).chunk == at(scatter).chunk;
        });
        if (last != backwards.rend()) need(scatter, *last);
      }
    }
    Positions before;
    const Positions computes = together(by_type, Type::forward_compute, Type::backward_compute);
    if (!computes.empty()) before.push_back(computes.back());
    for (const Type type : {Type::gc, Type::layernorm_grads_all_reduce, Type::embedding_grads_all_reduce,
                            overlapped ? Type::separate_grads_all_reduce : Type::grads_reduce_scatter,
                            Type::optimizer_clip_main_grad, Type::optimizer}) {
      for (const std::uint32_t each : of(by_type, type)) {
        for (const std::uint32_t earlier : before) need(each, earlier);
        before = {each};
      }
      if (overlapped && type == Type::separate_grads_all_reduce) {
        before.insert(before.end(), scatters.begin(), scatters.end());
      }
    }
  }

  void make_group(Positions group) {
    for (const std::uint32_t each : group) in_group_[each] = true;
    result_.groups.push_back(std::move(group));
  }

  /// Transfers of one kernel begin when all of them can, and what waits for one of them waits for all.
  void join_kernels() {
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, Positions> kernels;
    for (const auto& [key, ends] : ends_) {
      if (!ends.send || !ends.receive) continue;
      for (const std::uint32_t each : {*ends.send, *ends.receive}) {
        if (at(each).kernel < 0) continue;
        kernels[{at(each).dp_rank, at(each).stage, at(each).kernel}].push_back(each);
      }
    }
    std::map<std::uint32_t, const Positions*> kernel_of;
    for (const auto& numbered : kernels) {
      const Positions& kernel = numbered.second;
      if (kernel.size() < 2) continue;
      Positions needs;
      for (const std::uint32_t each : kernel) {
        kernel_of[each] = &kernel;
        result_.in_batch[each] = true;
        needs.insert(needs.end(), result_.needs[each].begin(), result_.needs[each].end());
      }
      std::erase_if(needs, [&](std::uint32_t each) {
        return std::find(kernel.begin(), kernel.end(), each) != kernel.end();
      });
      for (const std::uint32_t each : kernel) result_.needs[each] = needs;
    }
    if (kernel_of.empty()) return;
    for (Positions& needs : result_.needs) {
      const std::size_t own = needs.size();
      for (std::size_t i = 0; i < own; ++i) {
        const auto found = kernel_of.find(needs[i]);
        if (found != kernel_of.end()) needs.insert(needs.end(), found->second->begin(), found->second->end());
      }
    }
  }

  void pair_transfers() {
    for (const auto& [key, ends] : ends_) {
      if (ends.send && ends.receive) {
        make_group({*ends.send, *ends.receive});
      } else {
        ++result_.unpaired;
      }
    }
  }

  /// Members by what must be equal (data-parallel rank or stage) and by their number.
  void add_collectives() {
    std::map<std::tuple<Type, std::int32_t, std::size_t>, Positions> groups;
    for (const auto& [worker, by_type] : workers_) {
      const auto& [dp_rank, stage] = worker;
      for (const Type type :
           {Type::params_all_gather, Type::grads_reduce_scatter, Type::separate_grads_all_reduce}) {
        for (std::size_t i = 0; i < of(by_type, type).size(); ++i)
          groups[{type, stage, i}].push_back(of(by_type, type)[i]);
      }
      for (const Type type : {Type::embedding_grads_all_reduce, Type::optimizer_clip_main_grad}) {
        if (type == Type::embedding_grads_all_reduce && stage != first_stage_ && stage != last_stage_)
          continue;
        for (std::size_t i = 0; i < of(by_type, type).size(); ++i)
          groups[{type, dp_rank, i}].push_back(of(by_type, type)[i]);
      }
    }
    for (auto& [key, group] : groups) make_group(std::move(group));
  }

  struct Ends {
    std::optional<std::uint32_t> send;
    std::optional<std::uint32_t> receive;
  };

  const Operations& operations_;
  std::span<const std::uint32_t> members_;
  Dependencies result_;
  std::vector<bool> in_group_;
  std::map<std::pair<std::int32_t, std::int32_t>, ByType> workers_;
  std::map<PairKey, Ends> ends_;
  std::map<std::pair<bool, PairKey>, std::size_t> seen_;
  std::int32_t first_stage_ = INT32_MAX;
  std::int32_t last_stage_ = INT32_MIN;
  std::int32_t last_chunk_ = 0;
};

}  // namespace

Dependencies dependencies_of(const Operations& operations, std::span<const std::uint32_t> members) {
  return Builder(operations, members).build();
}

}  // namespace headrace::analysis::job
