#include "headrace/profile/host_sampler.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "headrace/metrics/clock.h"
#include "headrace/profile/host/kernel_text.h"
#include "headrace/profile/process_identity.h"
#include "support/times.h"

namespace headrace::profile {
namespace {

using metrics::Clock;
using metrics::HostFigure;

constexpr std::int64_t kTick = 10 * kMs;
/// By then everything is due, however slow this machine's /proc is.
constexpr std::int64_t kLongestPace = 11 * kSecond;

// ---------------------------------------------------------------------------------------------- parsers

TEST(KernelText, SchedstatGivesCpuAndRunQueueTime) {
  const auto stat = parse_schedstat("123456789 42 17\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->cpu_ns, 123456789);
  EXPECT_EQ(stat->run_queue_ns, 42);
}

TEST(KernelText, SchedstatThatIsCutShortOrGarbageGivesNothing) {
  for (const std::string_view text : {"", "\n", "12", "12 34", "12 34 ", "-1 2 3\n", "a b c\n",
                                      "99999999999999999999 1 1\n", "12 x4 5\n"}) {
    EXPECT_FALSE(parse_schedstat(text)) << '"' << text << '"';
  }
}

constexpr std::string_view kStat =
    "1234 (py) thon (x) R 77 1234 1234 0 -1 4194304 100 0 0 0 250 50 30 20 20 0 8 0 987654 1000 200 "
    "18446744073709551615 1 1 0\n";

TEST(KernelText, ProcessStatIsReadBehindTheLastBracket) {
  const auto stat = parse_process_stat(kStat, kTick);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'R');
  EXPECT_EQ(stat->parent, 77);
  EXPECT_EQ(stat->own_ns, 3000 * kMs);
  EXPECT_EQ(stat->reaped_ns, 500 * kMs);
  EXPECT_EQ(stat->start, 987654U);
}

TEST(KernelText, ProcessStatHoldsMajorFaultsAndThreads) {
  const auto stat = parse_process_stat(
      "7 (a) D 1 2 3 4 5 6 70 80 91 100 11 12 13 14 20 0 17 0 123456 1000 2000", tick_ns());
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'D');
  EXPECT_EQ(stat->major_faults, 91);
  EXPECT_EQ(stat->threads, 17);
}

TEST(KernelText, ProcessStatCutAnywhereBeforeTheStartTimeGivesNothing) {
  const std::size_t start_end = kStat.find("987654") + 6;
  for (std::size_t length = 0; length <= start_end; ++length) {
    EXPECT_FALSE(parse_process_stat(kStat.substr(0, length), kTick)) << length;
  }
  EXPECT_FALSE(parse_process_stat(
      "1 (a) R 1 1 1 0 -1 0 0 0 0 0 9223372036854775807 9223372036854775807 0 0 20 0 8 0 9 1 1\n", kTick));
}

TEST(KernelText, ResidentPagesAreTheSecondField) {
  EXPECT_EQ(parse_resident_pages("5000 321 100 1 0 200 0\n"), 321);
  EXPECT_FALSE(parse_resident_pages("5000 321"));
  EXPECT_FALSE(parse_resident_pages("5000"));
  EXPECT_FALSE(parse_resident_pages("x 321 100"));
}

CpuSet cpu_set(std::initializer_list<std::size_t> cpus) {
  CpuSet set;
  for (const std::size_t cpu : cpus) set.set(cpu);
  return set;
}

constexpr std::string_view kProcStat =
    "cpu  111 0 222 333 0 0 0 0 0 0\n"
    "cpu0 10 1 20 5000 400 3 4 5 6 0\n"
    "cpu1 100 10 200 7000 400 30 40 50 60 0\n"
    "cpu10 1 1 1 1 1 1 1 1 1 1\n"
    "intr 12345 0 0\n";

TEST(KernelText, BusyTimeIsOfTheAllowedCpusWithoutIdleWaitAndGuest) {
  EXPECT_EQ(parse_busy_ns(kProcStat, cpu_set({0}), kTick), 43 * kTick);
  EXPECT_EQ(parse_busy_ns(kProcStat, cpu_set({1}), kTick), 430 * kTick);
  EXPECT_EQ(parse_busy_ns(kProcStat, cpu_set({0, 1, 5}), kTick), 473 * kTick);
  EXPECT_FALSE(parse_busy_ns(kProcStat, cpu_set({5}), kTick));
  EXPECT_EQ(parse_busy_ns("cpu0 1 2 3 4\nbtime 1\n", cpu_set({0}), kTick), 6 * kTick) << "a kernel of old";
}

TEST(KernelText, BusyTimeOfACutOrGarbledFileIsUnknown) {
  const std::size_t lines_end = kProcStat.find("intr");
  for (std::size_t length = 0; length <= lines_end; ++length) {
    EXPECT_FALSE(parse_busy_ns(kProcStat.substr(0, length), cpu_set({0, 1}), kTick)) << length;
  }
  EXPECT_FALSE(parse_busy_ns("cpu0 1 2 x 4 5 6 7 8\nintr 1\n", cpu_set({0}), kTick));
  EXPECT_FALSE(parse_busy_ns("cpu0 1 2 -3 4 5 6 7 8\nintr 1\n", cpu_set({0}), kTick));
  EXPECT_FALSE(parse_busy_ns("cpu99999999999 1 2 3 4 5 6 7 8\nintr 1\n", cpu_set({0}), kTick));
  EXPECT_FALSE(parse_busy_ns("cpu0 9223372036854775807 0 0 0 0 0 0 0\nintr 1\n", cpu_set({0}), kTick));
}

TEST(KernelText, PressureIsTheTotalOfSome) {
  EXPECT_EQ(parse_pressure_ns("some avg10=0.04 avg60=1.16 avg300=1.52 total=14269641\n"
                              "full avg10=0.04 avg60=0.91 avg300=1.20 total=12137920\n"),
            14269641000);
  EXPECT_FALSE(parse_pressure_ns("full avg10=0.00 avg60=0.00 avg300=0.00 total=1\n"));
  for (const std::string_view text : {"", "some", "some avg10=0.04", "some total=", "some total=-1",
                                      "some total=1x", "some total=9223372036854775807"}) {
    EXPECT_FALSE(parse_pressure_ns(text)) << text;
  }
}

TEST(KernelText, ThrottledTimeOfBothCgroupVersions) {
  EXPECT_EQ(parse_throttled_ns("nr_periods 10\nnr_throttled 3\nthrottled_time 123456\nnr_bursts 0\n"),
            123456);
  EXPECT_EQ(parse_throttled_ns("usage_usec 5\nuser_usec 4\nsystem_usec 1\nnr_periods 9\nnr_throttled 2\n"
                               "throttled_usec 77\n"),
            77000);
  EXPECT_FALSE(parse_throttled_ns("usage_usec 5\nuser_usec 4\nsystem_usec 1\n")) << "the root of version 2";
  EXPECT_FALSE(parse_throttled_ns("throttled_time\n"));
  EXPECT_FALSE(parse_throttled_ns("throttled_usec many\n"));
}

TEST(KernelText, QuotasOfBothCgroupVersions) {
  EXPECT_EQ(parse_cpu_max("150000 100000\n"), 1.5);
  EXPECT_EQ(parse_cpu_max("max 100000\n"), INFINITY);
  EXPECT_EQ(parse_cpu_max("max\n"), INFINITY);
  EXPECT_EQ(parse_cpu_max("50000\n"), 0.5);
  EXPECT_FALSE(parse_cpu_max(""));
  EXPECT_FALSE(parse_cpu_max("half a core\n"));
  EXPECT_FALSE(parse_cpu_max("150000 0\n"));
  EXPECT_EQ(parse_cfs_quota("-1\n", "100000\n"), INFINITY);
  EXPECT_EQ(parse_cfs_quota("400000\n", "100000\n"), 4);
  EXPECT_FALSE(parse_cfs_quota("", "100000\n"));
  EXPECT_FALSE(parse_cfs_quota("400000\n", ""));
}

struct CgroupCase {
  const char* what;
  std::string_view cgroup;
  std::string_view mountinfo;
  int version;  ///< 0: none
  const char* mount;
  const char* path;
};

TEST(KernelText, TheCpuCgroupIsFoundWhereverItIsMounted) {
  const CgroupCase cases[] = {
      {"version 2", "0::/user.slice/a.scope\n",
       "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n", 2, "/sys/fs/cgroup",
       "/user.slice/a.scope"},
      {"version 2 in a namespace", "0::/\n", "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", 2,
       "/sys/fs/cgroup", ""},
      {"version 2, moved out of the namespace", "0::/../other\n",
       "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", 2, "/sys/fs/cgroup", ""},
      {"version 1, two controllers in one", "4:memory:/m\n3:cpu,cpuacct:/job/1\n0::/\n",
       "30 29 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
       "31 29 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n",
       1, "/sys/fs/cgroup/cpu,cpuacct", "/job/1"},
      {"version 1, a container's mount", "3:cpu:/docker/abc/x\n",
       "31 29 0:28 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n", 1, "/sys/fs/cgroup/cpu",
       "/x"},
      {"version 1, a mount of another part", "3:cpu:/dockerx\n",
       "31 29 0:28 /docker /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n", 1, "/sys/fs/cgroup/cpu", ""},
      {"both, controller not in version 1", "5:cpuset:/a\n0::/b\n",
       "30 29 0:27 / /cg/cpuset rw - cgroup cgroup rw,cpuset\n31 29 0:28 / /cg/unified rw - cgroup2 cgroup2 "
       "rw\n",
       2, "/cg/unified", "/b"},
      {"a blank in the mount's name", "0::/\n", "29 23 0:26 / /my\\040groups rw - cgroup2 cgroup2 rw\n", 2,
       "/my groups", ""},
      {"no mount", "0::/\n", "29 23 0:26 / / rw - ext4 /dev/sda rw\n", 0, "", ""},
      {"nothing", "", "", 0, "", ""},
      {"garbage", "::::\n\n0:\n", " - - -\ncgroup2\n1 2 3 / /x - \n", 0, "", ""},
  };
  for (const CgroupCase& row : cases) {
    SCOPED_TRACE(row.what);
    const auto found = find_cpu_cgroup(row.cgroup, row.mountinfo);
    ASSERT_EQ(found.has_value(), row.version != 0);
    if (!found) continue;
    EXPECT_EQ(found->version, row.version);
    EXPECT_EQ(found->mount, row.mount);
    EXPECT_EQ(found->path, row.path);
  }
}

// ---------------------------------------------------------------------------------------------- the sampler

std::int64_t clock_ns(clockid_t id) {
  timespec time{};
  clock_gettime(id, &time);
  return static_cast<std::int64_t>(time.tv_sec) * kSecond + time.tv_nsec;
}

std::int64_t process_cpu_ns() { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

/// Uses the CPU until this thread has had `ns` of it, however long that takes.
void burn(std::int64_t ns) {
  const std::int64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
  while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
  }
}

/// Time passes by `pass`, however fast the machine is: no loop share depends on it.
class HostSamplerTest : public testing::Test {
 protected:
  HostSamplerTest() : segment_(Segment::create({"", ""}, 0)), now_(Clock::now_ns()) {
    segment_->header().loop_clock.open(now_);
    sampler_ = std::make_unique<HostSampler>(*segment_);
  }

