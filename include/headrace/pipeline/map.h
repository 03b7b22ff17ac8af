// One item in, one item out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "headrace/pipeline/finish_times.h"
#include "headrace/pipeline/operator_error.h"
#include "headrace/pipeline/producer.h"
#include "headrace/pipeline/remote_service.h"

namespace headrace::pipeline {

/// Makes an item from an item. With several workers it is called by several threads at a time.
template <class T, class U>
using MapBody = std::function<U(T&&)>;

/// Any number of workers, which can be changed during a pass. Ordered: items leave in the order in which
/// they came; one that is skipped leaves an empty token in its place. Unordered: as they are done.
template <class T, class U>
class Map final : public Producer<U> {
 public:
  Map(OperatorSettings settings, int stage, Producer<T>& input, MapBody<T, U> body)
      : Producer<U>(std::move(settings), stage), input_(input), body_(std::move(body)) {}

  void open(std::uint64_t pass) override {
    next_ = 0;
    times_ = this->settings().ordered ? std::make_unique<FinishTimes>() : nullptr;
    Producer<U>::open(pass);
  }

  bool work(WorkerSlot& slot) override {
    const bool remote = this->settings().in_processes;
    RecordedLoop loop(this->loop_handle(), slot.stop, remote ? this->handle().get() : nullptr);
    std::optional<RemoteService> service;
    if (remote) service.emplace(*this->handle(), slot.stop);
    Edge<T>& input = input_.output();
    Edge<U>& output = this->output();
    while (!slot.must_leave()) {
      Token<T> token;
      if (!take(input, token, slot.hooks)) return true;
      if (slot.stop.stopped()) return false;
      Token<U> made;
      made.number = token.number;
      made.trace = std::move(token.trace);
      if (token.item && !make(token, made, slot, loop, service)) return false;
      if (!this->settings().ordered || this->settings().serial) {
        if (!made.item) continue;
        if (this->settings().serial) made.number = next_++;
      }
      if (!give(output, made, slot.hooks)) return false;
    }
    return false;
  }

 private:
  /// False: the pass ends. If the item is to be skipped, `made` stays empty.
  bool make(Token<T>& token, Token<U>& made, WorkerSlot& slot, RecordedLoop& loop,
            std::optional<RemoteService>& service) {
    loop.item(token.number);
    std::int64_t began = 0;
    if (made.trace != nullptr) {
      began = metrics::Clock::now_ns();
      made.trace->until(began, ItemTrace::What::waiting_for_worker, this->stage());
    }
    if (service) service->begin(static_cast<std::int64_t>(token.number));
    try {
      made.item.emplace(body_(std::move(*token.item)));
      if (service) service->end();
    } catch (...) {
      if (service) service->end();
      if (!skip_after_failure(*this, slot, loop, token.number)) return false;
    }
    if (made.trace != nullptr) follow(made, began, service);
    return true;
  }

  void follow(Token<U>& made, std::int64_t began, const std::optional<RemoteService>& service) {
    const std::int64_t now = metrics::Clock::now_ns();
    if (times_ != nullptr) {
      times_->note(made.number, now);
      const std::int64_t window = std::min(this->capacity(), FinishTimes::kLength - 1);
      const std::int64_t younger =
          now - began < kWorthLooking ? 0 : times_->first_younger(made.number, window);
      if (younger > 0)
        made.trace->until(std::max(began, younger), ItemTrace::What::in_service, this->stage());
      if (younger > 0) return made.trace->until(now, ItemTrace::What::order, this->stage());
    }
    if (service && service->told()) {
      made.trace->until(service->began_ns(), ItemTrace::What::handoff, this->stage());
      made.trace->until(service->ended_ns(), ItemTrace::What::in_service, this->stage());
      return made.trace->until(now, ItemTrace::What::handoff, this->stage());
    }
    made.trace->until(now, ItemTrace::What::in_service, this->stage());
  }

  /// An item this quick delayed no other item.
  static constexpr std::int64_t kWorthLooking = 20'000;

  Producer<T>& input_;
  MapBody<T, U> body_;
  std::uint64_t next_ = 0;  ///< of a single worker's tokens
  std::unique_ptr<FinishTimes> times_;
};

}  // namespace headrace::pipeline
