// Loaders that make batches ahead: what is read from their models, and the single rules that classes of
// loaders do not reach.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "headrace/analysis/read/loader.h"
#include "headrace/analysis/simulate/simulator.h"
#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/analysis/verdict/diagnosis_json.h"
#include "headrace/profile/errors.h"
#include "headrace/profile/profile_json.h"
#include "support/simulation/dataloader_model.h"
#include "support/simulation/labelled_loaders.h"
#include "support/verdict_words.h"

namespace headrace::analysis {
namespace {

using profile::Profile;
using simulation::DataLoader;
using simulation::parameter;

DataLoader images(int workers) {
  return {
      .parts = {{.name = "Images", .sleep_s = 0.005}, {.name = "collate", .cpu_s = 1e-4, .per_batch = true}},
      .num_workers = workers,
      .compute_s = 0.010,
      .cores = 8};
}

const Advice* advice_on(const Diagnosis& diagnosis, const std::string& parameter) {
  const auto found = std::find_if(diagnosis.advice.begin(), diagnosis.advice.end(),
                                  [&](const Advice& advice) { return advice.parameter == parameter; });
  return found == diagnosis.advice.end() ? nullptr : &*found;
}

bool says(const Diagnosis& diagnosis, const std::string& words) {
  return std::any_of(diagnosis.advice.begin(), diagnosis.advice.end(),
                     [&](const Advice& advice) { return advice.text.find(words) != std::string::npos; });
}

bool has_evidence(const Diagnosis& diagnosis, const std::string& words) {
  return std::any_of(diagnosis.evidence.begin(), diagnosis.evidence.end(), [&](const Evidence& evidence) {
    return evidence.says.find(words) != std::string::npos;
  });
}

TEST(Loader, IsReadFromTheModel) {
  DataLoader simulated = images(3);
  simulated.pin_s = 1e-3;
  simulated.in_order = false;
  simulated.stream = true;
  const Profile profile = simulation::simulate(simulated, 1);
  const std::optional<Loader> loader = loader_of(profile);
  ASSERT_TRUE(loader);
  EXPECT_EQ(loader->workers, 3);
  EXPECT_EQ(loader->per_worker, 2);
  EXPECT_EQ(loader->window(), 6);
  EXPECT_FALSE(loader->ordered);
  EXPECT_TRUE(loader->stream);
  EXPECT_TRUE(loader->pins);
  EXPECT_EQ(loader->in_workers, (std::vector<int>{0, 1}));
  EXPECT_EQ(profile.operators[static_cast<std::size_t>(loader->handoff)].name, "handoff");
  EXPECT_EQ(profile.operators[static_cast<std::size_t>(loader->pin)].name, "pin_memory");
  EXPECT_LT(loader->sampler, 0);
}

TEST(Loader, AModelWithoutAWindowIsNone) {
  Profile profile = simulation::simulate(images(2), 1);
  profile.model->buffers.front().is_window = false;
  EXPECT_FALSE(loader_of(profile));
  profile.model.reset();
  EXPECT_FALSE(loader_of(profile));
}

TEST(LoaderVerdicts, StreamsAreToldToSplitThemselves) {
  DataLoader stream = images(1);
  stream.stream = true;
  const Diagnosis diagnosis = diagnose(simulation::simulate(stream, 1));
  EXPECT_EQ(diagnosis.cause, Cause::too_few_workers);
  EXPECT_TRUE(says(diagnosis, "its own part"));
  EXPECT_FALSE(says(diagnose(simulation::simulate(images(1), 1)), "its own part"));
}

TEST(LoaderVerdicts, ArraysAreToldToBecomeTensors) {
  DataLoader arrays = images(2);
  arrays.parts.front().sleep_s = 1e-4;
  arrays.message_bytes = 6.4e7;
  arrays.receive_cpu_s = 0.03;
  arrays.pickle_cpu_s = 0.01;
  const Diagnosis diagnosis = diagnose(simulation::simulate(arrays, 1));
  EXPECT_EQ(diagnosis.cause, Cause::handoff);
  EXPECT_TRUE(says(diagnosis, "return tensors instead of arrays (64 MB"));
  const Advice* workers = advice_on(diagnosis, "num_workers");
  ASSERT_NE(workers, nullptr);  // making a batch takes 1 ms, fetching it 30
  EXPECT_EQ(workers->to, ParameterValue(0));
  EXPECT_NEAR(*workers->predicted_step_s, 0.011, 0.001);
}

TEST(LoaderVerdicts, ManyTensorsByNameOnlyWhereTheyGoByDescriptor) {
  DataLoader many = images(4);
  many.parts.front().sleep_s = 1e-3;
  many.compute_s = 0.005;
  many.tensors = 10;
  many.receive_cpu_s = 2e-3;
  Profile profile = simulation::simulate(many, 1);
  EXPECT_NE(advice_on(diagnose(profile), "sharing_strategy"), nullptr);
  parameter(profile, "sharing_strategy").value = "file_system";
  EXPECT_EQ(advice_on(diagnose(profile), "sharing_strategy"), nullptr);
}

TEST(LoaderVerdicts, PinningIsAdvisedOnlyForADevice) {
  DataLoader copies = images(4);
  copies.parts.front().sleep_s = 1e-3;
  copies.copy_s = 6e-3;
  Profile profile = simulation::simulate(copies, 1);
  EXPECT_EQ(diagnose(profile).cause, Cause::transfer);
  EXPECT_EQ(diagnose(profile).op, "to_device");
  EXPECT_NEAR(diagnose(profile).share_of_step, 0.55, 0.06);
  EXPECT_EQ(advice_on(diagnose(profile), "pin_memory"), nullptr);
  profile.settings.push_back({"device", "cuda:0"});
  ASSERT_NE(advice_on(diagnose(profile), "pin_memory"), nullptr);
  parameter(profile, "pin_memory").value = true;
  EXPECT_EQ(advice_on(diagnose(profile), "pin_memory"), nullptr);
}

TEST(LoaderVerdicts, FloorOfABusyMachineIsNoAlarm) {
  // The hand-off waits for a core that others took: 20 % of the step, of which it needed a third.
  DataLoader healthy = images(4);
  healthy.parts.front().sleep_s = 1e-3;
  healthy.receive_latency_s = 1.8e-3;
  Profile profile = simulation::simulate(healthy, 1);
  EXPECT_EQ(diagnose(profile).cause, Cause::handoff);
  for (profile::OperatorProfile& op : profile.operators) {
    if (op.kind == profile::OperatorKind::handoff) op.run_queue_wait_s = 0.65 * op.busy_s;
  }
  EXPECT_EQ(diagnose(profile).kind, VerdictKind::not_input_bound);
}

TEST(LoaderVerdicts, WaitingForWorkersToStartIsStartUp) {
  DataLoader healthy = images(4);
  healthy.parts.front().sleep_s = 1e-3;
  Profile profile = simulation::simulate(healthy, 1);
  ASSERT_EQ(diagnose(profile).kind, VerdictKind::not_input_bound);
  // Short epochs whose workers start one after the other: 12 % of the time goes into their first batches.
  profile.sink.wait_share += 0.12;
  profile.sink.starved_share += 0.12;
  EXPECT_EQ(diagnose(profile).kind, VerdictKind::input_bound);
  profile.sink.worker_start_wait_s = 0.12 * profile.elapsed_s;
  EXPECT_EQ(diagnose(profile).kind, VerdictKind::not_input_bound);
}

/// 40 steps of a healthy loader, five of which wait, each so many steps after the one before.
Profile with_five_waits(std::size_t apart) {
  DataLoader healthy = images(4);
  healthy.parts.front().sleep_s = 1e-3;
  Profile profile = simulation::simulate(healthy, 1);
  profile.sink.wait_share += 0.12;
  profile.sink.starved_share += 0.12;
  profile.sink.getnext_wait.count = 40;
  profile.sink.sequence.assign(40, {0, 0.8 * profile.elapsed_s / 40});
  for (std::size_t i = 0; i < 5; ++i) profile.sink.sequence[i * apart].wait_s = 0.12 * profile.elapsed_s / 5;
  return profile;
}

TEST(LoaderVerdicts, WaitsOfTheFirstStepsAreStartUp) {
  const Diagnosis diagnosis = diagnose(with_five_waits(1));
  EXPECT_EQ(diagnosis.kind, VerdictKind::not_input_bound);
  EXPECT_TRUE(has_evidence(diagnosis, " more while the input started"));
}

TEST(LoaderVerdicts, WaitsAllThroughAShortLoopAreNot) {
  EXPECT_EQ(diagnose(with_five_waits(8)).kind, VerdictKind::input_bound);
}

TEST(LoaderVerdicts, FewWaitsBesideBusyProgramsAreNoAlarm) {
  Profile profile = with_five_waits(8);
  profile.host.cpu_share = 0.05;
  profile.host.foreign_cpu_share = 0.85;
  for (const std::size_t step : {0, 8, 16}) profile.sink.sequence[step].wait_s = 0;
  for (const std::size_t step : {24, 32}) profile.sink.sequence[step].wait_s *= 2.5;
  EXPECT_EQ(diagnose(profile).kind, VerdictKind::not_input_bound);
  EXPECT_TRUE(has_evidence(diagnose(profile), "in few of the steps, while other programs had the cores"));
  // The same on a quiet machine, and waits in all steps beside others.
  profile.host.foreign_cpu_share = 0.05;
  EXPECT_EQ(diagnose(profile).kind, VerdictKind::input_bound);
  profile.host.foreign_cpu_share = 0.85;
  for (profile::StepSample& step : profile.sink.sequence) step.wait_s = 0.12 * profile.elapsed_s / 40;
  EXPECT_EQ(diagnose(profile).kind, VerdictKind::input_bound);
}

TEST(LoaderVerdicts, PersistentWorkersNeedWorkers) {
  DataLoader short_epochs = images(2);
  short_epochs.parts.front().sleep_s = 1e-3;
  short_epochs.epochs = 6;
  short_epochs.epoch_start_s = 2;
  Profile profile = simulation::simulate(short_epochs, 1);
  EXPECT_NE(advice_on(diagnose(profile), "persistent_workers"), nullptr);
  parameter(profile, "persistent_workers").value = true;
  EXPECT_EQ(diagnose(profile).cause, Cause::startup);
  EXPECT_EQ(advice_on(diagnose(profile), "persistent_workers"), nullptr);
  parameter(profile, "persistent_workers").value = false;
  profile.model->stages[1].workers = 0;
  EXPECT_EQ(advice_on(diagnose(profile), "persistent_workers"), nullptr);
}

TEST(LoaderVerdicts, SlowWorkerIsCalledByItsNumberAndPart) {
  DataLoader loader = images(4);
  loader.stream = true;
  loader.worker_times = {1, 1, 3, 1};
  const Diagnosis diagnosis = diagnose(simulation::simulate(loader, 1));
  EXPECT_EQ(diagnosis.cause, Cause::slow_worker);
  EXPECT_TRUE(says(diagnosis, "worker 2 (part 3 of 4 of the stream)"));
  ASSERT_TRUE(diagnosis.advice.front().predicted_step_s);  // 8 x 5 ms in 4 workers, were they all alike
  EXPECT_NEAR(*diagnosis.advice.front().predicted_step_s, 0.0112, 0.0015);
}

bool has_evidence(const Diagnosis& diagnosis, Rule rule) {
  return std::any_of(diagnosis.evidence.begin(), diagnosis.evidence.end(),
                     [&](const Evidence& evidence) { return evidence.rule == rule; });
}

TEST(LoaderVerdicts, DatasetWithoutTransformsIsSaidToBeOneBlock) {
  DataLoader loader = images(1);
  EXPECT_TRUE(has_evidence(diagnose(simulation::simulate(loader, 1)), Rule::detail));
  loader.parts.insert(loader.parts.begin() + 1, {.name = "Crop", .sleep_s = 1e-3});
  EXPECT_FALSE(has_evidence(diagnose(simulation::simulate(loader, 1)), Rule::detail));
}

/// Trivial items: each batch costs the loop its hand-off, and nothing would wait for them in the loop itself.
DataLoader trivial(int workers) {
  DataLoader loader = images(workers);
  loader.parts.front() = {.name = "Rows", .cpu_s = 1e-5};
  loader.parts.back().cpu_s = 2e-5;
  loader.cores = 2;
  loader.batch_size = 1;
  loader.receive_cpu_s = 1.2e-3;
  return loader;
}

TEST(LoaderVerdicts, TooManyWorkersAreAdvisedAway) {
  const Diagnosis diagnosis = diagnose(simulation::simulate(trivial(4), 1));
  EXPECT_EQ(diagnosis.kind, VerdictKind::input_bound) << diagnosis_to_json(diagnosis, 1);
  EXPECT_EQ(diagnosis.cause, Cause::handoff);
  EXPECT_EQ(diagnosis.op, "handoff");
  ASSERT_FALSE(diagnosis.advice.empty());
  EXPECT_EQ(diagnosis.advice.front().parameter, "num_workers");
  EXPECT_EQ(diagnosis.advice.front().from, ParameterValue(4));
  EXPECT_EQ(diagnosis.advice.front().to, ParameterValue(0));
  const double without_s = simulation::simulate(trivial(0), 2).sink.step_s;
  EXPECT_GE(without_s, *diagnosis.advice.front().low);
  EXPECT_LE(without_s, *diagnosis.advice.front().high);
  // Where batches take longer to make than to hand over, the workers stay.
  EXPECT_TRUE(diagnose(simulation::simulate(images(8), 1)).advice.empty());
}

/// A loader without workers whose batches carry objects around their tensors.
Profile tokenised(double pickle_cpu_s) {
  DataLoader loader = images(0);
  loader.parts.front() = {.name = "Texts", .cpu_s = 1e-4};
  loader.parts.back() = {.name = "Collator", .cpu_s = 0.018, .per_batch = true};
  loader.compute_s = 0.014;
  loader.compute_cpu_s = 0.014;
  loader.cores = 2;
  Profile profile = simulation::simulate(loader, 1);
  parameter(profile, "num_workers").set_in = "set dataloader_num_workers in TrainingArguments";
  profile.settings.push_back({"batch", "BatchEncoding"});
  profile.handoff_estimate = profile::HandoffEstimate{110e3, 3, pickle_cpu_s};
  return profile;
}

TEST(LoaderVerdicts, HandOffThatDoesNotHappenYetIsCounted) {
  const auto one_worker = [&](const Profile& profile) {
    return Simulator(profile).predict(
        {{Change::Kind::kWorkers, loader_of(profile)->in_workers.front(), 1, 1}});
  };
  const Prediction light = one_worker(tokenised(1e-4));
  const Prediction heavy = one_worker(tokenised(0.025));
  ASSERT_TRUE(light.known && heavy.known);
  EXPECT_LT(light.step_s, 0.8 * tokenised(0).sink.step_s);
  EXPECT_GT(heavy.step_s, tokenised(0).sink.step_s);  // 18 ms and 25 ms in one interpreter
}

TEST(LoaderVerdicts, AnInputThatComputesInThreadsOfALibraryIsNotMovedToWorkersUnseen) {
  Profile profile = tokenised(1e-4);
  profile.sink.compute_cpu_s = 0;
  const auto one_worker = [&] {
    return Simulator(profile).predict(
        {{Change::Kind::kWorkers, loader_of(profile)->in_workers.front(), 1, 1}});
  };
  profile.host.process_cpu_cores = 0.5;
  EXPECT_TRUE(one_worker().known);
  profile.host.process_cpu_cores = 1.9;
  EXPECT_NE(one_worker().why_not.find("a library computes in threads of its own"), std::string::npos);
  profile.sink.compute_cpu_s = 0.5 * profile.sink.compute_s;  // the step may be who computes in them
  EXPECT_TRUE(one_worker().known);
}

TEST(LoaderVerdicts, WorkersAreAdvisedWithThePlainBatchesThatTheyNeed) {
  const Diagnosis heavy = diagnose(tokenised(0.025));
  EXPECT_EQ(heavy.cause, Cause::no_overlap);
  EXPECT_TRUE(says(heavy, "first return dict(batch) instead of the BatchEncoding"))
      << diagnosis_to_json(heavy, 1);
  EXPECT_TRUE(says(heavy, "25.0 ms"));
  const Diagnosis light = diagnose(tokenised(1e-4));
  EXPECT_FALSE(says(light, "dict(batch)"));
  EXPECT_TRUE(says(light, "set dataloader_num_workers in TrainingArguments"));
}

TEST(LoaderVerdicts, TheAdviceNamesTheLineThatMadeTheLoader) {
  Profile profile = tokenised(1e-4);
  profile.settings.push_back({"made_at", "train.py:12"});
  EXPECT_FALSE(says(diagnose(profile), "train.py:12"));  // a trainer makes it
  parameter(profile, "num_workers").set_in = "";
  EXPECT_TRUE(says(diagnose(profile), "; in train.py:12"));
}

/// One worker that computes, beside a program that computes on the other core of two.
Profile beside_a_neighbour() {
  DataLoader loader = images(1);
  loader.parts.front() = {.name = "Images", .cpu_s = 0.005};
  loader.cores = 2;
  Profile profile = simulation::simulate(loader, 1);
  profile.host.cpu_share = 0.5;
  profile.host.foreign_cpu_share = 0.5;
  profile.host.foreign_contention_share = 0.02;
  return profile;
}

TEST(LoaderVerdicts, CoresThatOthersHoldAreNotPromised) {
  const Profile profile = beside_a_neighbour();
  const int dataset = loader_of(profile)->in_workers.front();
  const Prediction two = Simulator(profile).predict({{Change::Kind::kWorkers, dataset, 2, 1}});
  ASSERT_TRUE(two.known);
  EXPECT_GT(two.step_s, 0.9 * profile.sink.step_s);  // the neighbour stays: there is no second core
  EXPECT_LT(two.low_s, 0.75 * profile.sink.step_s);  // it may give way, as far as the scheduler shares
  EXPECT_EQ(advice_on(diagnose(profile), "num_workers"), nullptr);
  // Alone on the machine, the second core is free.
  Profile alone = profile;
  alone.host.foreign_cpu_share = alone.host.foreign_contention_share = 0.0;
  EXPECT_LT(Simulator(alone).predict({{Change::Kind::kWorkers, dataset, 2, 1}}).step_s,
            0.7 * alone.sink.step_s);
}

TEST(LoaderVerdicts, SpentCoresAreTheNeighboursWhereTheyUseMore) {
  Profile profile = beside_a_neighbour();
  profile.host.cpu_share = 0.38;
  profile.host.foreign_cpu_share = profile.host.foreign_contention_share = 0.62;
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.cause, Cause::cpu_saturated);
  EXPECT_NE(diagnosis.summary.find("other processes hold the cores: they use 62 % of 2 cores, this run 38 %"),
            std::string::npos)
      << diagnosis.summary;
  EXPECT_FALSE(says(diagnosis, "decoder"));
  EXPECT_TRUE(says(diagnosis, "stop the other processes"));
}

TEST(LoaderVerdicts, ABusyMachineHasAPrediction) {
  Profile profile = simulation::simulate(images(1), 1);
  profile.host.foreign_cpu_share = profile.host.foreign_contention_share = 0.4;
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.cause, Cause::too_few_workers);
  ASSERT_FALSE(diagnosis.advice.empty());
  EXPECT_EQ(diagnosis.advice.front().parameter, "num_workers");
  EXPECT_LT(diagnosis.advice.front().predicted_step_s.value_or(1), profile.sink.step_s);
}