  void pass(std::int64_t ns) { now_ += ns; }
  void sample() { sampler_->sample(now_); }
  void sample_after(std::int64_t ns) {
    pass(ns);
    sample();
  }
  void resume() { segment_->header().loop_clock.resume(now_); }
  void pause() { segment_->header().loop_clock.pause(now_); }
  /// Baseline, then the loop begins at once.
  void begin() {
    sample();
    resume();
  }

  metrics::HostCell& cell() { return segment_->host(); }
  std::int64_t total(HostFigure figure) { return cell().totals[static_cast<std::size_t>(figure)].load(); }
  std::int64_t window(int index, HostFigure figure) {
    return cell().windows.get(index, static_cast<int>(figure));
  }
  bool available(HostFigure figure) { return (cell().available.load() >> static_cast<int>(figure) & 1) != 0; }

  metrics::WorkerCell& worker(std::uint32_t index, int pid, int tid, std::int64_t started_ns) {
    metrics::WorkerCell& cell = segment_->workers()[index];
    cell.pid.store(pid);
    cell.tid.store(tid);
    cell.process_start.store(process_start(pid));
    cell.started_ns.store(started_ns);
    cell.cpu_ns.store(-1);
    cell.run_queue_ns.store(-1);
    cell.life.store(static_cast<std::uint32_t>(metrics::WorkerLife::live));
    auto& high_water = segment_->header().high_water[static_cast<std::size_t>(Section::workers)];
    if (high_water.load() <= index) high_water.store(index + 1);
    return cell;
  }

