#include "support/simulation/labelled_lines.h"

#include <cmath>

#include "support/simulation/draws.h"

namespace headrace::simulation {
namespace {

const char* const kNames[] = {"read", "decode",    "augment", "tokenize",
                              "crop", "Normalize", "pack",    "load_frames"};

std::string name_at(int first, std::size_t i) { return kNames[(static_cast<std::size_t>(first) + i) % 8]; }

/// A line of 2 to 4 sleeping stages, all well faster than a sink of `compute_s`.
Line fast_line(Random& random, double compute_s, int depth_least = 2) {
  Line line;
  line.compute_s = compute_s;
  const int first = among(random, 0, 7);
  const int depth = among(random, depth_least, 4);
  for (int i = 0; i < depth; ++i) {
    Stage stage;
    stage.name = name_at(first, static_cast<std::size_t>(i));
    stage.sleep_s = compute_s * between(random, 0.1, 0.6);
    stage.capacity = among(random, 1, 4);
    line.stages.push_back(stage);
  }
  return line;
}

Stage& any_stage(Line& line, Random& random, int from) {
  return line.stages[static_cast<std::size_t>(among(random, from, static_cast<int>(line.stages.size()) - 1))];
}

Labelled consumer_bound(Random& random) {
  return {fast_line(random, between(random, 0.008, 0.05), 1), kHealthy, "", ""};
}

Labelled healthy_batch(Random& random) {  // G7
  const int take = among(random, 4, 16);
  const double compute_s = between(random, 0.02, 0.06);
  Line line{.stages = {{.name = "read",
                        .sleep_s = compute_s / take * between(random, 0.4, 0.85),
                        .capacity = among(random, 2, 16)},
                       {.name = "batch", .kind = "batch", .sleep_s = 2e-4, .take = take}},
            .compute_s = compute_s};
  return {line, kHealthy, "", ""};
}

Labelled healthy_overprovisioned(Random& random) {  // G6
  Line line = fast_line(random, between(random, 0.015, 0.04));
  Stage& stage = any_stage(line, random, 1);
  stage.workers = among(random, 3, 6);
  stage.sleep_s = line.compute_s * stage.workers * between(random, 0.3, 0.6);
  return {line, kHealthy, "", ""};
}

Labelled healthy_slow_start(Random& random) {
  Line line = fast_line(random, between(random, 0.01, 0.04));
  line.first_item_s = between(random, 0.5, 2);
  line.steps = static_cast<int>(3 * line.first_item_s / line.compute_s);
  return {line, kHealthy, "", ""};
}

Labelled one_stall(Random& random) {  // G14
  Line line = fast_line(random, between(random, 0.01, 0.03));
  Stage& stage = any_stage(line, random, 0);
  line.steps = among(random, 120, 300);
  const double stall_s = between(random, 0.8, 3);
  const int at = among(random, 30, line.steps - 30);
  stage.factor = once(static_cast<std::uint64_t>(at), stall_s / stage.sleep_s);
  return {line, kHealthy, "", "transient_stall"};
}

Labelled slow_stage(Random& random) {  // G2, G3
  Line line = fast_line(random, between(random, 0.01, 0.03));
  Stage& stage = any_stage(line, random, 1);
  stage.sleep_s = line.compute_s * between(random, 1.2, 3);
  return {line, kBound, stage.name, "too_few_workers"};
}

Labelled slow_stage_of_several(Random& random) {  // 10 -> 150 x 4 -> 10
  Line line = fast_line(random, between(random, 0.01, 0.03));
  Stage& stage = any_stage(line, random, 1);
  stage.workers = among(random, 2, 4);
  stage.sleep_s = line.compute_s * stage.workers * between(random, 1.25, 2.5);
  line.cores = 2;
  return {line, kBound, stage.name, "too_few_workers"};
}

Labelled slow_cpu_stage(Random& random) {  // cpu_w1: C work, a core free
  Line line = fast_line(random, between(random, 0.01, 0.03));
  Stage& stage = any_stage(line, random, 1);
  stage.cpu_s = line.compute_s * between(random, 1.3, 3);
  stage.sleep_s = 0;
  return {line, kBound, stage.name, "too_few_workers"};
}

Labelled slow_before_batch(Random& random) {  // G8
  const int take = among(random, 4, 16);
  const double compute_s = between(random, 0.02, 0.05);
  Line line{.stages = {{.name = "list", .sleep_s = 2e-4},
                       {.name = "decode",
                        .sleep_s = compute_s / take * between(random, 1.2, 2),
                        .capacity = among(random, 2, 16)},
                       {.name = "batch", .kind = "batch", .sleep_s = 2e-4, .take = take}},
            .compute_s = compute_s};
  return {line, kBound, "decode", "too_few_workers"};
}

Labelled near_tie(Random& random) {  // 34 -> 36
  const double slower = between(random, 0.03, 0.04);
  Line line{.stages = {{.name = "list", .sleep_s = 1e-3},
                       {.name = "decode", .sleep_s = slower / 1.06, .factor = jitter(0.03)},
                       {.name = "augment", .sleep_s = slower, .factor = jitter(0.03)}},
            .compute_s = slower * between(random, 0.6, 0.85)};
  return {line, kBound, "augment", "too_few_workers"};
}

Labelled slow_source(Random& random) {  // G4, G9
  Line line = fast_line(random, between(random, 0.01, 0.03));
  line.stages.front().sleep_s = line.compute_s * between(random, 1.2, 3);
  return {line, kBound, line.stages.front().name, "serial_operator"};
}

Labelled prefilled(Random& random) {  // H1
  Line line = fast_line(random, between(random, 0.02, 0.03));
  Stage& last = line.stages.back();
  last.capacity = last.prefilled = among(random, 24, 64);
  last.sleep_s = line.compute_s * between(random, 1.2, 1.6);
  line.steps = among(random, 150, 250);
  return {line, {"input_bound"}, last.name, "too_few_workers"};
}

Labelled saturated(Random& random) {  // cpu_w2, G12
  Line line = fast_line(random, between(random, 0.005, 0.015));
  line.cores = among(random, 2, 4);
  Stage& stage = any_stage(line, random, 1);
  stage.workers = line.cores * among(random, 1, 2);
  stage.cpu_s = line.compute_s * line.cores * between(random, 1.4, 3);
  stage.sleep_s = 0;
  return {line, kBound, stage.name, "cpu_saturated"};
}

Labelled pure_python(Random& random) {  // G11, H4
  Line line = fast_line(random, between(random, 0.003, 0.008));
  Stage& stage = any_stage(line, random, 1);
  stage.workers = among(random, 1, 4);
  stage.python = true;
  stage.sleep_s = 0;
  stage.cpu_s = between(random, 0.015, 0.03);
  return {line, kBound, stage.name, "gil_contention"};
}

Labelled python_processes(Random& random) {  // pycpu
  Line line = fast_line(random, between(random, 0.008, 0.012));
  Stage& stage = any_stage(line, random, 1);
  stage.python = stage.process = true;
  stage.sleep_s = 0;
  stage.cpu_s = line.compute_s * between(random, 1.4, 3);
  return {line, kBound, stage.name, "too_few_workers"};
}

Labelled sleeping_beside_c(Random& random) {  // looks like the lock: one core busy, many threads
  Line line = fast_line(random, between(random, 0.01, 0.02), 3);
  line.stages[1].sleep_s = 0;
  line.stages[1].cpu_s = line.compute_s * 1.45;
  Stage& stage = line.stages[2];
  stage.workers = 3;
  stage.sleep_s = line.compute_s * 3 * between(random, 1.7, 2.5);
  return {line, kBound, stage.name, "too_few_workers"};
}

Labelled varying(Random& random) {  // H2, G17
  const double mean = between(random, 0.015, 0.03);
  Line line{
      .stages = {{.name = "list", .sleep_s = 1e-3, .capacity = 4},
                 {.name = "decode", .sleep_s = mean * between(random, 0.85, 1), .factor = exponential()},
                 {.name = "augment", .sleep_s = mean * between(random, 0.85, 1), .factor = exponential()}},
      .compute_s = mean,
      .steps = 300};
  return {line, kBound, "*", "variance"};
}

Labelled varying_producer(Random& random) {  // G17: as fast as the sink on average
  const double compute_s = between(random, 0.015, 0.03);
  Line line = fast_line(random, compute_s);
  Stage& last = line.stages.back();
  last.sleep_s = compute_s * between(random, 0.93, 0.97);
  last.capacity = 1;
  last.factor = normal(between(random, 0.7, 0.8));
  line.steps = 300;
  return {line, kBound, last.name, "variance"};
}

Labelled rare_slow(Random& random) {  // G13, slow5
  const double usual = between(random, 0.002, 0.004);
  const double times = between(random, 60, 100);
  const double share = between(random, 0.03, 0.07);
  Line line{.stages = {{.name = "list", .sleep_s = 2e-4, .capacity = 16},
                       {.name = "decode",
                        .workers = 4,
                        .sleep_s = usual,
                        .capacity = 4,
                        .ordered = true,
                        .factor = rare(share, times)}},
            .compute_s = between(random, 0.005, 0.007),
            .steps = 400};
  return {line, kBound, "decode", "slow_samples"};
}

Labelled rare_slow_hidden(Random& random) {  // H5
  Line line{
      .stages = {{.name = "list", .sleep_s = 2e-4, .capacity = 16},
                 {.name = "decode", .workers = 4, .sleep_s = 0.01, .capacity = 8, .factor = rare(0.04, 30)}},
      .compute_s = between(random, 0.016, 0.02),
      .steps = 300};
  return {line, kHealthy, "", ""};
}

Labelled taking_turns(Random& random) {  // H3
  const auto length = static_cast<std::uint64_t>(among(random, 25, 60));
  const double slow = between(random, 0.03, 0.05);
  Line line{.stages = {{.name = "list", .sleep_s = 5e-4},
                       {.name = "decode", .sleep_s = slow, .factor = in_turn(length, 1, 0.1, false)},
                       {.name = "augment", .sleep_s = slow, .factor = in_turn(length, 1, 0.1, true)}},
            .compute_s = slow * between(random, 0.3, 0.7),
            .steps = static_cast<int>(length) * among(random, 4, 8)};
  return {line, {"input_bound", "intermittent"}, "", "alternating"};
}

Labelled equally_slow(Random& random) {  // looks like turns
  const double slow = between(random, 0.03, 0.05);
  Line line{.stages = {{.name = "list", .sleep_s = 5e-4},
                       {.name = "decode", .sleep_s = slow, .factor = exponential()},
                       {.name = "augment", .sleep_s = slow, .factor = exponential()}},
            .compute_s = slow * between(random, 0.3, 0.6),
            .steps = 200};
  return {line, kBound, "*", "too_few_workers"};
}

Labelled lame_worker(Random& random) {
  Line line = fast_line(random, between(random, 0.008, 0.012));
  Stage& stage = any_stage(line, random, 1);
  stage.workers = among(random, 2, 4);
  stage.sleep_s = line.compute_s * stage.workers * between(random, 1.0, 1.2);
  stage.worker_times.assign(static_cast<std::size_t>(stage.workers), 1);
  stage.worker_times.back() = between(random, 2.5, 5);
  stage.ordered = among(random, 0, 1) == 1;
  line.steps = 250;
  return {line, kBound, stage.name, "slow_worker"};
}

Labelled in_the_loop(Random& random) {  // sleep_w0, G16
  Line line = fast_line(random, between(random, 0.01, 0.03));
  line.in_sink = true;
  Stage& stage = any_stage(line, random, 0);
  stage.sleep_s = line.compute_s * between(random, 0.8, 4);
  return {line, kBound, stage.name, "no_overlap"};
}

Labelled at_times(Random& random) {  // slow for some seconds, then fast again
  Line line = fast_line(random, 0.02);
  Stage& stage = any_stage(line, random, 1);
  stage.sleep_s = 0.05;
  stage.factor = in_turn(60, 1, 0.15, true);
  line.steps = 240;
  return {line, {"intermittent"}, stage.name, "too_few_workers"};
}

Labelled free_sink(Random& random) {  // G10, G18: the training step costs next to nothing
  Line line = fast_line(random, 0.01);
  line.compute_s = between(random, 1e-4, 5e-4);
  Stage& stage = any_stage(line, random, 1);
  for (Stage& each : line.stages) each.workers = &each == &line.stages.front() ? 1 : among(random, 1, 3);
  stage.sleep_s = 0.02 * stage.workers * between(random, 1, 2);
  return {line, kBound, stage.name, "too_few_workers"};
}

Labelled two_python_stages(Random& random) {
  Line line = fast_line(random, between(random, 0.003, 0.006), 3);
  line.stages[1].python = line.stages[2].python = true;
  line.stages[1].sleep_s = line.stages[2].sleep_s = 0;
  line.stages[1].cpu_s = between(random, 0.012, 0.016);
  line.stages[2].cpu_s = between(random, 0.005, 0.008);
  return {line, kBound, line.stages[1].name, "gil_contention"};
}

Labelled python_unprobed(Random& random) {
  Labelled labelled = pure_python(random);
  for (Stage& stage : labelled.line.stages) {
    if (stage.python) stage.workers = among(random, 2, 4);
  }
  labelled.line.probe_lock = labelled.line.look_at_threads = false;
  return labelled;
}

Labelled python_sink(Random& random) {  // almost no wait, yet the step is stretched
  Line line = fast_line(random, between(random, 0.01, 0.02));
  line.compute_cpu_s = 0.8 * line.compute_s;
  line.compute_python = line.quiet_known = true;
  Stage& stage = any_stage(line, random, 1);
  stage.python = true;
  stage.sleep_s = 0;
  stage.cpu_s = line.compute_s * between(random, 0.6, 0.9);
  return {line, kBound, stage.name, "gil_contention"};
}

/// As recorded where the kernel does not say what threads wait for.
Labelled pure_python_not_looked_at(Random& random) {
  Labelled labelled = pure_python(random);
  labelled.line.look_at_threads = false;
  return labelled;
}

Labelled python_sink_not_looked_at(Random& random) {
  Labelled labelled = python_sink(random);
  labelled.line.look_at_threads = false;
  return labelled;
}

Labelled short_python_bodies(Random& random) {  // the loop sleeps, never waits for a batch, and yet waits
  const double sleep_s = between(random, 0.0015, 0.003);
  Line line{.stages = {{.name = "list", .sleep_s = 1e-4},
                       {.name = "parse",
                        .workers = among(random, 2, 4),
                        .cpu_s = sleep_s * between(random, 1.4, 2),
                        .python = true,
                        .capacity = 4}},
            .compute_s = 1.03 * sleep_s,
            .compute_cpu_s = 0.03 * sleep_s,
            .compute_python = true,
            .steps = 400};
  return {line, kBound, "parse", "gil_contention"};
}

Labelled light_operator_beside_python(Random& random) {  // its wall time is its wait for the lock
  Line line{.stages = {{.name = "list", .sleep_s = 2e-4},
                       {.name = "tokenise",
                        .workers = among(random, 3, 4),
                        .cpu_s = between(random, 0.009, 0.012),
                        .python = true},
                       {.name = "batch", .kind = "batch", .cpu_s = 2e-4, .python = true}},
            .compute_s = between(random, 0.003, 0.005)};
  return {line, kBound, "tokenise", "gil_contention"};
}

Labelled healthy_python_sink(Random& random) {
  Line line = fast_line(random, between(random, 0.01, 0.03));
  line.compute_cpu_s = 0.9 * line.compute_s;
  line.compute_python = line.quiet_known = true;
  return {line, kHealthy, "", ""};
}

Labelled sleeper_beside_python_sink(
    Random& random) {  // one core of CPU, lock often taken, yet a sleep limits
  Line line = fast_line(random, between(random, 0.012, 0.02), 3);
  line.compute_cpu_s = 0.9 * line.compute_s;
  line.compute_python = true;
  line.stages[1].sleep_s = 0;
  line.stages[1].cpu_s = 0.5 * line.compute_s;
  line.stages[2].sleep_s = line.compute_s * between(random, 1.5, 2);
  return {line, kBound, line.stages[2].name, "too_few_workers"};
}

Labelled half_cpu(Random& random) {  // I/O and C work in one stage, cores to spare
  Line line = fast_line(random, between(random, 0.01, 0.02));
  line.cores = 4;
  Stage& stage = any_stage(line, random, 1);
  stage.workers = among(random, 1, 2);
  stage.sleep_s = line.compute_s * stage.workers * between(random, 0.6, 1);
  stage.cpu_s = line.compute_s * stage.workers * between(random, 0.7, 1);
  return {line, kBound, stage.name, "too_few_workers"};
}

Labelled two_cpu_stages(Random& random) {  // one worker each, both cores spent
  Line line = fast_line(random, between(random, 0.005, 0.01), 3);
  line.stages[1].sleep_s = line.stages[2].sleep_s = 0;
  line.stages[1].cpu_s = between(random, 0.028, 0.03);
  line.stages[2].cpu_s = between(random, 0.0315, 0.033);
  return {line, kBound, line.stages[2].name, "cpu_saturated"};
}

Labelled foreign_hog(Random& random) {
  Line line = fast_line(random, between(random, 0.005, 0.01));
  line.foreign_cores = 1;
  Stage& stage = any_stage(line, random, 1);
  stage.workers = 2;
  stage.sleep_s = 0;
  stage.cpu_s = line.compute_s * between(random, 2, 3);
  return {line, kBound, stage.name, "cpu_saturated"};
}

Labelled rare_slow_alone(Random& random) {  // one worker
  Line line{.stages = {{.name = "list", .sleep_s = 2e-4, .capacity = 16},
                       {.name = "decode", .sleep_s = 0.003, .capacity = 4, .factor = rare(0.04, 60)}},
            .compute_s = between(random, 0.012, 0.015),
            .steps = 300};
  return {line, kBound, "decode", "slow_samples"};
}

Labelled loop_pauses(Random& random) {  // an evaluation every so many steps
  Line line = fast_line(random, between(random, 0.008, 0.02));
  const auto every = static_cast<std::uint64_t>(among(random, 20, 60));
  const double times = between(random, 12, 60);
  line.steps = static_cast<int>(5 * every);
  line.compute_factor = [every, times, usual = jitter(0.02)](std::uint64_t step, Random& draws) {
    return usual(step, draws) * (step % every == every - 1 ? times : 1);
  };
  return {line, kHealthy, "", "pauses"};
}

}  // namespace

const std::vector<LineClass>& line_classes() {
  static const std::vector<LineClass> classes{{"consumer_bound", consumer_bound},
                                              {"healthy_batch", healthy_batch},
                                              {"healthy_overprovisioned", healthy_overprovisioned},
                                              {"healthy_slow_start", healthy_slow_start},
                                              {"rare_slow_hidden", rare_slow_hidden},
                                              {"one_stall", one_stall},
                                              {"slow_stage", slow_stage},
                                              {"slow_stage_of_several", slow_stage_of_several},
                                              {"slow_cpu_stage", slow_cpu_stage},
                                              {"slow_before_batch", slow_before_batch},
                                              {"near_tie", near_tie},
                                              {"slow_source", slow_source},
                                              {"prefilled", prefilled},
                                              {"saturated", saturated},
                                              {"pure_python", pure_python},
                                              {"python_processes", python_processes},
                                              {"sleeping_beside_c", sleeping_beside_c},
                                              {"varying", varying},
                                              {"varying_producer", varying_producer},
                                              {"rare_slow", rare_slow},
                                              {"taking_turns", taking_turns},
                                              {"equally_slow", equally_slow},
                                              {"lame_worker", lame_worker},
                                              {"in_the_loop", in_the_loop},
                                              {"at_times", at_times},
                                              {"free_sink", free_sink},
                                              {"two_python_stages", two_python_stages},
                                              {"python_unprobed", python_unprobed},
                                              {"python_sink", python_sink},
                                              {"pure_python_not_looked_at", pure_python_not_looked_at},
                                              {"python_sink_not_looked_at", python_sink_not_looked_at},
                                              {"short_python_bodies", short_python_bodies},
                                              {"light_operator_beside_python", light_operator_beside_python},
                                              {"healthy_python_sink", healthy_python_sink},
                                              {"sleeper_beside_python_sink", sleeper_beside_python_sink},
                                              {"half_cpu", half_cpu},
                                              {"two_cpu_stages", two_cpu_stages},
                                              {"foreign_hog", foreign_hog},
                                              {"rare_slow_alone", rare_slow_alone},
                                              {"pauses", loop_pauses}};
  return classes;
}

}  // namespace headrace::simulation