TEST(LoaderVerdicts, WorkersThatQueueForCoresTheyShareWithOthersAreSaturated) {
  DataLoader loader = images(2);
  loader.parts.front() = {.name = "Images", .cpu_s = 0.005};
  loader.cores = 2;
  loader.foreign_cores = 1.2;
  Profile profile = simulation::simulate(loader, 1);
  profile.host.foreign_contention_share = 0.3;  // by windows; what the run waited for was more
  EXPECT_EQ(diagnose(profile).cause, Cause::cpu_saturated);
  EXPECT_EQ(advice_on(diagnose(profile), "num_workers"), nullptr);
}

TEST(LoaderVerdicts, AsManyWorkersAsCoresThatComputeSpendThemWhateverTheMachineSays) {
  DataLoader loader = images(2);
  loader.parts.front() = {.name = "Images", .cpu_s = 0.005};
  loader.cores = 2;
  Profile profile = simulation::simulate(loader, 1);
  profile.host.cpu_share = 0.75;  // what a virtual machine's two cores give
  profile::OperatorProfile& images_op = profile.operators[loader_of(profile)->in_workers.front()];
  images_op.run_queue_wait_s = 0.34 * images_op.busy_s;
  EXPECT_EQ(diagnose(profile).cause, Cause::cpu_saturated);
  EXPECT_EQ(advice_on(diagnose(profile), "num_workers"), nullptr);
}

