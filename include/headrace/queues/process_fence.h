// A fence whose price the rare side pays for the frequent one.
#pragma once

#include <atomic>

namespace headrace::queues {

/// Two threads that each store one flag and then read the other's need a full fence between the two, on both
/// sides. Where one side does so for every item and the other once in a queue's life, the rare side can fence
/// for both (the kernel's membarrier interrupts the cores on which this process runs):
///
///     frequent:  mine = true;  ProcessFence::light();  if (theirs) ...      about 0 ns instead of 8
///     rare:      theirs = true;  ProcessFence::heavy();  if (mine) ...      some microseconds
///
/// If the kernel refuses membarrier, `light` is a full fence.
class ProcessFence {
 public:
  static void light() noexcept {
    if (kernel_fences_) {
      std::atomic_signal_fence(std::memory_order_seq_cst);  // the compiler keeps the order, heavy() the core
    } else {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
  }
  static void heavy() noexcept;

 private:
  static bool enlist() noexcept;
  static bool fence_all_cores() noexcept;
  // Decided before main. False until then: a queue that another static object uses earlier gets the full
  // fence.
  static inline const bool kernel_fences_ = enlist();
};

}  // namespace headrace::queues
