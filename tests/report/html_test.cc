#include "headrace/report/html.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <regex>

#include "headrace/analysis/verdict/diagnose.h"
#include "report/markup_reader.h"
#include "report/profiles.h"

namespace headrace::report {
namespace {

using profile::Profile;

std::string page_of(const Profile& profile, HtmlOptions options = {}) {
  return to_html(profile, analysis::diagnose(profile), options);
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++count;
  return count;
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Well-formed, and nothing in it that loads, runs or is no figure.
void check_page(const std::string& page) {
  const MarkupReading reading = read_markup(page);
  EXPECT_EQ(reading.error, "");
  for (const char* foreign :
       {"http://", "https://", "<script", "<img", "<iframe", "url(", "@import", "src=\""}) {
    EXPECT_FALSE(holds(page, foreign)) << foreign;
  }
  static const std::regex not_a_figure(R"((^|[^A-Za-z_])-?(nan|inf)([^A-Za-z_]|$))", std::regex::icase);
  for (const std::string& attribute : reading.attributes) {
    // Handlers would run, links would lead away.
    EXPECT_FALSE(attribute.starts_with("on")) << attribute;
    EXPECT_TRUE(!attribute.starts_with("href=") || attribute == "href=data:,") << attribute;
    EXPECT_FALSE(std::regex_search(attribute, not_a_figure)) << attribute;
  }
  std::smatch found;
  EXPECT_FALSE(std::regex_search(reading.text, found, not_a_figure)) << found.str();
}

analysis::Advice change(const std::string& parameter, analysis::ParameterValue from,
                        analysis::ParameterValue to) {
  analysis::Advice advice;
  advice.parameter = parameter;
  advice.from = std::move(from);
  advice.to = std::move(to);
  return advice;
}

/// A diagnosis with two alternatives, the first one with everything.
analysis::Diagnosis advised() {
  analysis::Diagnosis diagnosis = analysis::diagnose(decode_limits());
  analysis::Advice workers = change("decode.workers", 1, 4);
  workers.text = "run decode with 4 workers";
  workers.predicted_step_s = 0.0125;
  workers.low = 0.011;
  workers.high = 0.014;
  workers.speedup = 3.2;
  workers.memory_bytes = 2.5e9;
  analysis::Advice cache;
  cache.text = "cache what decode makes";
  cache.predicted_step_s = 0.02;
  cache.speedup = 2;
  cache.after = {"decode.workers=4"};
  diagnosis.advice = {workers, cache};
  diagnosis.next_bottleneck = "sink";
  return diagnosis;
}

TEST(Html, ShowsHowLongItemsTakeUnlessThatIsNotKnown) {
  Profile profile = decode_limits();
  for (profile::OperatorProfile& op : profile.operators) op.service.count = 100;
  profile.operators[1].service = {100, 0.04, 0.03, 0.05, 0.2, 0.19};
  std::string page = page_of(profile);
  check_page(page);
  EXPECT_TRUE(
      holds(page, "decode: half within 30.0 ms, 90 % within 50.0 ms, 99 % within 200 ms, longest 190 ms"));
  EXPECT_EQ(count_of(page, "class=\"service\""), 3U);
  // A histogram that cannot be, and one of an operator that was not timed.
  profile.operators[1].service.p90_s = 0.001;
  profile.operators[2].service.count = 0;
  page = page_of(profile);
  check_page(page);
  EXPECT_EQ(count_of(page, "class=\"service\""), 1U);
}

TEST(Html, VerdictAndAdviceComeFirst) {
  const std::string page = page_of(decode_limits());
  check_page(page);
  std::size_t before = 0;
  for (const char* part :
       {"<!doctype html>", "Content-Security-Policy", "train_loader", "2 epochs", "INPUT-BOUND",
        "decode has too few workers", "waited 30.0 ms of 40.0 ms", "Do this", "decode.workers",
        "An average step: 40.0 ms", "The pipeline", "How full the queues were", "What the workers did",
        "What the wait was for", "Evidence", "Machine and settings", "All figures"}) {
    const std::size_t at = page.find(part, before);
    ASSERT_NE(at, std::string::npos) << part;
    before = at;
  }
}

TEST(Html, PartsOfTheStepStandBelowItWhereHooksTold) {
  Profile profile = decode_limits();
  EXPECT_FALSE(holds(page_of(profile), "A step: gap"));
  profile.sink.marked = profile::MarkedSteps{900, 1000, 900, 0.031, 0.007, 0.002};
  const std::string page = page_of(profile);
  check_page(page);
  EXPECT_TRUE(holds(page, "A step: gap 31.0 ms, forward and backward 7.00 ms, tail 2.00 ms"));
  EXPECT_TRUE(holds(page, "900 of 1000 steps"));
}

TEST(Html, PartsOfTheStepAreThoseOfTheDeviceWhereATraceTells) {
  Profile profile = decode_limits();
  profile.device = profile::DeviceProfile{};
  profile.device->steps = profile::DeviceSteps{6, 6, 6, 0.0614, 0.114, 0.0019, 0, 0, {}, {}, "", "", {}};
  const std::string page = page_of(profile);
  check_page(page);
  EXPECT_TRUE(
      holds(page, "A step: gap 61.4 ms, forward and backward 114 ms, tail 1.90 ms (device trace, 6 steps)"));
  EXPECT_FALSE(holds(page, "Parts of a step"));
  profile.device->steps.reset();
  profile.device->step_notes = {"rank 3 has <no> steps"};
  const std::string without = page_of(profile);
  check_page(without);
  EXPECT_TRUE(
      holds(without, "Parts of a step: the device trace tells no parts (rank 3 has &lt;no&gt; steps); "));
}

TEST(Html, AdviceStandsBesideTodayWithItsInterval) {
  const std::string page = to_html(decode_limits(), advised());
  check_page(page);
  EXPECT_TRUE(holds(page, "aria-label=\"today 40.0 ms\""));
  EXPECT_TRUE(holds(page, "aria-label=\"predicted 12.5 ms (11.0 to 14.0 ms)\""));
  EXPECT_EQ(count_of(page, "class=\"whisker\""), 1u);  // the second one has no interval
  EXPECT_TRUE(holds(page, "3.20× as fast"));
  EXPECT_TRUE(holds(page, "Then the limit is the training step."));
  EXPECT_EQ(count_of(page, "2.5 GB"), 0u);  // what it costs is in the advice's own sentence
  EXPECT_TRUE(holds(page, "Cache what decode makes"));
  EXPECT_TRUE(holds(page, "After decode.workers=4."));
}

TEST(Html, PictureOfTheStepIsToScale) {
  Profile profile = decode_limits();
  profile.sink.starved_share = 0.5;
  const std::string page = page_of(profile);
  EXPECT_TRUE(holds(
      page, R"(<rect class="starved" x="0" y="0" width="500" height="10"><title>starved 20.0 ms, 50 %)"));
  EXPECT_TRUE(holds(
      page, R"(<rect class="floor" x="500" y="0" width="250" height="10"><title>hand-off 10.0 ms, 25 %)"));
  EXPECT_TRUE(holds(
      page, R"(<rect class="compute" x="750" y="0" width="250" height="10"><title>compute 10.0 ms, 25 %)"));
}

TEST(Html, EveryFigureIsText) {
  Profile profile = decode_limits();
  profile.operators[1].failures = 7;
  profile.operators[1].service = {1000, 0.0401, 0.0402, 0.0403, 0.0404, 0.0405};
  profile.queues[1].puts = 12345;
  profile.queues[1].put_wait_s = 1.23;
  profile.host.memory = 64'000'000;
  profile.host.gil_share = 0.31;
  profile.operators[1].per_worker.emplace_back();
  profile.operators[1].per_worker.front().slowest = {{4711, 0.0777, 0.05}};
  const std::string text = read_markup(page_of(profile)).text;
  for (const char* figure : {"40.0 ms", "30.0 ms, 75 %",
                             "1.50 s",  "40.1 ms",
                             "40.2 ms", "40.3 ms",
                             "40.4 ms", "40.5 ms",
                             "\n7\n",   "12345",
                             "1.23 s",  "64 MB",
                             "31 %",    "empty 90 %, full 0 %",
                             "28.0 ms", "93 %",
                             "4711",    "77.7 ms",
                             "32.0 ms", "decode.workers=1",
                             "0.75"}) {
    EXPECT_TRUE(holds(text, figure)) << figure;
  }
}

TEST(Html, BottleneckIsMarkedOnceInTheGraph) {
  const std::string page = page_of(decode_limits());
  EXPECT_EQ(count_of(page, "class=\"box bottleneck\""), 1u);
  const std::size_t box = page.find("class=\"box bottleneck\"");
  EXPECT_LT(page.find(">decode<", box), page.find("</ul>", box));
}

TEST(Html, HealthyRunAsksForNothing) {
  const std::string page = page_of(healthy());
  check_page(page);
  EXPECT_TRUE(holds(page, "NOT INPUT-BOUND"));
  EXPECT_TRUE(holds(page, "The input could feed steps down to 20.0 ms"));
  EXPECT_FALSE(holds(page, "Do this"));
  EXPECT_FALSE(holds(page, "box bottleneck"));
}

TEST(Html, EmptyRunSaysWhatIsMissing) {
  const std::string page = page_of(Profile{});
  check_page(page);
  EXPECT_TRUE(holds(page, "UNDETERMINED"));
  EXPECT_TRUE(holds(page, "the loop over this loader has not begun"));
  EXPECT_FALSE(holds(page, "class=\"confidence\""));
  EXPECT_FALSE(holds(page, "<svg"));
}

TEST(Html, OperatorsStandInTheOrderOfTheFlow) {
  const std::string page = page_of(decode_limits());
  std::size_t before = page.find("<ol class=\"flow\">");
  for (const char* part :
       {">read<", ">raw<", ">decode<", ">decoded<", ">batch<", ">ready<", ">training step<"}) {
    const std::size_t at = page.find(part, before);
    ASSERT_NE(at, std::string::npos) << part;
    before = at;
  }
  EXPECT_FALSE(holds(page, "class=\"ends\""));  // the place of every queue tells its ends
}

TEST(Html, BranchesSayWhereTheirQueuesLead) {
  Profile profile = decode_limits();
  profile.operators[1].kind = "source";
  profile.queues[0].to = "batch";  // read and decode feed batch side by side
  profile.queues[0].to_operators = {2};
  const std::string page = page_of(profile);
  check_page(page);
  EXPECT_TRUE(holds(page, "read → batch"));
  EXPECT_TRUE(holds(page, "decode → batch"));
  EXPECT_EQ(count_of(page, "class=\"stage\""), 3u);
}

TEST(Html, QueuesThatLeadBackAreDrawn) {
  Profile profile = decode_limits();
  profile::QueueProfile back = profile.queues[2];
  back.name = "free buffers";
  back.from = "batch";
  back.from_operators = {2};
  back.to = "read";
  back.to_operators = {0};
  profile.queues.push_back(back);
  const std::string page = page_of(profile);
  check_page(page);
  EXPECT_TRUE(holds(page, "batch → read"));
  EXPECT_EQ(count_of(page, "class=\"stage\""), 4u);
}

TEST(Html, OperatorsOfOneWorkerAreOneBox) {
  const std::string page = page_of(in_workers(4));
  check_page(page);
  EXPECT_EQ(count_of(page, "class=\"stage\""), 2u);  // the workers, the training step
  EXPECT_TRUE(holds(page, "index (4 queues)"));
  EXPECT_TRUE(holds(page, "num_workers=24, prefetch_factor=2, batch_size=8"));
  EXPECT_TRUE(holds(page, "64 MB through a pipe"));
}

TEST(Html, SamplerStandsBeforeTheWorkersThatTakeItsIndices) {
  Profile profile = in_workers(4);
  profile::OperatorProfile sampler = profile.operators[0];
  sampler.name = "HardExamples";
  sampler.kind = "sampler";
  sampler.segment = -1;
  sampler.in_sink = true;
  profile.operators.insert(profile.operators.begin(), sampler);
  const std::string page = page_of(profile);
  EXPECT_EQ(count_of(page, "class=\"stage\""), 3u);
  const std::size_t flow = page.find("<ol class=\"flow\">");
  EXPECT_LT(page.find(">HardExamples<", flow), page.find(">index (4 queues)<", flow));
  EXPECT_LT(page.find(">index (4 queues)<", flow), page.find(">read<", flow));
}

TEST(Html, EachOfManyWorkersHasItsRow) {
  const std::string page = page_of(in_workers(64));
  check_page(page);
  EXPECT_TRUE(holds(page, "64 worker processes"));
  EXPECT_TRUE(holds(page, ">worker 0<"));
  EXPECT_TRUE(holds(page, ">worker 63<"));
  EXPECT_TRUE(holds(page, "index (64 queues)"));
}

TEST(Html, WorkerIsBusyInAnyOfItsOperators) {
  Profile profile = in_workers(2);
  for (std::size_t i = 0; i < 3; ++i) {
    for (profile::WorkerProfile& worker : profile.operators[i].per_worker) {
      // To each of them its siblings' work is a wait.
      worker.states = {i == 1 ? 0.8 : 0.05, i == 0 ? 0.0 : 0.85, i == 2 ? 0.1 : 0.95, 0};
    }
  }
  EXPECT_TRUE(
      holds(page_of(profile), "aria-label=\"busy 90 %, waits for input 0 %, blocked 10 %, idle 0 %\""));
}

TEST(Html, DifferentVerdictsAreMarkedInTime) {
  Profile profile = decode_limits();
  for (int i = 0; i < 4; ++i) {
    profile::Window window;
    window.start_s = i;
    window.end_s = i + 1;
    window.steps = 25;
    window.wait_s = 0.5;
    window.starved_s = 0.4;
    window.compute_s = 0.5;
    profile.windows.push_back(window);
  }
  analysis::Diagnosis diagnosis = analysis::diagnose(profile);
  diagnosis.windows = {{0, 2, analysis::VerdictKind::input_bound, "read"},
                       {2, 4, analysis::VerdictKind::not_input_bound, {}}};
  const std::string page = to_html(profile, diagnosis);
  check_page(page);
  EXPECT_TRUE(holds(page, R"(style="left:0.00%;width:50.00%")"));
  EXPECT_TRUE(holds(page, "waits for read"));
  EXPECT_TRUE(holds(page, "does not wait"));
  EXPECT_TRUE(holds(page, "25 steps, waited 50 %, starved 40 %"));
}

TEST(Html, RanksStandSideBySide) {
  Profile profile = decode_limits();
  EXPECT_FALSE(holds(page_of(profile), "The ranks"));
  profile.rank = 1;
  profile::RankFigures other;
  other.step_s = 0.08;
  other.wait_share = 0.5;
  other.starved_share = 0.25;
  other.op = "resize";
  profile.ranks = {other};
  const std::string page = page_of(profile);
  check_page(page);
  const std::size_t first = page.find("aria-label=\"rank 0: 80.0 ms a step, waits 50 %\"");
  ASSERT_NE(first, std::string::npos);
  EXPECT_NE(page.find(R"(<rect class="starved" x="0" y="0" width="250")", first), std::string::npos);
  EXPECT_GT(page.find(">rank 1, this one<"), first);
  EXPECT_TRUE(holds(page, ">resize<"));
}

TEST(Html, LargeQueuesAreCountedInBins) {
  Profile profile = decode_limits();
  profile.queues[1].capacity = 10000;
  profile.queues[1].occupancy.assign(10001, 1.0 / 10001);
  const std::string page = page_of(profile);
  check_page(page);
  EXPECT_TRUE(holds(page, "<title>levels 0 to 312: 3.1 %</title>"));
  EXPECT_TRUE(holds(page, " to 10000: 3.1 %</title>"));
  profile.queues[1].occupancy.assign(101, 1.0 / 101);
  profile.queues[1].levels_per_bin = 100;
  EXPECT_TRUE(holds(page_of(profile), " to 10000: 3.0 %</title>"));
}

TEST(Html, HostileNamesAreSafe) {
  const std::string names[] = {"a\nb\r\tc",
                               "\x1b[31mred\x1b[0m",
                               std::string(10000, 'x'),
                               "</script><script>alert(1)</script>",
                               "\" onmouseover=\"alert(1)",
                               "' autofocus onfocus='alert(1)",
                               "</style></title><img src=x onerror=alert(1)>",
                               "&lt;b&gt; &amp; & &#60;",
                               "--><!-- ]]> <![CDATA[",
                               "\xff\xfe",
                               "\u202Eevil\u2066",
                               std::string("a\0b", 3),
                               "解码解码解码解码解码解码解码解码解码解码解码解码解码解码解码解码",
                               std::string(10000, '\n'),
                               "e" + std::string(3000, '\xcc'),
                               ""};
  for (const std::string& name : names) {
    Profile profile = in_workers(3);
    profile.loader = name;
    for (std::size_t i : {0u, 1u}) profile.operators[i].name = name;
    profile.operators[1].kind = name;
    profile.operators[1].executor = name;
    profile.operators[1].parameters[0].parameter = name + ".workers";
    profile.operators[1].per_worker[0].name = profile.operators[1].per_worker[0].shard = name;
    profile.queues[1].name = profile.queues[1].from = profile.queues[0].to = name;
    profile.stall_ledger[0].op = name;
    profile.stall_ledger[0].what = name;
    profile.settings.push_back({name, name});
    profile.notes = {name};
    profile.windows.resize(3);
    for (std::size_t i = 0; i < 3; ++i) {
      profile.windows[i].start_s = static_cast<double>(i);
      profile.windows[i].end_s = static_cast<double>(i) + 1;
      profile.windows[i].steps = 1;
    }
    analysis::Diagnosis diagnosis = analysis::diagnose(profile);
    diagnosis.op = name;
    diagnosis.windows = {{0, 1, analysis::VerdictKind::input_bound, name}};
    analysis::Advice advice = change(name, name, name);
    advice.text = advice.then_limit = name;
    advice.after = {name};
    advice.predicted_step_s = advice.low = advice.high = 0.01;
    diagnosis.advice = {advice};
    for (const bool whole_page : {true, false}) {
      const std::string page = to_html(profile, diagnosis, {whole_page});
      check_page(page);
      EXPECT_LT(page.size(), 200'000u);
      EXPECT_FALSE(holds(page, "\u202E"));
    }
  }
}

TEST(Html, LongNamesAreShortInPicturesAndWholeInTables) {
  Profile profile = decode_limits();
  const std::string name = std::string(300, 'n') + "end";
  profile.operators[0].name = name;
  const std::string page = page_of(profile);
  EXPECT_TRUE(holds(page, "<td>" + name + "</td>"));
  EXPECT_TRUE(holds(page, "<span class=\"name\">" + std::string(39, 'n') + "…</span>"));
}

TEST(Html, FiguresThatAreNoneDoNotReachThePage) {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity(), 1e300, -1.0}) {
    Profile profile = in_workers(3);
    profile.elapsed_s = profile.sink.step_s = profile.sink.compute_s = bad;
    profile.sink.wait_share = profile.sink.starved_share = profile.sink.handoff_floor_s = bad;
    profile.sink.compute_cpu_s = profile.sink.quiet_compute_s = bad;
    profile.sink.marked = profile::MarkedSteps{1, 2, 1, bad, bad, bad};
    profile.sink.getnext_wait = {10, bad, bad, bad, bad, bad};
    profile.startup = {bad, bad, bad};
    for (profile::OperatorProfile& op : profile.operators) {
      op.demand_s = op.busy_s = op.items_per_batch = bad;
      op.cpu_s = bad;
      op.states = {bad, bad, bad, bad};
      op.service = {1, bad, bad, bad, bad, bad};
      for (profile::WorkerProfile& worker : op.per_worker) worker.states = {bad, bad, bad, bad};
    }
    for (profile::QueueProfile& queue : profile.queues) {
      queue.mean = queue.empty_share = queue.full_share = bad;
      queue.occupancy.assign(3, bad);
    }
    for (profile::LedgerRow& row : profile.stall_ledger) row.seconds = row.share = bad;
    profile.windows.resize(3);
    for (profile::Window& window : profile.windows) {
      window.start_s = window.end_s = window.wait_s = window.starved_s = bad;
      window.steps = 1;
      window.operators = {{bad, bad, 1}};
      window.queues = {{bad, bad, bad}};
      window.host.cpu_share = bad;
    }
    profile.host.cpu_share = profile.host.process_cpu_cores = bad;
    profile.ranks = {{0, 10, bad, bad, bad, bad, bad, "decode"}, {1, 10, 0.1, bad, bad, bad, bad, ""}};
    profile.handoff->message_bytes = profile.handoff->tensors = profile.handoff->pickle_s = bad;
    analysis::Diagnosis diagnosis;
    diagnosis.kind = analysis::VerdictKind::input_bound;
    diagnosis.confidence = diagnosis.share_of_step = bad;
    diagnosis.headroom_step_s = bad;
    diagnosis.evidence = {{analysis::Rule::gate, "it waited", {{"wait_s", bad}}}};
    diagnosis.advice = {change("num_workers", 1, 2)};
    analysis::Advice& advice = diagnosis.advice.front();
    advice.predicted_step_s = advice.low = advice.high = advice.speedup = advice.memory_bytes = bad;
    diagnosis.windows = {{bad, bad, analysis::VerdictKind::input_bound, "decode"}};
    check_page(to_html(profile, diagnosis));
  }
}

TEST(Html, MoreThanCanBeDrawnIsCounted) {
  Profile profile = decode_limits();
  for (int i = 0; i < 500; ++i) {
    profile.operators.push_back(profile.operators[0]);
    profile.operators.back().name = "extra" + std::to_string(i);
    profile.operators.back().per_worker.resize(20);
    profile.queues.push_back(profile.queues[2]);
    profile.queues.back().name = "spare" + std::to_string(i);
  }
  profile.operators[0].per_worker.resize(300);
  profile.windows.resize(5000);
  for (std::size_t i = 0; i < profile.windows.size(); ++i) {
    profile.windows[i].start_s = static_cast<double>(i);
    profile.windows[i].end_s = static_cast<double>(i) + 1;
    profile.windows[i].steps = 1;
    profile.windows[i].operators.resize(profile.operators.size());
  }
  const std::string page = page_of(profile);
  check_page(page);
  EXPECT_LT(page.size(), 3'000'000u);
  EXPECT_TRUE(holds(page, "and 439 more operators"));
  EXPECT_TRUE(holds(page, "and 439 more queues"));
  EXPECT_TRUE(holds(page, "and 236 quicker workers"));
}

TEST(Html, NotebookCellLeavesTheNotebookAlone) {
  const std::string cell = page_of(decode_limits(), {.whole_page = false});
  check_page(cell);
  EXPECT_TRUE(cell.starts_with("<div class=\"headrace\">"));
  for (const std::string& element : read_markup(cell).elements) {
    EXPECT_TRUE(element != "html" && element != "head" && element != "body" && element != "meta" &&
                element != "link")
        << element;
  }
  // One rule for .headrace; all others stand in it.
  const std::size_t begin = cell.find("<style>") + std::string("<style>\n").size();
  const std::string style = cell.substr(begin, cell.find("</style>") - begin);
  EXPECT_TRUE(style.starts_with(".headrace {")) << style.substr(0, 40);
  int depth = 0;
  std::size_t closed = 0;
  for (std::size_t i = 0; i < style.size() && closed == 0; ++i) {
    depth += style[i] == '{' ? 1 : style[i] == '}' ? -1 : 0;
    if (style[i] == '}' && depth == 0) closed = i;
  }
  EXPECT_EQ(style.find_first_not_of(" \n", closed + 1), std::string::npos);
  EXPECT_FALSE(holds(style, ":root"));
}

TEST(Html, BudgetAndTokens) {
  Profile profile = decode_limits();
  profile::BudgetPart part;
  part.part = "evaluation";
  part.function = "<lambda> (train.py:3)";
  part.seconds = part.share = 1;
  part.times = 2;
  profile.budget = {part};
  profile.tokens.emplace().lengths = {{64, 0.5}, {128, 0.5}};
  const std::string page = page_of(profile);
  check_page(page);
  EXPECT_TRUE(holds(page, "&lt;lambda&gt; (train.py:3), 2 times"));
  EXPECT_TRUE(holds(page, "up to 128 tokens"));
}

TEST(Html, WhatWasSetWhileItTrained) {
  Profile profile = decode_limits();
  profile::ParameterChange change;
  change.parameter = "<workers>";
  change.outcome = "put_back";
  change.low = change.high = std::numeric_limits<double>::quiet_NaN();
  profile.autopilot = {change};
  const std::string page = page_of(profile);
  check_page(page);
  EXPECT_TRUE(holds(page, "&lt;workers&gt;  -&gt;  (step 0): put back"));
}

TEST(Html, Findings) {
  Profile profile = decode_limits();
  profile::Finding finding;
  finding.kind = "constant_samples";
  finding.severity = "fault";
  finding.says = "batch['<image>'] has one value all over";
  finding.cure = "Look at it";
  profile.findings = {finding};
  const std::string page = page_of(profile);
  check_page(page);
  EXPECT_TRUE(holds(page, "fault: constant_samples"));
  EXPECT_TRUE(holds(page, "batch[&#39;&lt;image&gt;&#39;] has one value all over. Look at it.") ||
              holds(page, "batch['&lt;image&gt;'] has one value all over. Look at it."));
}

TEST(Html, SecondOpinionsAndAbsentFigures) {
  Profile profile = decode_limits();
  profile.second_opinions = {{"Tool", "a rule", "says <this>", "read", "it looked at averages"}};
  profile.operators[0].demand_s = profile.operators[0].busy_s = profile.operators[0].items_per_batch = -1;
  profile.operators[0].items.reset();
  profile.queues[0].puts.reset();
  profile.device.emplace().idle_s = -1;
  profile.device->steps =
      profile::DeviceSteps{6, 6, 6, 0.004, 0.03, 0.001, 0.002, -1, {}, {}, "Conv", "", {}};
  const std::string page = page_of(profile);
  check_page(page);
  EXPECT_TRUE(holds(page, "Second opinions"));
  EXPECT_TRUE(holds(page, "says &lt;this&gt; Misled: it looked at averages."));
  EXPECT_TRUE(holds(page, "Forward begins with Conv"));
}

}  // namespace
}  // namespace headrace::report
