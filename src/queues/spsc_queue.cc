#include "headrace/queues/spsc_queue.h"

#include <boost/lockfree/spsc_queue.hpp>

namespace headrace::queues {

struct SpscNumbers::Ring : boost::lockfree::spsc_queue<std::uint32_t> {
  using spsc_queue::spsc_queue;
};

SpscNumbers::SpscNumbers(std::size_t room) : ring_(std::make_unique<Ring>(room)) {}
SpscNumbers::~SpscNumbers() = default;

void SpscNumbers::push(std::uint32_t number) noexcept { ring_->push(number); }
bool SpscNumbers::pop(std::uint32_t& number) noexcept { return ring_->pop(number); }

}  // namespace headrace::queues
