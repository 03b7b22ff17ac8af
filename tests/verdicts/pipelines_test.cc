// Live native pipelines of the classes that the rules of other tools were measured on, scaled down: each must
// get its verdict. Stages sleep, so that a busy machine does not change what is true of them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/pipeline/pipeline.h"
#include "headrace/pipeline/random.h"
#include "headrace/profile/current.h"
#include "headrace/profile/snapshot.h"
#include "support/verdict_words.h"

namespace headrace::analysis {
namespace {

namespace pl = headrace::pipeline;

using Chain = pl::Pipeline<int>;
/// Milliseconds that item `number` takes.
using Service = std::function<double(int number)>;

void sleep_ms(double ms) {
  if (ms > 0) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
}

/// Within 5 %, the same in every run.
Service about(double ms) {
  return [ms](int number) {
    return ms *
           (0.95 +
            0.1 * static_cast<double>(pl::Random(static_cast<std::uint64_t>(number)).below(1000)) / 1000);
  };
}

Service exponential(double ms, std::uint64_t seed) {
  return [ms, seed](int number) {
    pl::Random random(seed + static_cast<std::uint64_t>(number) * 1000);
    const double drawn = static_cast<double>(random.below(10'000)) + 0.5;
    return -ms * std::log(drawn / 10'000);
  };
}

Service rarely(double ms, int every, double slow_ms) {
  return [=](int number) { return number % every == every - 1 ? slow_ms : ms; };
}

Service in_turn(int length, double first_ms, double second_ms) {
  return [=](int number) { return number / length % 2 == 0 ? first_ms : second_ms; };
}

Chain reader(int items, double ms, std::int64_t capacity = 2) {
  return pl::generator<int>("read",
                            [items, ms](const pl::Shard&) -> pl::ItemMaker<int> {
                              return [at = 0, items, ms]() mutable -> std::optional<int> {
                                if (at == items) return std::nullopt;
                                sleep_ms(ms);
                                return at++;
                              };
                            },
                            {.capacity = capacity});
}

struct Width {
  int workers = 1;
  bool ordered = false;
  std::int64_t capacity = 2;
};

Chain with(Chain chain, const std::string& name, Service service, Width width = {}) {
  return std::move(chain).map(
      name,
      [service = std::move(service)](int number) {
        sleep_ms(service(number));
        return number;
      },
      {.workers = width.workers, .ordered = width.ordered, .capacity = width.capacity});
}

Chain in_batches(Chain chain, int size) {
  return std::move(chain).batch(
      size, [](std::vector<int>&& items) { return items.front(); }, pl::BatchOptions{.capacity = 2});
}

const std::string kAny = "*";

struct Case {
  std::string name;
  std::function<Chain()> build;
  double step_ms;
  std::vector<std::string> kinds;
  std::string op;
  std::string cause;
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

class NativePipeline : public ::testing::TestWithParam<Case> {};

/// One run of the pipeline; what is not as expected, empty where all is.
std::string problem_of_a_run(const Case& expected) {
  std::ostringstream problem;
  const auto run = std::filesystem::temp_directory_path() /
                   ("headrace-verdict-" + std::to_string(getpid()) + "-" + expected.name);
  const auto session = profile::CurrentSession::for_run(run, 0);
  {
    Chain chain = expected.build();
    while (chain.next()) sleep_ms(expected.step_ms);
    profile::SegmentImage image;
    image.read_memory(session->segment().data(), session->segment().size());
    const profile::Profile profile =
        profile::read_profile(image, static_cast<std::uint32_t>(chain.runtime().loader()->id()));
    const Diagnosis said = diagnose(profile);
    if (std::find(expected.kinds.begin(), expected.kinds.end(), word_of(said.kind)) == expected.kinds.end())
      problem << "kind " << word_of(said.kind) << " (" << said.reason << ") ";
    if (expected.op != kAny && said.op.value_or("") != expected.op)
      problem << "operator '" << said.op.value_or("") << "', not '" << expected.op << "' ";
    if (word_of(said.cause) != expected.cause)
      problem << "cause '" << word_of(said.cause) << "', not '" << expected.cause << "' ";
    // The ledger is exact here: it sums to the wait.
    double charged = 0;
    for (const auto& row : profile.stall_ledger) charged += row.seconds;
    const double wait =
        profile.sink.getnext_wait.mean_s * static_cast<double>(profile.sink.getnext_wait.count);
    EXPECT_NEAR(charged, wait, 0.01 * wait);
  }
  profile::CurrentSession::close_all();
  std::filesystem::remove_all(run);
  return problem.str();
}

/// Threads that sleep are at the mercy of what else runs on the machine: a run that was disturbed is drawn
/// again.
TEST_P(NativePipeline, GetsItsVerdict) {
  constexpr int kDraws = 3;
  std::string problem;
  for (int draw = 0; draw < kDraws; ++draw) {
    problem = problem_of_a_run(GetParam());
    if (problem.empty()) return;
  }
  FAIL() << "in each of " << kDraws << " runs, at last: " << problem;
}

const std::vector<std::string> kHealthy = {"not_input_bound"};
const std::vector<std::string> kBound = {"input_bound"};

std::vector<Case> cases() {
  return {
      {"ConsumerBound", [] { return with(reader(120, 0), "decode", about(5)); }, 9, kHealthy, "", ""},
      {"OneSlowOperator", [] { return with(reader(120, 0), "decode", about(8)); }, 5, kBound, "decode",
       "too_few_workers"},
      {"LastOfThreeIsSlow",
       [] {
         return with(with(with(reader(120, 0), "first", about(2)), "second", about(4)), "third", about(9));
       },
       5, kBound, "third", "too_few_workers"},
      {"FirstOfThreeIsSlow",
       [] {
         return with(with(with(reader(120, 0), "first", about(9)), "second", about(4)), "third", about(2));
       },
       5, kBound, "first", "too_few_workers"},
      {"WideEnough",
       [] { return with(with(reader(120, 0), "first", about(3)), "second", about(10), {.workers = 3}); }, 7,
       kHealthy, "", ""},
      {"BatchOfFourInTime", [] { return in_batches(with(reader(480, 0), "decode", about(1.2)), 4); }, 10,
       kHealthy, "", ""},
      {"BatchOfSixTooLate", [] { return in_batches(with(reader(600, 0), "decode", about(1.5)), 6); }, 5,
       kBound, "decode", "too_few_workers"},
      {"SlowSource", [] { return with(reader(120, 9), "decode", about(1)); }, 5, kBound, "read",
       "serial_operator"},
      {"SerialAfterParallel",
       [] {
         return with(with(reader(100, 0), "wide", about(10), {.workers = 8, .capacity = 16}), "narrow",
                     about(10));
       },
       1, kBound, "narrow", "too_few_workers"},
      {"SlowSamplesInOrder",
       [] {
         return with(reader(500, 0), "decode", rarely(1, 25, 80),
                     {.workers = 4, .ordered = true, .capacity = 8});
       },
       3,
       {"input_bound", "intermittent"},
       "decode",
       "slow_samples"},
      {"OneStall",
       [] { return with(reader(300, 0), "decode", rarely(3, 150, 300)); },
       6,
       {"not_input_bound", "intermittent"},
       "",
       "transient_stall"},
      {"SlowFirstItem",
       [] {
         return with(with(reader(120, 0), "first", [](int number) { return number == 0 ? 300.0 : 2.0; }),
                     "second", about(9));
       },
       5, kBound, "second", "too_few_workers"},
      {"LongQueueHidesNothing", [] { return with(reader(150, 0), "decode", about(9), {.capacity = 64}); }, 6,
       kBound, "decode", "too_few_workers"},
      {"VaryingService",
       [] { return with(with(reader(400, 0), "decode", exponential(5, 1)), "augment", exponential(5, 2)); },
       5.5,
       {"input_bound", "intermittent"},
       kAny,
       "variance"},
      {"InTurn",
       [] { return with(with(reader(400, 0), "first", in_turn(50, 9, 1)), "second", in_turn(50, 1, 9)); },
       4,
       {"input_bound", "intermittent"},
       "",
       "alternating"},
  };
}

INSTANTIATE_TEST_SUITE_P(Classes, NativePipeline, ::testing::ValuesIn(cases()),
                         [](const auto& tested) { return tested.param.name; });

TEST(NativePipelineWithDevice, SlowCopyIsTheTransfer) {
  const auto run =
      std::filesystem::temp_directory_path() / ("headrace-verdict-copy-" + std::to_string(getpid()));
  const auto session = profile::CurrentSession::for_run(run, 0);
  {
    auto chain =
        reader(150, 0)
            .map("decode", [](int number) { return std::vector<float>(20'000, static_cast<float>(number)); })
            .transfer(transport::open_device("cpu", {.buffers = 4, .bandwidth = 10e6}));
    while (chain.next()) sleep_ms(3);
    profile::SegmentImage image;
    image.read_memory(session->segment().data(), session->segment().size());
    const Diagnosis said =
        diagnose(profile::read_profile(image, static_cast<std::uint32_t>(chain.runtime().loader()->id())));
    EXPECT_EQ(said.kind, VerdictKind::input_bound);
    EXPECT_EQ(said.op, "to_device");
    EXPECT_EQ(said.cause, Cause::transfer);
  }
  profile::CurrentSession::close_all();
  std::filesystem::remove_all(run);
}

}  // namespace
}  // namespace headrace::analysis
