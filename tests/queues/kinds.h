// The kinds that a test runs with.
#pragma once

#include <gtest/gtest.h>

#include "headrace/queues/mpmc_ring.h"
#include "headrace/queues/spsc_queue.h"

// oneTBB's library is not built for ThreadSanitizer, which then sees its items handed over without any order
// and reports every one of them. Its kind is tested in all other builds.
#if !defined(__SANITIZE_THREAD__)
#define HEADRACE_TEST_TBB 1
#include "headrace/queues/tbb_queue.h"
#endif

namespace headrace::queues {

#if HEADRACE_TEST_TBB
template <class T>
using FirstInFirstOut = testing::Types<MpmcRing<T>, SpscQueue<T>, TbbQueue<T>>;
template <class T>
using ManyToMany = testing::Types<MpmcRing<T>, TbbQueue<T>>;
#else
template <class T>
using FirstInFirstOut = testing::Types<MpmcRing<T>, SpscQueue<T>>;
template <class T>
using ManyToMany = testing::Types<MpmcRing<T>>;
#endif

/// Lives as long as an item does; `alive` counts them.
class Counted {
 public:
  Counted(int value, int* alive) : value_(value), alive_(alive) { ++*alive_; }
  Counted(Counted&& from) noexcept : value_(from.value_), alive_(from.alive_) { ++*alive_; }
  Counted& operator=(Counted&& from) noexcept {
    value_ = from.value_;
    return *this;
  }
  ~Counted() { --*alive_; }
  int value() const noexcept { return value_; }

 private:
  int value_;
  int* alive_;
};

}  // namespace headrace::queues
