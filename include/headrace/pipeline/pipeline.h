// Builds a pipeline and iterates over it.
//
//     auto batches = pipeline::source("files", files)
//                        .shuffle(1000, /*seed=*/0)
//                        .map("decode", decode, {.workers = 4})
//                        .batch(32)
//                        .prefetch(4);
//     while (auto batch = batches.next()) train(*batch);
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/pipeline/arena.h"
#include "headrace/pipeline/batch.h"
#include "headrace/pipeline/copy_to_device.h"
#include "headrace/pipeline/filter.h"
#include "headrace/pipeline/generator.h"
#include "headrace/pipeline/map.h"
#include "headrace/pipeline/operator_error.h"
#include "headrace/pipeline/runtime.h"
#include "headrace/pipeline/shuffle.h"

namespace headrace::pipeline {

/// The place in which a map's body runs.
enum class Executor {
  threads,  ///< in the operator's own workers
  arena,    ///< in oneTBB's arena: all such bodies of the process together use no more than its cores
};

/// All fields have defaults. `capacity`: of the queue behind the operator (of an ordered map: the window,
/// finished items that wait for an older one included); 0: default_capacity().
struct MapOptions {
  profile::Word<profile::OperatorKind> kind = profile::OperatorKind::map;
  int workers = 1;
  bool ordered = true;
  Executor executor = Executor::threads;
  OnError on_error = OnError::stop;
  std::int64_t capacity = 0;
  QueueChoice queue = QueueChoice::automatic;
  bool serial = false;        ///< cannot run more than once
  bool in_processes = false;  ///< the body only waits for a process, and records its service itself
  WaitHooksFactory hooks = {};
};

struct GeneratorOptions {
  profile::Word<profile::OperatorKind> kind = profile::OperatorKind::generator;  ///< or source
  int workers = 1;
  std::int64_t capacity = 0;
  QueueChoice queue = QueueChoice::automatic;
  OnError on_error = OnError::stop;
  WaitHooksFactory hooks = {};
};

struct BatchOptions {
  bool drop_last = false;
  std::int64_t capacity = 0;
  OnError on_error = OnError::stop;
  std::string name = "batch";
  WaitHooksFactory hooks = {};
};

struct ShuffleOptions {
  bool every_pass_alike = false;
  std::int64_t capacity = 0;
  std::string name = "shuffle";
  WaitHooksFactory hooks = {};
};

struct FilterOptions {
  std::int64_t capacity = 0;
  OnError on_error = OnError::stop;
  WaitHooksFactory hooks = {};
};

struct TransferOptions {
  std::int64_t capacity = 0;  ///< of the device queue
  std::string name = "to_device";
};

/// A chain of operators whose last one makes T. Move-only: the result of a call replaces it.
///
/// `next` and iteration: one thread at a time. A pass begins with the first `next`, and ends when the source
/// does, with an error, with `stop` or with the Pipeline; then `next` begins a new one. No thread outlives
/// the Pipeline. In a forked child a Pipeline must not be used.
template <class T>
class Pipeline {
 public:
  using value_type = T;

  Pipeline(std::unique_ptr<Runtime> runtime, Producer<T>& last)
      : runtime_(std::move(runtime)), last_(&last) {}
  Pipeline(Pipeline&& from) noexcept = default;
  Pipeline& operator=(Pipeline&& from) noexcept = default;

  /// One item in, one out; `body` is called by `workers` threads at a time. UsageError if an option
  /// cannot be.
  template <class Body, class U = std::decay_t<std::invoke_result_t<Body&, T&&>>>
  Pipeline<U> map(std::string name, Body body, MapOptions options = {}) && {
    static_assert(!std::is_void_v<U>, "a map's body returns the item that it makes");
    MapBody<T, U> call = std::move(body);
    if (options.executor == Executor::arena) call = in_arena<T, U>(std::move(call));
    OperatorSettings its{.name = std::move(name),
                         .kind = std::move(options.kind),
                         .workers = options.workers,
                         .serial = options.serial,
                         .ordered = options.ordered,
                         .in_processes = options.in_processes,
                         .on_error = options.on_error,
                         .capacity = options.capacity,
                         .queue = options.queue,
                         .hooks = std::move(options.hooks)};
    return append<Map<T, U>>(std::move(its), std::move(call));
  }

  /// Keeps the items for which `body` returns true.
  Pipeline<T> filter(std::string name, std::function<bool(const T&)> body, FilterOptions options = {}) && {
    OperatorSettings its = serial(std::move(name), profile::OperatorKind::filter, options.capacity);
    its.on_error = options.on_error;
    its.hooks = std::move(options.hooks);
    return append<Filter<T>>(std::move(its), std::move(body));
  }

