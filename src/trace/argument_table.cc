#include "trace/argument_table.h"

#include <utility>

namespace headrace::trace {

void ArgumentTable::add(std::string_view key, int number) {
  if (find(key) != kUnknown) return;
  if (4 * ++used_ > slots_.size()) {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    used_ = 1;
    for (const Slot& slot : old) {
      if (slot.number != kUnknown) add(slot.key, slot.number);
    }
  }
  std::size_t at = slot_of(key);
  while (slots_[at].number != kUnknown) at = (at + 1) % slots_.size();
  slots_[at] = {std::string(key), number};
}

}  // namespace headrace::trace
