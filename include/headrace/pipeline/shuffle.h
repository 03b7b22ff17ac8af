// Brings items into a random order.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "headrace/pipeline/item_trace_sampler.h"
#include "headrace/pipeline/producer.h"
#include "headrace/pipeline/random.h"
#include "headrace/pipeline/recorded_loop.h"

namespace headrace::pipeline {

/// Keeps `buffer` items and passes on a random one of them for each that arrives. The order follows
/// from the seed, the pass and the order of the input, and from nothing else; `every_pass_alike` leaves the
/// pass out.
///
/// The passed item waited for the arriving one: its trace continues from there. Once the input has ended,
/// nothing waits for an item any more: traces begin here, as at a source.
template <class T>
class Shuffle final : public Producer<T> {
 public:
  Shuffle(OperatorSettings settings, int stage, Producer<T>& input, std::int64_t buffer, std::uint64_t seed,
          bool every_pass_alike)
      : Producer<T>(std::move(settings), stage),
        input_(input),
        buffer_(static_cast<std::size_t>(buffer)),
        seed_(seed),
        every_pass_alike_(every_pass_alike) {}

  void open(std::uint64_t pass) override {
    Random mixed(seed_ + 0x632BE59BD9B4E019ULL * (every_pass_alike_ ? 0 : pass));
    pass_seed_ = mixed.next();
    Producer<T>::open(pass);
  }

  bool work(WorkerSlot& slot) override {
    RecordedLoop loop(this->handle(), slot.stop);
    Random random(pass_seed_);
    std::vector<T> kept;
    std::uint64_t handed = 0;
    const auto hand_on = [&](std::unique_ptr<ItemTrace> trace) {
      std::swap(kept[random.below(kept.size())], kept.back());
      Token<T> token;
      token.item.emplace(std::move(kept.back()));
      kept.pop_back();
      token.number = handed++;
      token.trace = std::move(trace);
      return give(this->output(), token, slot.hooks);
    };
    while (!slot.must_leave()) {
      Token<T> token;
      if (!take(input_.output(), token, slot.hooks)) {
        ItemTraceSampler sampler;
        while (!kept.empty() && !slot.stop.stopped()) {
          const bool follow = sampler.samples_next();
          if (!hand_on(follow ? std::make_unique<ItemTrace>(metrics::Clock::now_ns()) : nullptr))
            return false;
        }
        return true;
      }
      if (slot.stop.stopped()) return false;
      if (!token.item) continue;
      loop.item(token.number);
      kept.push_back(std::move(*token.item));
      if (token.trace != nullptr)
        token.trace->until(metrics::Clock::now_ns(), ItemTrace::What::waiting_for_worker, this->stage());
      if (kept.size() > buffer_ && !hand_on(std::move(token.trace))) return false;
    }
    return false;
  }

 private:
  Producer<T>& input_;
  std::size_t buffer_;
  std::uint64_t seed_;
  bool every_pass_alike_;
  std::uint64_t pass_seed_ = 0;
};

}  // namespace headrace::pipeline