  /// Items in random order: drawn from `buffer` of them. Another order in every pass, the same for the same
  /// seed.
  Pipeline<T> shuffle(std::int64_t buffer, std::uint64_t seed, ShuffleOptions options = {}) && {
    if (buffer < 1)
      throw UsageError("shuffle: a buffer holds at least 1 item, not " + std::to_string(buffer));
    OperatorSettings its = serial(std::move(options.name), profile::OperatorKind::shuffle, options.capacity);
    its.hooks = std::move(options.hooks);
    return append<Shuffle<T>>(std::move(its), buffer, seed, options.every_pass_alike);
  }

  /// `size` items as one vector.
  Pipeline<std::vector<T>> batch(std::int64_t size, BatchOptions options = {}) && {
    return std::move(*this).template batch_as<std::vector<T>>(
        size, [](std::vector<T>&& items) { return std::move(items); }, std::move(options));
  }
  /// The same, and `collate` makes the batch of the items.
  template <class Collate, class U = std::decay_t<std::invoke_result_t<Collate&, std::vector<T>&&>>>
  Pipeline<U> batch(std::int64_t size, Collate collate, BatchOptions options = {}) && {
    return std::move(*this).template batch_as<U>(size, std::move(collate), std::move(options));
  }

  /// Copies each item to a device, in one thread; the queue behind it is the device queue. `bytes`: an item's
  /// arrays; not needed for vectors of numbers and vectors of those.
  Pipeline<DeviceBatch<T>> transfer(std::shared_ptr<transport::Device> device, BytesOf<T> bytes,
                                    TransferOptions options = {}) && {
    if (device == nullptr) throw UsageError("transfer: no device; see transport::open_device");
    OperatorSettings its = serial(std::move(options.name), profile::OperatorKind::transfer, options.capacity);
    return append<Map<T, DeviceBatch<T>>>(std::move(its),
                                          TransferBody<T>(std::move(device), std::move(bytes)));
  }
  Pipeline<DeviceBatch<T>> transfer(std::shared_ptr<transport::Device> device,
                                    TransferOptions options = {}) && {
    return std::move(*this).transfer(
        std::move(device), [](const T& batch) { return bytes_of(batch); }, std::move(options));
  }

  /// Sets the capacity of the queue after the last operator.
  Pipeline<T> prefetch(std::int64_t capacity) && {
    last_->set_capacity(capacity);
    return std::move(*this);
  }

  /// Adds an operator of one's own: `Op` is a `Producer<U>` whose constructor takes its settings, its stage,
  /// the `Producer<T>` before it, and `arguments`.
  template <class Op, class... Arguments>
  Pipeline<typename Op::value_type> append(OperatorSettings settings, Arguments&&... arguments) {
    settings = runtime_->admit(std::move(settings));
    auto made = std::make_unique<Op>(std::move(settings), runtime_->stages(), *last_,
                                     std::forward<Arguments>(arguments)...);
    Op& op = *made;
    runtime_->add(std::move(made));
    return {std::move(runtime_), op};
  }

  /// Under which name, in which run and rank it is recorded; before the first pass.
  Pipeline<T> record_as(RecordingOptions options) && {
    runtime_->record_as(std::move(options));
    return std::move(*this);
  }

  /// The next item; nothing when the pass is over (the next call begins a new one). OperatorError if a
  /// body threw.
  std::optional<T> next() {
    begin_next();
    std::optional<T> item;
    wait_next(item, queues::kNever);
    return item;
  }

  /// `next` in pieces, for callers with other work to do while they wait: `begin_next`, then
  /// `wait_next` until it does not return timed_out.
  void begin_next() {
    if (!runtime_->in_pass() || runtime_->is_of_another_process()) runtime_->begin_pass();
    at_once_ = true;
    runtime_->wait_began();
  }
  /// Without waiting: done, or not_now if nothing is ready or the pass may be over.
  queues::QueueStatus poll_next(std::optional<T>& item) {
    Token<T> token;
    while (last_->output().try_get(token) == queues::QueueStatus::done && !runtime_->stopped()) {
      if (deliver(token, item)) return queues::QueueStatus::done;
    }
    return queues::QueueStatus::not_now;
  }
  /// done, timed_out, or closed: the pass is over. Then, if a body threw, its OperatorError is thrown.
  queues::QueueStatus wait_next(std::optional<T>& item, queues::Deadline deadline) {
    if (poll_next(item) == queues::QueueStatus::done) return queues::QueueStatus::done;
    at_once_ = false;
    Token<T> token;
    for (;;) {
      const queues::QueueStatus status = last_->output().get(token, deadline);
      if (status == queues::QueueStatus::timed_out) return status;
      if (status != queues::QueueStatus::done || runtime_->stopped()) {
        end_of_pass();
        return queues::QueueStatus::closed;
      }
      if (deliver(token, item)) return status;
    }
  }
  /// Instead of waiting further: ends the pass, without reporting an error.
  void give_up() noexcept {
    runtime_->wait_failed(false);
    runtime_->end_pass();
  }

