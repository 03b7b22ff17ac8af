#include "recording/forks.h"

#include "headrace/profile/sampler.h"
#include "headrace/queues/level_sampler.h"
#include "interpreter_lock.h"
#include "recording/lock_search.h"

namespace headrace::python {

void before_fork() {
  if (interpreter_is_ending()) return;  // the sampler may be parked for good: it would not end
  const LockReleased released;          // the sampler may wait for it
  profile::Sampler::instance().before_fork();
  queues::LevelSampler::instance().before_fork();
  await_end_of_lock_search();
}

void after_fork_in_parent() {
  if (interpreter_is_ending()) return;
  profile::Sampler::instance().after_fork_in_parent();
  queues::LevelSampler::instance().after_fork_in_parent();
}

}  // namespace headrace::python
