// The kinds that a test runs with.
#pragma once

#include <gtest/gtest.h>

#include "headrace/queues/mpmc_ring.h"
#include "headrace/queues/spsc_queue.h"
#include "headrace/queues/tbb_queue.h"

namespace headrace::queues {

template <class T>
using FirstInFirstOut = testing::Types<MpmcRing<T>, SpscQueue<T>, TbbQueue<T>>;
template <class T>
using ManyToMany = testing::Types<MpmcRing<T>, TbbQueue<T>>;

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