  std::unique_ptr<Segment> segment_;
  std::unique_ptr<HostSampler> sampler_;
  std::int64_t now_;
};

TEST_F(HostSamplerTest, NothingIsKnownBeforeTheLoopBegins) {
  for (int i = 0; i < 3; ++i) sample_after(kSecond);
  EXPECT_EQ(cell().begun.load(), 0U);
  EXPECT_EQ(cell().grid.closed.load(), 0U);
  for (int figure = 0; figure < metrics::kHostFigures; ++figure) {
    EXPECT_EQ(total(static_cast<HostFigure>(figure)), metrics::HostCell::kUnknown) << figure;
  }
  EXPECT_GT(cell().cores.load(), 0U);
}

TEST_F(HostSamplerTest, CoresAreWithinTheAffinity) {
  EXPECT_GE(cell().cores.load(), 1U);
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    EXPECT_LE(cell().cores.load(), static_cast<std::uint32_t>(CPU_COUNT(&allowed)));
  }
}

TEST_F(HostSamplerTest, CoresAreFullWhileAllOfThemAreBusy) {
  cpu_set_t before;
  if (sched_getaffinity(0, sizeof(before), &before) != 0) GTEST_SKIP() << "more CPUs than fit";
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  if (sched_setaffinity(0, sizeof(one), &one) != 0) GTEST_SKIP() << "affinity cannot be set here";
  sampler_ = std::make_unique<HostSampler>(*segment_);
  begin();
  EXPECT_FALSE(sampler_->cores_are_full());
  // The counters are read at times only: after a slow read the next one waits.
  for (int i = 0; i < 20 && !sampler_->cores_are_full(); ++i) {
    const std::int64_t until = Clock::now_ns() + 250 * kMs;
    while (Clock::now_ns() < until) {
    }
    sample_after(200 * kMs);
  }
  EXPECT_TRUE(sampler_->cores_are_full());
  sample_after(1000 * kSecond);  // in which the CPU could not do as much
  EXPECT_FALSE(sampler_->cores_are_full());
  sched_setaffinity(0, sizeof(before), &before);
}

