// A mutex, a deque and two condition variables: the queue that everybody writes first.
#include <condition_variable>
#include <deque>
#include <mutex>

#include "transfer.h"

namespace {

using namespace headrace::bench;

class Queue {
 public:
  void put(std::uint64_t item) {
    {
      std::unique_lock lock(mutex_);
      not_full_.wait(lock, [&] { return items_.size() < static_cast<std::size_t>(kCapacity); });
      items_.push_back(item);
    }
    not_empty_.notify_one();
  }
  std::uint64_t get() {
    std::uint64_t item;
    {
      std::unique_lock lock(mutex_);
      not_empty_.wait(lock, [&] { return !items_.empty(); });
      item = items_.front();
      items_.pop_front();
    }
    not_full_.notify_one();
    return item;
  }

 private:
  std::mutex mutex_;
  std::condition_variable not_empty_;
  std::condition_variable not_full_;
  std::deque<std::uint64_t> items_;
};

const Entered waiting("waiting", "mutex + condition variables", [](Crowd crowd, std::uint64_t count) {
  Queue queue;
  return transfer(crowd, count, [&](std::uint64_t item) { queue.put(item); }, [&] { return queue.get(); });
});

}  // namespace
