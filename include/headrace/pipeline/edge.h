// The queue between two operators, whatever its kind.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "headrace/pipeline/token.h"
#include "headrace/queues/adaptive_recorder.h"
#include "headrace/queues/bounded_queue.h"
#include "headrace/queues/mpmc_ring.h"
#include "headrace/queues/reorder_buffer.h"
#include "headrace/queues/spsc_queue.h"
#include "headrace/queues/tbb_queue.h"

namespace headrace::pipeline {

/// The kind of queue after an operator. `automatic`: a reorder buffer behind an ordered operator, else the
/// ring. `spsc` (Boost.Lockfree) takes one worker on either side, for good: neither operator can get more.
enum class QueueChoice { automatic, ring, tbb, spsc };

/// An operator's settings for the queue after it.
struct EdgeShape {
  std::string name;
  std::int64_t capacity = 0;
  int loader = -1;  ///< whose record it is of; -1: none
  QueueChoice choice = QueueChoice::automatic;
  bool ordered = false;  ///< tokens come in any order and leave by number
  /// Several threads put in no order: tokens are numbered as they leave. Numbers given by who puts could
  /// overtake each other on the way in, and an ordered operator behind would wait for one that finds no room.
  bool numbers = false;
};

/// A pipeline has several queues, and each item is recorded at all of them: stamps on every one are too dear
/// sooner than at a single queue.
inline constexpr queues::PacedProbe::Limits kPace{.fast_items_per_s = 200'000, .slow_items_per_s = 100'000};

/// One pass's queue of tokens. Calls are those of queues::BoundedQueue; thread-safe as the kind is.
template <class T>
class Edge {
 public:
  virtual ~Edge() = default;
  virtual queues::QueueStatus try_put(Token<T>& token) = 0;
  virtual queues::QueueStatus put(Token<T>& token) = 0;
  virtual queues::QueueStatus try_get(Token<T>& token) = 0;
  virtual queues::QueueStatus get(Token<T>& token, queues::Deadline deadline) = 0;
  virtual void close() noexcept = 0;
  virtual void set_capacity(std::int64_t capacity) = 0;
  /// Nothing is inside, and nothing will come.
  virtual bool drained() const noexcept = 0;
};

/// Edge of a kind whose items are tokens.
template <class T, template <class> class Kind>
class PlainEdge final : public Edge<T> {
 public:
  explicit PlainEdge(const EdgeShape& shape)
      : numbers_(shape.numbers),
        queue_(shape.capacity, queues::AdaptiveRecorder(shape.name, shape.capacity, kPace, shape.loader)) {}

  queues::QueueStatus try_put(Token<T>& token) override { return queue_.try_put(std::move(token)); }
  queues::QueueStatus put(Token<T>& token) override { return queue_.put(std::move(token)); }
  queues::QueueStatus try_get(Token<T>& token) override {
    std::optional<Token<T>> out;
    return taken(queue_.try_get(out), out, token);
  }
  queues::QueueStatus get(Token<T>& token, queues::Deadline deadline) override {
    std::optional<Token<T>> out;
    return taken(queue_.get(out, deadline), out, token);
  }
  void close() noexcept override { queue_.close(); }
  void set_capacity(std::int64_t capacity) override { queue_.set_capacity(capacity); }
  bool drained() const noexcept override { return queue_.closed() && queue_.size() == 0; }

 private:
  queues::QueueStatus taken(queues::QueueStatus status, std::optional<Token<T>>& out,
                            Token<T>& token) noexcept {
    if (status != queues::QueueStatus::done) return status;
    token = std::move(*out);
    if (numbers_) token.number = next_.fetch_add(1, std::memory_order_relaxed);
    return status;
  }

  const bool numbers_;
  std::atomic<std::uint64_t> next_{0};
  queues::BoundedQueue<Kind<Token<T>>, queues::AdaptiveRecorder> queue_;
};

/// Tokens leave by their numbers.
template <class T>
class OrderedEdge final : public Edge<T> {
 public:
  explicit OrderedEdge(const EdgeShape& shape)
      : queue_(shape.capacity, queues::AdaptiveRecorder(shape.name, shape.capacity, kPace, shape.loader)) {}

  queues::QueueStatus try_put(Token<T>& token) override {
    Numbered numbered{token.number, std::move(token)};
    return given(queue_.try_put(std::move(numbered)), numbered, token);
  }
  queues::QueueStatus put(Token<T>& token) override {
    Numbered numbered{token.number, std::move(token)};
    return given(queue_.put(std::move(numbered)), numbered, token);
  }
  queues::QueueStatus try_get(Token<T>& token) override {
    std::optional<Numbered> out;
    return taken(queue_.try_get(out), out, token);
  }
  queues::QueueStatus get(Token<T>& token, queues::Deadline deadline) override {
    std::optional<Numbered> out;
    return taken(queue_.get(out, deadline), out, token);
  }
  void close() noexcept override { queue_.close(); }
  void set_capacity(std::int64_t capacity) override { queue_.set_capacity(capacity); }
  bool drained() const noexcept override { return queue_.closed() && queue_.size() == 0; }

 private:
  using Numbered = queues::Numbered<Token<T>>;
  static queues::QueueStatus given(queues::QueueStatus status, Numbered& numbered, Token<T>& token) noexcept {
    if (status != queues::QueueStatus::done) token = std::move(numbered.item);
    return status;
  }
  static queues::QueueStatus taken(queues::QueueStatus status, std::optional<Numbered>& out,
                                   Token<T>& token) noexcept {
    if (status == queues::QueueStatus::done) token = std::move(out->item);
    return status;
  }

  queues::BoundedQueue<queues::ReorderBuffer<Token<T>>, queues::AdaptiveRecorder> queue_;
};

template <class T>
std::unique_ptr<Edge<T>> make_edge(const EdgeShape& shape) {
  if (shape.ordered) return std::make_unique<OrderedEdge<T>>(shape);
  if (shape.choice == QueueChoice::tbb) return std::make_unique<PlainEdge<T, queues::TbbQueue>>(shape);
  if (shape.choice == QueueChoice::spsc) return std::make_unique<PlainEdge<T, queues::SpscQueue>>(shape);
  return std::make_unique<PlainEdge<T, queues::MpmcRing>>(shape);
}

}  // namespace headrace::pipeline
