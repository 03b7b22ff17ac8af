#include "trace/parallel.h"

#include <tbb/parallel_for.h>

namespace headrace::trace {

void run_parallel(std::size_t count, void (*call)(void* context, std::size_t i), void* context) {
  tbb::parallel_for(std::size_t{0}, count, [=](std::size_t i) { call(context, i); });
}

}  // namespace headrace::trace