TEST(LoaderVerdicts, WithoutOperatorsNothingIsMadeUp) {
  Profile profile = simulation::simulate(images(1), 1);
  profile.operators.clear();
  profile.queues.clear();
  profile.stall_ledger.clear();
  profile.handoff.reset();
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.kind, VerdictKind::input_bound);
  EXPECT_FALSE(diagnosis.op);
  EXPECT_FALSE(diagnosis.cause);
  EXPECT_TRUE(diagnosis.advice.empty());
}

TEST(LoaderVerdicts, WithoutItsMakersAHandoffThatTakesNothingIsNotBlamed) {
  Profile profile = simulation::simulate(images(1), 1);
  // A run holds so many operators; those of this loader's workers did not fit.
  std::erase_if(profile.operators, [](const profile::OperatorProfile& op) {
    return op.name == "Images" || op.name == "collate";
  });
  profile.stall_ledger = {{"unknown", "", profile.sink.wait_share * profile.elapsed_s, 1}};
  profile::find_queue_ends(profile);
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.kind, VerdictKind::input_bound);
  EXPECT_FALSE(diagnosis.op) << *diagnosis.op;
  EXPECT_FALSE(diagnosis.cause);
  EXPECT_TRUE(diagnosis.advice.empty());
  EXPECT_FALSE(diagnosis.reason.empty());
}

