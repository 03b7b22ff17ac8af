#include "trace/parallel.h"

#include <tbb/parallel_for.h>

namespace headrace::trace {

void run_parallel(std::size_t count, void (*call)(void* context, std::size_t i), void* context) {
  if (count == 1) return call(context, 0);  // without waking other threads, which have stacks and heaps
  tbb::parallel_for(std::size_t{0}, count, [=](std::size_t i) { call(context, i); });
}

}  // namespace headrace::trace
