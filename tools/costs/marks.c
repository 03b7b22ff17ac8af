#define _GNU_SOURCE
#include "marks.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

/* Time in steps: what is done after so much of it (CPU times sampled, windows closed) is done as often in every run.
   It is far ahead of the kernel's clock, so that a background thread's wait for a deadline does not end. */
#define AHEAD_NS ((int64_t)100000 * 1000000000)

static int64_t now_ns;
static int64_t step_ns_ = 50;
static int waits_end;

static int64_t ns_of(const struct timespec* time) { return time->tv_sec * (int64_t)1000000000 + time->tv_nsec; }

static struct timespec time_of(int64_t ns) { return (struct timespec){ns / 1000000000, ns % 1000000000}; }

static int64_t kernel_ns(clockid_t id) {
  struct timespec time;
  syscall(SYS_clock_gettime, id, &time);
  return ns_of(&time);
}

__attribute__((constructor)) static void start_clock(void) { now_ns = kernel_ns(CLOCK_MONOTONIC) + AHEAD_NS; }

int clock_gettime(clockid_t id, struct timespec* time) {
  if (id == CLOCK_REALTIME) return (int)syscall(SYS_clock_gettime, id, time);
  /* All in nanoseconds: as few instructions as reading the counter takes, which is what the clock does elsewhere. */
  time->tv_sec = 0;
  time->tv_nsec = __atomic_add_fetch(&now_ns, step_ns_, __ATOMIC_RELAXED);
  return 0;
}

static struct timespec deadline(clockid_t id, const struct timespec* asked) {
  if (!waits_end || id == CLOCK_REALTIME) return *asked;
  return time_of(ns_of(asked) - now_ns + kernel_ns(id));
}

int sem_clockwait(sem_t* semaphore, clockid_t id, const struct timespec* asked) {
  static int (*next)(sem_t*, clockid_t, const struct timespec*);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "sem_clockwait");
  const struct timespec until = deadline(id, asked);
  return next(semaphore, id, &until);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t id,
                           const struct timespec* asked) {
  static int (*next)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
  const struct timespec until = deadline(id, asked);
  return next(condition, mutex, id, &until);
}

void costs_let_waits_end(int on) { waits_end = on; }

/* Callgrind's own requests are about the calling thread alone, its monitor's commands about all. */
void costs_begin(int step_ns) {
  step_ns_ = step_ns;
  CALLGRIND_START_INSTRUMENTATION;
  VALGRIND_MONITOR_COMMAND("zero");
}

void costs_end(const char* name) {
  char command[200];
  snprintf(command, sizeof command, "dump %s", name);
  VALGRIND_MONITOR_COMMAND(command);
  CALLGRIND_STOP_INSTRUMENTATION;
}
