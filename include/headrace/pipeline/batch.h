// Several items in, one batch out.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "headrace/pipeline/operator_error.h"
#include "headrace/pipeline/producer.h"

namespace headrace::pipeline {

/// Collects `size` items and makes a batch of them, in one thread. The last one may have fewer, or is
/// dropped.
///
/// A batch's trace is, at every moment, that of the item it waited for.
template <class T, class U>
class Batch final : public Producer<U> {
 public:
  /// Makes a batch of its items; there is at least one.
  using Body = std::function<U(std::vector<T>&&)>;

  Batch(OperatorSettings settings, int stage, Producer<T>& input, std::int64_t size, bool drop_last,
        Body body)
      : Producer<U>(std::move(settings), stage),
        input_(input),
        size_(static_cast<std::size_t>(size)),
        drop_last_(drop_last),
        body_(std::move(body)) {}

  bool work(WorkerSlot& slot) override {
    RecordedLoop loop(this->handle(), slot.stop);
    Edge<T>& input = input_.output();
    std::vector<T> items;
    std::unique_ptr<ItemTrace> trace;
    std::uint64_t number = 0;
    bool ended = false;
    while (!ended && !slot.must_leave()) {
      items.reserve(size_);
      while (items.size() < size_) {
        Token<T> token;
        if (!take(input, token, slot.hooks)) {
          ended = true;
          break;
        }
        if (slot.stop.stopped()) return false;
        if (!token.item) continue;
        if (token.trace != nullptr) collect(trace, std::move(token.trace));
        items.push_back(std::move(*token.item));
      }
      if (items.empty() || (drop_last_ && items.size() < size_)) break;
      Token<U> made;
      made.trace = std::move(trace);
      loop.item(number);
      try {
        made.item.emplace(body_(std::exchange(items, {})));
      } catch (...) {
        items.clear();
        if (skip_after_failure(*this, slot, loop, number)) continue;
        return false;
      }
      made.number = number++;
      if (made.trace != nullptr)
        made.trace->until(metrics::Clock::now_ns(), ItemTrace::What::in_service, this->stage());
      if (!give(this->output(), made, slot.hooks)) return false;
    }
    return ended;
  }

 private:
  void collect(std::unique_ptr<ItemTrace>& trace, std::unique_ptr<ItemTrace> of_item) {
    const std::int64_t now = metrics::Clock::now_ns();
    if (trace != nullptr) return trace->wait_for(*of_item, now, this->stage());
    trace = std::move(of_item);
    trace->until(now, ItemTrace::What::waiting_for_worker, this->stage());
  }

  Producer<T>& input_;
  std::size_t size_;
  bool drop_last_;
  Body body_;
};

}  // namespace headrace::pipeline
