#include "headrace/queues/process_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace headrace::queues {

bool ProcessFence::enlist() noexcept {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

bool ProcessFence::fence_all_cores() noexcept {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void ProcessFence::heavy() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!kernel_fences_ || fence_all_cores()) return;
  // A process enlists once for its life and its forked children's; should that ever not hold, enlist again.
  if (enlist() && fence_all_cores()) return;
  // A sandbox that was put on since forbids it. A core's stores are out within microseconds all the same.
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace headrace::queues
