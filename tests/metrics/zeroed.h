// Cells as the segment hands them out: zeroed memory. (Their members have no initialisers, so that a claim in
// shared memory writes nothing.)
#pragma once

#include <memory>
#include <new>

namespace headrace::metrics {

template <class T>
class Zeroed {
 public:
  explicit Zeroed(std::size_t count = 1) : cells_(allocate(count)) {}
  T& operator*() const { return cells_[0]; }
  T* operator->() const { return cells_.get(); }
  T& operator[](std::size_t index) const { return cells_[index]; }
  T* get() const { return cells_.get(); }

 private:
  // Not inlined: GCC 12 warns of stores behind the cells when it sees loops over them and their allocation
  // together.
  [[gnu::noinline]] static T* allocate(std::size_t count) {
    // Value-initialisation of a class without a user-provided constructor zeroes it first.
    return new T[count]();
  }
  std::unique_ptr<T[]> cells_;
};

}  // namespace headrace::metrics