class AbsurdNumber : public testing::TestWithParam<const char*> {};

/// Every figure of a loader's profile, one at a time, set to something absurd where it stands first.
TEST_P(AbsurdNumber, NeverBreaksALoadersVerdict) {
  DataLoader loader = images(2);
  loader.steps = 30;
  loader.pin_s = 1e-4;
  loader.copy_s = 1e-3;
  loader.sampler_s = 1e-4;
  const std::string text = profile::profile_to_json(simulation::simulate(loader, 1));
  const std::string absurd = GetParam();
  const bool is_text = absurd.front() == '"';
  std::set<std::string> names;
  for (std::size_t at = text.find(':'); at != std::string::npos; at = text.find(':', at + 1)) {
    const bool was_text = text[at + 1] == '"';
    const std::size_t end = was_text ? text.find('"', at + 2) + 1 : text.find_first_of(",}]", at);
    if (std::string("{[tfn").find(text[at + 1]) != std::string::npos) continue;
    if (is_text != was_text && absurd != "null") continue;
    const std::size_t name = text.rfind('"', at - 2);
    if (!names.insert(text.substr(name, at - name)).second) continue;
    Profile profile;
    try {
      profile = profile::profile_from_json(text.substr(0, at + 1) + absurd + text.substr(end));
    } catch (const FormatError&) {
      EXPECT_TRUE(was_text);  // a word that is none of those that may stand there
      continue;
    }
    const Diagnosis diagnosis = diagnose(profile);
    ASSERT_TRUE(diagnosis.confidence >= 0 && diagnosis.confidence <= 1) << absurd << " at " << at;
    ASSERT_TRUE(diagnosis.share_of_step >= 0 && diagnosis.share_of_step <= 1) << absurd << " at " << at;
  }
  EXPECT_GT(names.size(), 10U);
}
INSTANTIATE_TEST_SUITE_P(LoaderVerdicts, AbsurdNumber, testing::Values("-1", "1e300", "0", "null", "\"-7\""));

TEST(LoaderVerdicts, SavedProfileGivesTheSameVerdict) {
  for (const simulation::LoaderClass& each : simulation::loader_classes()) {
    simulation::Random random(11);
    const Profile profile = simulation::simulate(each.draw(random).loader, 11);
    const Profile read = profile::profile_from_json(profile::profile_to_json(profile));
    EXPECT_EQ(diagnosis_to_json(diagnose(profile)), diagnosis_to_json(diagnose(read))) << each.name;
  }
}

}  // namespace
}  // namespace headrace::analysis
