#include "headrace/queues/process_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace headrace::queues {

bool ProcessFence::enlist() noexcept {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void ProcessFence::heavy() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // A process enlists once for its life and its forked children's; should that ever not hold, enlist again.
  if (kernel_fences_ && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0 && enlist()) {
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  }
}

}  // namespace headrace::queues
