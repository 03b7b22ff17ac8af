// Operators at the beginning of a pipeline: items that come from a function.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "headrace/pipeline/item_trace_sampler.h"
#include "headrace/pipeline/operator_error.h"
#include "headrace/pipeline/producer.h"

namespace headrace::pipeline {

/// Makes the items of one worker, in order; nothing when there are no more. Called by that worker only.
template <class T>
using ItemMaker = std::function<std::optional<T>()>;

/// The part of the whole that a worker makes. One worker makes all of it.
struct Shard {
  int index = 0;
  int count = 1;
  std::uint64_t pass = 0;  ///< from 0: for sources that draw anew in every pass
};

/// Begins one worker's part of a pass; called by that worker.
template <class T>
using GeneratorBody = std::function<ItemMaker<T>(const Shard&)>;

/// One or several workers that make items. With several, each makes its shard, and their items come in the
/// order in which they are made. The number of workers is fixed: the shards depend on it.
template <class T>
class Generator final : public Producer<T> {
 public:
  Generator(OperatorSettings settings, int stage, GeneratorBody<T> body)
      : Producer<T>(std::move(settings), stage), body_(std::move(body)) {}

  void open(std::uint64_t pass) override {
    pass_ = pass;
    Producer<T>::open(pass);
  }

  bool work(WorkerSlot& slot) override {
    RecordedLoop loop(this->handle(), slot.stop);
    std::uint64_t made = 0;
    std::uint64_t handed = 0;
    ItemMaker<T> next;
    try {
      next = body_({slot.index, this->settings().workers, pass_});
    } catch (...) {
      skip_after_failure(*this, slot, loop, 0);
      return true;
    }
    ItemTraceSampler sampler;
    while (!slot.must_leave()) {
      Token<T> token;
      if (sampler.samples_next()) token.trace = std::make_unique<ItemTrace>(metrics::Clock::now_ns());
      loop.item(made);
      try {
        token.item = next();
      } catch (...) {
        if (skip_after_failure(*this, slot, loop, made++)) continue;
        return true;
      }
      if (!token.item) return true;
      ++made;
      token.number = handed++;
      if (token.trace != nullptr)
        token.trace->until(metrics::Clock::now_ns(), ItemTrace::What::in_service, this->stage());
      if (!give(this->output(), token, slot.hooks)) return true;
    }
    return false;
  }

 private:
  GeneratorBody<T> body_;
  std::uint64_t pass_ = 0;
};

}  // namespace headrace::pipeline
