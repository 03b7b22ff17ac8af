// Lets some items through.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "headrace/pipeline/operator_error.h"
#include "headrace/pipeline/producer.h"

namespace headrace::pipeline {

/// One thread; what it lets through is numbered anew. A costly test belongs into a map before it.
template <class T>
class Filter final : public Producer<T> {
 public:
  using Body = std::function<bool(const T&)>;

  Filter(OperatorSettings settings, int stage, Producer<T>& input, Body body)
      : Producer<T>(std::move(settings), stage), input_(input), body_(std::move(body)) {}

  bool work(WorkerSlot& slot) override {
    RecordedLoop loop(this->handle(), slot.stop);
    Edge<T>& input = input_.output();
    std::uint64_t passed = 0;
    while (!slot.must_leave()) {
      Token<T> token;
      if (!take(input, token, slot.hooks)) return true;
      if (slot.stop.stopped()) return false;
      if (!token.item) continue;
      loop.item(token.number);
      if (token.trace != nullptr)
        token.trace->until(metrics::Clock::now_ns(), ItemTrace::What::waiting_for_worker, this->stage());
      try {
        if (!body_(*token.item)) continue;
      } catch (...) {
        if (skip_after_failure(*this, slot, loop, token.number)) continue;
        return false;
      }
      if (token.trace != nullptr)
        token.trace->until(metrics::Clock::now_ns(), ItemTrace::What::in_service, this->stage());
      token.number = passed++;
      if (!give(this->output(), token, slot.hooks)) return false;
    }
    return false;
  }

 private:
  Producer<T>& input_;
  Body body_;
};

}  // namespace headrace::pipeline
