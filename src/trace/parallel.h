// A loop whose calls run beside each other, for work that is large: a file each.
#pragma once

#include <atomic>
#include <cstddef>

namespace headrace::trace {

/// oneTBB's parallel_for over `0 .. count - 1`. Its file is compiled without ThreadSanitizer
/// (CMakeLists.txt): how oneTBB hands a task to another thread is in a library that is never instrumented, so
/// that every task would be reported. Call `for_each_parallel`, which shows ThreadSanitizer the order that
/// oneTBB makes.
void run_parallel(std::size_t count, void (*call)(void* context, std::size_t i), void* context);

/// Calls `body(i)` once for each `i` below `count`, as many at a time as the machine has cores, and returns
/// when all calls have. Whatever the caller wrote before is seen by all of them, whatever they wrote by the
/// caller. The first exception ends it: calls that have not begun are left out, and it is thrown here.
template <class Body>
void for_each_parallel(std::size_t count, const Body& body) {
  struct Loop {
    const Body& body;
    /// Released where a side ends or the caller begins, acquired where the other side goes on from there.
    std::atomic<std::size_t> handed_over{0};
  } loop{body};
  struct ReleaseAtEnd {
    Loop& loop;
    ~ReleaseAtEnd() { loop.handed_over.fetch_add(1, std::memory_order_release); }
  };
  struct AcquireAtEnd {
    Loop& loop;
    ~AcquireAtEnd() { static_cast<void>(loop.handed_over.load(std::memory_order_acquire)); }
  };

  const AcquireAtEnd caller_goes_on{loop};
  loop.handed_over.fetch_add(1, std::memory_order_release);
  const auto call = [](void* context, std::size_t i) {
    Loop& begun = *static_cast<Loop*>(context);
    static_cast<void>(begun.handed_over.load(std::memory_order_acquire));
    const ReleaseAtEnd call_is_done{begun};
    begun.body(i);
  };
  run_parallel(count, call, &loop);
}

}  // namespace headrace::trace
