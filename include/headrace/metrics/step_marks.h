// Start of forward and end of backward in a step, marked by hooks on a model or a `with` block. Any
// thread may set marks (autograd runs hooks on threads of its own); each loop keeps its own copy.
//
//     StepMarks::process().forward_began(Clock::now_ns());
//
// Loops do not share their marks: one that requests its next batch forgets the marks of its own step
// only, so two loops that take turns cannot take each other's. A thread that runs loops marks those alone, so
// two trainings in two threads are kept apart; what a thread without a loop tells (autograd's, a replica's)
// is for every loop.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace headrace::metrics {

/// Thread-safe, lock-free, never throws. Every access is relaxed: a mark counts by its time alone, and what
/// ends before the next GetNext is ordered before it by the program itself (`backward()` has returned).
class StepMarks {
 public:
  /// Loops that can listen at a time; a further one hears nothing.
  static constexpr int kPlaces = 16;
  static constexpr int kNoPlace = -1;

  /// Marks of one loop since it last forgot, as Clock times; 0: none.
  struct Heard {
    std::int64_t forward_began_ns = 0;   ///< the first of them
    std::int64_t backward_ended_ns = 0;  ///< the last of them
    std::int64_t update_began_ns = 0;    ///< the last of them
  };

  /// The one of this process. After a fork the child has its own.
  static StepMarks& process() noexcept {
    static constinit StepMarks marks;
    return marks;
  }

  /// False if no loop listens, so the clock need not be read.
  bool anyone_listens() const noexcept { return taken_.load(std::memory_order_relaxed) != 0; }

  void forward_began(std::int64_t now) noexcept {
    tell_listeners([now](Place& place) {
      std::int64_t nothing = 0;
      if (place.forward.load(std::memory_order_relaxed) == 0)
        place.forward.compare_exchange_strong(nothing, now, std::memory_order_relaxed);
    });
  }
  void backward_ended(std::int64_t now) noexcept {
    tell_listeners([now](Place& place) { place.backward.store(now, std::memory_order_relaxed); });
  }
  /// The optimizer is about to change the parameters: backward has ended by then, if there is no other mark.
  void update_began(std::int64_t now) noexcept {
    tell_listeners([now](Place& place) { place.update.store(now, std::memory_order_relaxed); });
  }

  /// A place to listen at, or kNoPlace where all are taken. Called by the thread that runs the loop.
  int join() noexcept;
  void leave(int place) noexcept;
  Heard heard(int place) const noexcept;
  bool heard_forward(int place) const noexcept {
    return places_[static_cast<std::size_t>(place)].forward.load(std::memory_order_relaxed) != 0;
  }
  /// One load if no forward was marked: an end that is left over is before the next beginning.
  void forget(int place) noexcept {
    if (!heard_forward(place)) return;
    Place& mine = places_[static_cast<std::size_t>(place)];
    for (auto* mark : {&mine.forward, &mine.backward, &mine.update})
      mark->store(0, std::memory_order_relaxed);
  }

 private:
  struct alignas(64) Place {
    std::atomic<const void*> thread{nullptr};  ///< whose loop listens
    std::atomic<std::int64_t> forward{0};
    std::atomic<std::int64_t> backward{0};
    std::atomic<std::int64_t> update{0};
  };

  template <class Tell>
  void tell_listeners(Tell&& tell) noexcept {
    for (std::uint32_t left = listeners(); left != 0; left &= left - 1)
      tell(places_[static_cast<std::size_t>(std::countr_zero(left))]);
  }
  /// The places that the calling thread marks: its own loops', or all of them if it runs none.
  std::uint32_t listeners() const noexcept {
    const std::uint32_t taken = taken_.load(std::memory_order_relaxed);
    std::uint32_t mine = 0;
    for (std::uint32_t left = taken; left != 0; left &= left - 1) {
      const int place = std::countr_zero(left);
      if (places_[static_cast<std::size_t>(place)].thread.load(std::memory_order_relaxed) == this_thread())
        mine |= 1U << place;
    }
    return mine != 0 ? mine : taken;
  }
  /// Tells threads apart by an address of their own: cheaper than an id.
  static const void* this_thread() noexcept {
    static thread_local char here;
    return &here;
  }

  std::array<Place, kPlaces> places_{};
  std::atomic<std::uint32_t> taken_{0};  ///< a bit per place
};

}  // namespace headrace::metrics