TEST_F(HostSamplerTest, CoveredTimeIsTheLoopTimeAndFillsItsWindows) {
  begin();
  for (int i = 0; i < 10; ++i) sample_after(130 * kMs);
  EXPECT_EQ(total(HostFigure::covered), 1300 * kMs);
  ASSERT_EQ(cell().grid.closed.load(), 13U);
  for (int i = 0; i < 13; ++i) EXPECT_EQ(window(i, HostFigure::covered), (i + 1) * 100 * kMs) << i;
}

TEST_F(HostSamplerTest, WindowsDoubleInALongRun) {
  begin();
  for (int i = 0; i < 400; ++i) sample_after(100 * kMs);
  EXPECT_EQ(cell().grid.width_ns(), 400 * kMs);
  ASSERT_EQ(cell().grid.closed.load(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(window(i, HostFigure::covered), (i + 1) * 400 * kMs) << i;
}

TEST_F(HostSamplerTest, ProcessCpuIsWhatTheProcessClockSays) {
  const std::int64_t outer_from = process_cpu_ns();
  begin();
  const std::int64_t inner_from = process_cpu_ns();
  burn(60 * kMs);
  const std::int64_t inner_to = process_cpu_ns();
  sample_after(100 * kMs);
  const std::int64_t outer_to = process_cpu_ns();
  EXPECT_GE(total(HostFigure::process_cpu), inner_to - inner_from);
  EXPECT_LE(total(HostFigure::process_cpu), outer_to - outer_from);
  EXPECT_TRUE(available(HostFigure::process_cpu));
  EXPECT_NEAR(sampler_->process_cores(), static_cast<double>(total(HostFigure::process_cpu)) / (100 * kMs),
              1e-6);
}

TEST_F(HostSamplerTest, WhatWasUsedBeforeTheLoopIsDropped) {
  sample();
  burn(80 * kMs);
  sample_after(kSecond);
  resume();
  const std::int64_t from = process_cpu_ns();
  sample_after(100 * kMs);
  EXPECT_EQ(cell().begun.load(), 1U);
  EXPECT_LE(total(HostFigure::process_cpu), process_cpu_ns() - from + 20 * kMs);
  EXPECT_LT(total(HostFigure::process_cpu), 60 * kMs);
}

TEST_F(HostSamplerTest, AnIntervalInWhichTheLoopBeganCountsByItsPart) {
  sample();
  const std::int64_t from = process_cpu_ns();
  burn(100 * kMs);
  const std::int64_t burnt = process_cpu_ns() - from;
  pass(750 * kMs);
  resume();
  sample_after(250 * kMs);
  EXPECT_EQ(total(HostFigure::covered), 250 * kMs);
  EXPECT_GE(total(HostFigure::process_cpu), burnt / 4);
  EXPECT_LE(total(HostFigure::process_cpu), burnt / 2);
}

TEST_F(HostSamplerTest, PausedTimeIsNotCounted) {
  begin();
  sample_after(100 * kMs);
  const std::int64_t before = total(HostFigure::process_cpu);
  pause();
  burn(60 * kMs);
  sample_after(kSecond);
  sample_after(kSecond);
  EXPECT_EQ(total(HostFigure::covered), 100 * kMs);
  EXPECT_EQ(total(HostFigure::process_cpu), before);
  resume();
  burn(30 * kMs);
  sample_after(100 * kMs);
  EXPECT_EQ(total(HostFigure::covered), 200 * kMs);
  EXPECT_GE(total(HostFigure::process_cpu), before + 30 * kMs);
}

TEST_F(HostSamplerTest, FiguresAreKnownIffTheirBitIsSetAndNeverFallFromWindowToWindow) {
  begin();
  for (int i = 0; i < 30; ++i) {
    burn(2 * kMs);
    sample_after(70 * kMs);
  }
  for (int f = 0; f < metrics::kHostFigures; ++f) {
    const auto figure = static_cast<HostFigure>(f);
    EXPECT_EQ(available(figure), total(figure) >= 0) << f;
    std::int64_t last = available(figure) ? 0 : -1;
    for (std::uint32_t i = 0; i < cell().grid.closed.load(); ++i) {
      const std::int64_t value = window(static_cast<int>(i), figure);
      EXPECT_GE(value, last) << f << " in window " << i;
      EXPECT_LE(value, total(figure)) << f << " in window " << i;
      last = value;
    }
  }
  EXPECT_TRUE(available(HostFigure::busy));
  EXPECT_TRUE(available(HostFigure::tree_cpu));
  EXPECT_FALSE(available(HostFigure::other_ranks_cpu));
  EXPECT_GT(cell().memory_bytes.load(), 0);
}

TEST_F(HostSamplerTest, AWindowBetweenTwoSamplesIsInterpolated) {
  begin();
  sample_after(50 * kMs);
  const std::int64_t from = total(HostFigure::process_cpu);
  burn(40 * kMs);
  sample_after(200 * kMs);
  const std::int64_t grown = total(HostFigure::process_cpu) - from;
  ASSERT_EQ(cell().grid.closed.load(), 2U);
  EXPECT_NEAR(window(0, HostFigure::process_cpu), from + grown / 4, 2);
  EXPECT_NEAR(window(1, HostFigure::process_cpu), from + grown * 3 / 4, 2);
}

// ---------------------------------------------------------------------------------------------- children

/// A forked process that burns, says so, and lives until it is told to end.
class Child {
 public:
  explicit Child(std::int64_t burn_ns, const std::function<void()>& before = [] {}) {
    EXPECT_EQ(pipe2(done_, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(end_, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(end_[1]);
      before();
      burn(burn_ns);
      char byte = 'x';
      if (write(done_[1], &byte, 1) == 1) (void)!read(end_[0], &byte, 1);
      _exit(0);
    }
    close(done_[1]);
    close(end_[0]);
    char byte = 0;
    EXPECT_EQ(read(done_[0], &byte, 1), 1);
    close(done_[0]);
  }
  ~Child() {
    end();
    wait();
  }
  int pid() const { return pid_; }
  void end() {
    if (end_[1] >= 0) close(end_[1]);
    end_[1] = -1;
  }
  /// Ended and not waited for.
  void end_and_linger() {
    end();
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }
  void wait() {
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  int done_[2]{-1, -1};
  int end_[2]{-1, -1};
  int pid_ = -1;
};

std::int64_t reaped_cpu_ns() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * kSecond +
         (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

TEST_F(HostSamplerTest, AChildCountsOnceWhileItLivesWhenItEndedAndWhenItWasWaitedFor) {
  const std::int64_t own_from = process_cpu_ns();
  const std::int64_t reaped_from = reaped_cpu_ns();
  begin();
  Child child(70 * kMs);
  sample_after(kLongestPace);
  const std::int64_t alive = total(HostFigure::tree_cpu);
  EXPECT_GE(alive, 70 * kMs);
  child.end_and_linger();
  sample_after(kLongestPace);
  EXPECT_GE(total(HostFigure::tree_cpu), alive);
  child.wait();
  for (int i = 0; i < 3; ++i) sample_after(kLongestPace);
  const std::int64_t used = process_cpu_ns() - own_from + reaped_cpu_ns() - reaped_from;
  EXPECT_GE(total(HostFigure::tree_cpu), alive);
  EXPECT_LE(total(HostFigure::tree_cpu), used + 2 * kMs);
  EXPECT_GE(cell().live_tree_cpu_ns.load(), total(HostFigure::tree_cpu));
}

TEST_F(HostSamplerTest, AChildThatWasNeverMetCountsWhenItWasWaitedFor) {
  begin();
  sample_after(kLongestPace);
  const std::int64_t before = total(HostFigure::tree_cpu);
  {
    Child child(50 * kMs);
  }
  sample_after(kLongestPace);
  EXPECT_GE(total(HostFigure::tree_cpu) - before, 50 * kMs);
}

TEST_F(HostSamplerTest, AChildThatNobodyWaitsForStaysCounted) {
  struct sigaction ignore{};
  struct sigaction old{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGCHLD, &ignore, &old);
  begin();
  auto child = std::make_unique<Child>(50 * kMs);
  sample_after(kLongestPace);
  const std::int64_t alive = total(HostFigure::tree_cpu);
  EXPECT_GE(alive, 50 * kMs);
  child.reset();
  sigaction(SIGCHLD, &old, nullptr);
  burn(20 * kMs);
  sample_after(kLongestPace);
  EXPECT_GE(total(HostFigure::tree_cpu) - alive, 20 * kMs) << "what comes later is not swallowed";
}

TEST_F(HostSamplerTest, GrandchildrenCount) {
  begin();
  Child child(20 * kMs, [] {
    if (fork() == 0) {
      burn(40 * kMs);
      ::pause();
    }
    // The grandchild's CPU time is seen from outside only; give it what it needs.
    burn(40 * kMs);
  });
  for (int i = 0; i < 100 && total(HostFigure::tree_cpu) < 100 * kMs; ++i) {
    usleep(5000);
    sample_after(kLongestPace);
  }
  EXPECT_GE(total(HostFigure::tree_cpu), 100 * kMs);
  // The grandchild outlives its parent: end it by its own pid.
  const std::string path =
      "/proc/" + std::to_string(child.pid()) + "/task/" + std::to_string(child.pid()) + "/children";
  int grandchild = 0;
  if (FILE* file = fopen(path.c_str(), "r")) {
    if (fscanf(file, "%d", &grandchild) == 1) kill(grandchild, SIGKILL);
    fclose(file);
  }
}

// ---------------------------------------------------------------------------------------------- workers

/// A thread that burns on demand and sleeps otherwise (a sleeping thread's schedstat is exact).
class Burner {
 public:
  Burner() {
    thread_ = std::thread([this] {
      tid_ = current_tid();
      for (int done = 0;; ++done) {
        asked_.wait(done);
        const std::int64_t ns = burn_ns_;
        if (ns < 0) return;
        burn(ns);
        cpu_ns_ = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        answered_ = done + 1;
        answered_.notify_all();
      }
    });
    work(0);
  }
  ~Burner() { end(); }
  void work(std::int64_t ns) {
    burn_ns_ = ns;
    ++asked_;
    asked_.notify_all();
    const int wanted = asked_;
    for (int done = answered_; done < wanted; done = answered_) answered_.wait(done);
    // Until it sleeps again: its figure is brought up to date when it leaves the core.
    usleep(2000);
  }
  void end() {
    if (!thread_.joinable()) return;
    burn_ns_ = -1;
    ++asked_;
    asked_.notify_all();
    thread_.join();
  }
  int tid() const { return tid_; }
  std::int64_t cpu_ns() const { return cpu_ns_; }

 private:
  std::atomic<int> asked_{0};
  std::atomic<int> answered_{0};
  std::atomic<std::int64_t> burn_ns_{0};
  std::atomic<std::int64_t> cpu_ns_{0};
  std::atomic<int> tid_{0};
  std::thread thread_;
};

bool machine_has_schedstat() { return access("/proc/self/schedstat", R_OK) == 0; }

TEST_F(HostSamplerTest, AWorkersCpuCountsFromTheBeginOfTheLoopAndNotWhilePaused) {
  if (!machine_has_schedstat()) GTEST_SKIP() << "no schedstat here";
  Burner burner;
  metrics::WorkerCell& cell = worker(0, getpid(), burner.tid(), now_);
  burner.work(50 * kMs);
  sample_after(kSecond);
  EXPECT_EQ(cell.cpu_ns.load(), -1) << "the loop has not begun";
  resume();
  const std::int64_t at_begin = burner.cpu_ns();
  burner.work(40 * kMs);
  sample_after(100 * kMs);
  EXPECT_NEAR(static_cast<double>(cell.cpu_ns.load()), static_cast<double>(burner.cpu_ns() - at_begin),
              3 * kMs);
  EXPECT_GE(cell.run_queue_ns.load(), 0);
  const std::int64_t before = cell.cpu_ns.load();
  pause();
  burner.work(40 * kMs);
  sample_after(kSecond);
  EXPECT_EQ(cell.cpu_ns.load(), before);
}

TEST_F(HostSamplerTest, AWorkerThatStartsLaterCountsFromItsStartAndACellGivenOutAgainFromZero) {
  if (!machine_has_schedstat()) GTEST_SKIP() << "no schedstat here";
  begin();
  sample_after(kSecond);
  Burner first;
  metrics::WorkerCell& cell = worker(3, getpid(), first.tid(), now_);
  first.work(30 * kMs);
  sample_after(100 * kMs);
  EXPECT_NEAR(static_cast<double>(cell.cpu_ns.load()), static_cast<double>(first.cpu_ns()), 3 * kMs);
  first.end();
  cell.life.store(static_cast<std::uint32_t>(metrics::WorkerLife::free));
  sample_after(100 * kMs);
  Burner second;
  worker(3, getpid(), second.tid(), now_);
  second.work(10 * kMs);
  sample_after(100 * kMs);
  EXPECT_NEAR(static_cast<double>(cell.cpu_ns.load()), static_cast<double>(second.cpu_ns()), 3 * kMs);
}

TEST_F(HostSamplerTest, AThreadsLifeBeforeItRegisteredIsNotTheWorkers) {
  if (!machine_has_schedstat()) GTEST_SKIP() << "no schedstat here";
  Burner burner;
  burner.work(200 * kMs);
  begin();
  sample_after(kSecond);
  metrics::WorkerCell& cell = worker(0, getpid(), burner.tid(), now_);
  sample_after(50 * kMs);
  EXPECT_LE(cell.cpu_ns.load(), 50 * kMs);
}

TEST_F(HostSamplerTest, AWorkerInAnotherProcessIsReadAndItsProcessJoinsTheTree) {
  if (!machine_has_schedstat()) GTEST_SKIP() << "no schedstat here";
  begin();
  sample_after(100 * kMs);
  const std::int64_t before = total(HostFigure::tree_cpu);
  Child child(30 * kMs);
  metrics::WorkerCell& cell = worker(0, child.pid(), child.pid(), now_);
  usleep(2000);
  // Much sooner than the next look through /proc.
  sample_after(50 * kMs);
  EXPECT_GE(cell.cpu_ns.load(), 29 * kMs);
  sample_after(kLongestPace);
  EXPECT_GE(total(HostFigure::tree_cpu) - before, 29 * kMs);
}

TEST_F(HostSamplerTest, WhatAWorkerReadsCountsFromTheBeginOfTheLoop) {
  if (access("/proc/self/io", R_OK) != 0) GTEST_SKIP() << "no io accounting here";
  metrics::WorkerCell& cell = worker(0, getpid(), current_tid(), now_);
  cell.read_bytes.store(-1);
  cell.read_calls.store(-1);
  const auto read_zeros = [] {
    std::array<char, 4096> bytes;
    FILE* file = fopen("/dev/zero", "r");
    setvbuf(file, nullptr, _IONBF, 0);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(fread(bytes.data(), 1, bytes.size(), file), bytes.size());
    fclose(file);
  };
  read_zeros();
  sample_after(kSecond);
  EXPECT_EQ(cell.read_bytes.load(), -1) << "the loop has not begun";
  resume();
  read_zeros();
  sample_after(600 * kMs);
  // The sampler reads in this thread, too: a few files of some kB.
  EXPECT_NEAR(static_cast<double>(cell.read_bytes.load()), 450e3, 50e3);
  EXPECT_GE(cell.read_calls.load(), 100);
}

TEST_F(HostSamplerTest, APidThatMeansSomebodyElseStaysUnknown) {
  begin();
  Child child(0);
  metrics::WorkerCell& cell = worker(0, child.pid(), child.pid(), now_);
  cell.process_start.store(process_start(child.pid()) + 1);
  metrics::WorkerCell& nobody = worker(1, getpid(), 0x7ffffff0, now_);
  for (int i = 0; i < 3; ++i) sample_after(kSecond);
  EXPECT_EQ(cell.cpu_ns.load(), -1);
  EXPECT_EQ(cell.run_queue_ns.load(), -1);
  EXPECT_EQ(nobody.cpu_ns.load(), -1);
}

// ---------------------------------------------------------------------------------------------- descriptors

int open_descriptors() {
  int count = 0;
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return -1;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

TEST_F(HostSamplerTest, DescriptorsAreGivenBack) {
  begin();
  sample_after(kSecond);
  const int before = open_descriptors();
  std::vector<std::unique_ptr<Burner>> burners;
  for (std::uint32_t i = 0; i < 16; ++i) {
    burners.push_back(std::make_unique<Burner>());
    worker(i, getpid(), burners.back()->tid(), now_);
  }
  for (int i = 0; i < 10; ++i) sample_after(kSecond);
  EXPECT_LE(open_descriptors(), before + 16);
  burners.clear();
  for (std::uint32_t i = 0; i < 16; ++i) {
    segment_->workers()[i].life.store(static_cast<std::uint32_t>(metrics::WorkerLife::free));
  }
  for (int i = 0; i < 10; ++i) sample_after(kSecond);
  EXPECT_EQ(open_descriptors(), before);
}

TEST(HostSampler, LeavesNoDescriptorBehind) {
  const auto segment = Segment::create({"", ""}, 0);
  const int before = open_descriptors();
  {
    HostSampler sampler(*segment);
    for (int i = 1; i < 5; ++i) sampler.sample(Clock::now_ns() + i * kSecond);
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(HostSamplerTest, WithoutFreeDescriptorsFiguresAreUnknownAndComeBackLater) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  Burner burner;
  metrics::WorkerCell& cell = worker(0, getpid(), burner.tid(), now_);
  const rlimit none{3, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  begin();
  for (int i = 0; i < 5; ++i) sample_after(kLongestPace);
  const bool knew_busy = available(HostFigure::busy);
  const std::int64_t worker_cpu = cell.cpu_ns.load();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_FALSE(knew_busy);
  EXPECT_EQ(worker_cpu, -1);
  EXPECT_TRUE(available(HostFigure::process_cpu));
  for (int i = 0; i < 5; ++i) sample_after(kLongestPace);
  EXPECT_TRUE(available(HostFigure::busy));
  EXPECT_GE(total(HostFigure::busy), 0);
  if (machine_has_schedstat()) {
    EXPECT_GE(cell.cpu_ns.load(), 0);
  }
}

}  // namespace
}  // namespace headrace::profile
