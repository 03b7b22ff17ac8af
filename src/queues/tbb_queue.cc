#include "headrace/queues/tbb_queue.h"

#include <oneapi/tbb/concurrent_queue.h>

namespace headrace::queues {

struct TbbPointers::Queue : tbb::concurrent_bounded_queue<void*> {};

TbbPointers::TbbPointers() : queue_(std::make_unique<Queue>()) {}
TbbPointers::~TbbPointers() = default;

bool TbbPointers::full() const noexcept { return queue_->size() >= queue_->capacity(); }
bool TbbPointers::try_push(void* item) { return queue_->try_push(item); }
void* TbbPointers::try_pop() noexcept {
  void* item = nullptr;
  return queue_->try_pop(item) ? item : nullptr;
}
void TbbPointers::set_capacity(std::int64_t capacity) { queue_->set_capacity(capacity); }

}  // namespace headrace::queues
