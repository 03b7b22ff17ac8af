#include "headrace/pipeline/arena.h"

#include <oneapi/tbb/info.h>
#include <oneapi/tbb/task_arena.h>

namespace headrace::pipeline {
namespace {

// All slots are for callers: a body runs on the worker that called it whenever a slot is free, so its time
// is seen there.
tbb::task_arena& arena() {
  static auto& one = *new tbb::task_arena(tbb::info::default_concurrency(),
                                          static_cast<unsigned>(tbb::info::default_concurrency()));
  return one;
}

}  // namespace

void run_in_arena(const std::function<void()>& work) { arena().execute(work); }

}  // namespace headrace::pipeline
