// A number with one writer and many readers, in shared memory.
#pragma once

#include <atomic>
#include <type_traits>

namespace headrace::metrics {

/// Every access is relaxed: order between cells comes from the group's Seqlock, never from here.
/// `bump` is a load and a store, not a fetch_add (18 times cheaper), so it is for the single writer only;
/// `add` and `set_bits` are for words that several threads or processes write. The compiler makes three
/// instructions of an atomic load, an addition and a store; x86 has one, and an event has a dozen of them.
template <class T>
class Relaxed {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  static_assert(std::atomic<T>::is_always_lock_free, "cells are shared between processes");

 public:
  T load() const noexcept { return value_.load(std::memory_order_relaxed); }
  void store(T value) noexcept { value_.store(value, std::memory_order_relaxed); }
  void bump(T by) noexcept {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
      asm("addq %1, %0" : "+m"(reinterpret_cast<T&>(value_)) : "er"(by) : "cc");
      return;
    }
#endif
    store(static_cast<T>(load() + by));
  }
  void add(T by) noexcept { value_.fetch_add(by, std::memory_order_relaxed); }
  void set_bits(T bits) noexcept { value_.fetch_or(bits, std::memory_order_relaxed); }

 private:
  std::atomic<T> value_;
};

}  // namespace headrace::metrics