  /// Ends the pass early; from any thread. `next` then returns that it is over.
  void stop() noexcept { runtime_->stop(); }
  /// Stops, and waits for the workers; by the thread that iterates.
  void finish() noexcept { runtime_->end_pass(); }

  /// True when the last item of the pass was delivered, though no other one was requested yet.
  bool drained() const noexcept { return last_->drained(); }

  Runtime& runtime() noexcept { return *runtime_; }

  /// `for (auto& item : pipeline)`: one pass.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = T*;
    using reference = T&;

    Iterator() = default;
    explicit Iterator(Pipeline& of) : of_(&of) { ++*this; }
    T& operator*() const noexcept { return *item_; }
    Iterator& operator++() {
      item_ = of_->next();
      if (!item_) of_ = nullptr;
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(const Iterator& other) const noexcept { return of_ == other.of_; }

   private:
    Pipeline* of_ = nullptr;
    mutable std::optional<T> item_;
  };
  Iterator begin() {
    runtime_->end_pass();
    return Iterator(*this);
  }
  Iterator end() noexcept { return {}; }

 private:
  template <class U>
  friend class Pipeline;

  static OperatorSettings serial(std::string name, profile::OperatorKind kind, std::int64_t capacity) {
    return {.name = std::move(name), .kind = kind, .serial = true, .capacity = capacity};
  }

  template <class U, class Collate>
  Pipeline<U> batch_as(std::int64_t size, Collate collate, BatchOptions options) && {
    if (size < 1) throw UsageError("batch: a batch holds at least 1 item, not " + std::to_string(size));
    OperatorSettings its = serial(std::move(options.name), profile::OperatorKind::batch, options.capacity);
    its.on_error = options.on_error;
    its.hooks = std::move(options.hooks);
    return append<Batch<T, U>>(std::move(its), size, options.drop_last, std::move(collate));
  }

  /// False: it is an empty token, go on.
  bool deliver(Token<T>& token, std::optional<T>& item) {
    if (!token.item) return false;
    runtime_->wait_delivered(token.trace.get(), at_once_);
    item = std::move(token.item);
    return true;
  }

  void end_of_pass() {
    const std::exception_ptr error = runtime_->error();
    runtime_->wait_failed(error != nullptr);
    runtime_->end_pass();
    if (error != nullptr) std::rethrow_exception(error);
  }

  std::unique_ptr<Runtime> runtime_;
  Producer<T>* last_;
  bool at_once_ = true;  ///< the awaited item lay ready when it was asked for
};

/// Items that `begin` makes: called once per pass and worker, it returns the function that makes them one by
/// one.
template <class T>
Pipeline<T> generator(std::string name, GeneratorBody<T> begin, GeneratorOptions options = {}) {
  auto runtime = std::make_unique<Runtime>();
  OperatorSettings its = runtime->admit({.name = std::move(name),
                                         .kind = std::move(options.kind),
                                         .workers = options.workers,
                                         .serial = options.workers == 1,
                                         .fixed_workers = true,
                                         .on_error = options.on_error,
                                         .capacity = options.capacity,
                                         .queue = options.queue,
                                         .hooks = std::move(options.hooks)});
  auto made = std::make_unique<Generator<T>>(std::move(its), 0, std::move(begin));
  Generator<T>& op = *made;
  runtime->add(std::move(made));
  return {std::move(runtime), op};
}

/// The elements of a container, which the pipeline keeps; each pass goes through copies of them in order.
template <class Container, class T = typename Container::value_type>
Pipeline<T> source(std::string name, Container elements, GeneratorOptions options = {}) {
  if (options.workers != 1) throw UsageError("source: one worker reads the elements; see generator");
  options.kind = profile::OperatorKind::source;
  const auto kept = std::make_shared<const Container>(std::move(elements));
  Pipeline<T> made = generator<T>(
      std::move(name),
      [kept](const Shard&) -> ItemMaker<T> {
        return [kept, at = kept->begin()]() mutable -> std::optional<T> {
          if (at == kept->end()) return std::nullopt;
          return *at++;
        };
      },
      std::move(options));
  return made;
}

}  // namespace headrace::pipeline
