// Cases for verdicts, as files: a profile and the answers that are right for it.
//
//     verdict_cases write FOLDER COUNT SEED    so many simulated ones of all classes, in turn; every other round of
//                                              them as recorded on a busy machine
//     verdict_cases judge FOLDER...            how many answers are right, and the wrong ones
//     verdict_cases ablate FOLDER...           which thresholds no case in these folders needs
//
//     {"kinds": ["input_bound"], "operators": ["decode"], "cause": "too_few_workers", "profile": {...}}
//
// Operators: any of these is right; "*" is any operator at all; none: not judged. The cause: "" is not judged.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "headrace/analysis/read/plausible.h"
#include "headrace/analysis/simulate/predictor.h"
#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/profile/json_fields.h"
#include "headrace/profile/profile_json.h"
#include "support/simulation/draws.h"
#include "support/simulation/labelled_lines.h"
#include "support/simulation/labelled_loaders.h"
#include "support/verdict_words.h"
#include "verdicts/each_threshold.h"

namespace headrace::analysis {
namespace {

namespace fs = std::filesystem;

struct VerdictCase {
  std::string name;
  std::set<std::string> kinds;
  std::vector<std::string> operators;
  std::string cause;
  std::unique_ptr<profile::Profile> profile;  // the predictor's
  std::unique_ptr<CachedPredictor>
      predictor;  // predictions do not depend on the thresholds: each is made once
};

/// Kind, operator and cause, as said.
struct Answer {
  std::string kind, op, cause;

  bool operator==(const Answer&) const = default;
};

Answer answer(const VerdictCase& one, const Thresholds& thresholds) {
  const Diagnosis diagnosis = diagnose(*one.predictor, thresholds);
  return {word_of(diagnosis.kind), diagnosis.op.value_or(""), word_of(diagnosis.cause)};
}

bool names_operator(const VerdictCase& one, const Answer& said) {
  return std::any_of(one.operators.begin(), one.operators.end(),
                     [&](const std::string& op) { return op == "*" ? !said.op.empty() : op == said.op; });
}

/// How much of it is right.
int points(const VerdictCase& one, const Answer& said) {
  int right = one.kinds.contains(said.kind) ? 1 : 0;
  right += names_operator(one, said) ? 1 : 0;
  right += !one.cause.empty() && one.cause == said.cause ? 1 : 0;
  return right;
}

void write(const fs::path& folder, const std::string& name, const std::set<std::string>& kinds,
           const std::string& op, const std::string& cause, const profile::Profile& profile) {
  nlohmann::json document{{"kinds", kinds}, {"cause", cause}, {"operators", nlohmann::json::array()}};
  if (!op.empty()) document["operators"].push_back(op);
  document["profile"] = nlohmann::json::parse(profile::profile_to_json(profile));
  std::ofstream(folder / (name + ".json")) << document << '\n';
}

int write_simulated(const fs::path& folder, int count, std::uint64_t seed) {
  fs::create_directories(folder);
  const auto& lines = simulation::line_classes();
  const auto& loaders = simulation::loader_classes();
  for (int made = 0; made < count; ++made, ++seed) {
    const auto at = static_cast<std::size_t>(made) % (lines.size() + loaders.size());
    simulation::Random random(seed);
    const bool blurred = made / static_cast<int>(lines.size() + loaders.size()) % 2 == 1;
    if (at < lines.size()) {
      simulation::Labelled drawn = lines[at].draw(random);
      if (blurred) {
        drawn.line.hiccups = 0.01;
        drawn.line.compute_factor = simulation::noisier(drawn.line.compute_factor);
      }
      profile::Profile recorded = simulation::simulate(drawn.line, seed);
      if (blurred) recorded = simulation::blurred(std::move(recorded), seed);
      write(folder, std::string(lines[at].name) + "_" + std::to_string(seed), drawn.kinds, drawn.op,
            drawn.cause, recorded);
    } else {
      const simulation::LoaderClass& each = loaders[at - lines.size()];
      simulation::LabelledLoader drawn = each.draw(random);
      if (blurred) drawn.loader.compute_factor = simulation::jitter(0.1);
      profile::Profile recorded = simulation::simulate(drawn.loader, seed);
      if (blurred) recorded = simulation::blurred(std::move(recorded), seed);
      write(folder, std::string(each.name) + "_" + std::to_string(seed), drawn.kinds, drawn.op, drawn.cause,
            recorded);
    }
  }
  return 0;
}

std::vector<VerdictCase> read(const std::vector<fs::path>& folders) {
  std::vector<VerdictCase> cases;
  for (const fs::path& folder : folders) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() != ".json") continue;
      std::ifstream file(entry.path());
      const nlohmann::json document = nlohmann::json::parse(file);
      VerdictCase one;
      one.name = entry.path().stem().string();
      one.kinds = document.at("kinds").get<std::set<std::string>>();
      if (document.contains("operators")) one.operators = document["operators"];
      if (document.contains("operator") && document["operator"] != "")
        one.operators.push_back(document["operator"]);
      one.cause = document.at("cause");
      one.profile =
          std::make_unique<profile::Profile>(plausible(profile::profile_from_tree(document.at("profile"))));
      one.predictor = std::make_unique<CachedPredictor>(predictor_for(*one.profile));
      cases.push_back(std::move(one));
    }
  }
  return cases;
}

struct Ablated {
  int lost = 0;     ///< points
  int changed = 0;  ///< answers
};

Ablated without(const std::vector<VerdictCase>& cases, const std::vector<Answer>& answers,
                const Thresholds& thresholds) {
  Ablated found;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Answer now = answer(cases[i], thresholds);
    found.changed += now == answers[i] ? 0 : 1;
    found.lost += points(cases[i], answers[i]) - points(cases[i], now);
  }
  return found;
}

int judge(const std::vector<fs::path>& folders) {
  int asked[3] = {0, 0, 0};
  int right[3] = {0, 0, 0};
  for (const VerdictCase& one : read(folders)) {
    const Answer said = answer(one, {});
    const bool is_bound = one.kinds.contains("input_bound") || one.kinds.contains("intermittent");
    const bool says_bound = said.kind == "input_bound" || said.kind == "intermittent";
    const bool judged[3] = {!one.kinds.empty(), !one.operators.empty() && (!is_bound || says_bound),
                            !one.cause.empty()};
    const bool good[3] = {one.kinds.contains(said.kind), names_operator(one, said), one.cause == said.cause};
    bool wrong = false;
    for (int i = 0; i < 3; ++i) {
      asked[i] += judged[i] ? 1 : 0;
      right[i] += judged[i] && good[i] ? 1 : 0;
      wrong = wrong || (judged[i] && !good[i]);
    }
    if (!wrong) continue;
    std::string expected = one.cause;
    for (const std::string& op : one.operators) expected = op + " " + expected;
    std::printf("%s: %s %s %s, expected %s %s\n", one.name.c_str(), said.kind.c_str(), said.op.c_str(),
                said.cause.c_str(), one.kinds.empty() ? "" : one.kinds.begin()->c_str(), expected.c_str());
  }
  const char* names[3] = {"kind", "operator", "cause"};
  for (int i = 0; i < 3; ++i) std::printf("%-10s%d of %d\n", names[i], right[i], asked[i]);
  return 0;
}

int ablate(const std::vector<fs::path>& folders) {
  const std::vector<VerdictCase> cases = read(folders);
  std::vector<Answer> answers;
  int right = 0;
  for (const VerdictCase& one : cases) {
    answers.push_back(answer(one, {}));
    right += points(one, answers.back());
  }
  std::printf("%zu cases, %d points\n", cases.size(), right);
  std::printf("%-36s%22s%22s%22s%22s\n", "points lost (answers changed)", "x 0", "x 0.5", "x 2", "x 10^6");
  int needed = 0;
  const std::vector<std::string> names = threshold_names();
  for (const std::string& name : names) {
    std::printf("%-36s", name.c_str());
    bool matters = false;
    for (const double factor : {0.0, 0.5, 2.0, 1e6}) {
      const Ablated found = without(cases, answers, moved(name, factor));
      matters = matters || found.lost > 0;
      std::printf("%15d (%4d)", found.lost, found.changed);
      std::fflush(stdout);
    }
    std::printf("%s\n", matters ? "" : "  no case needs it");
    needed += matters ? 1 : 0;
  }
  std::printf("%d of %zu thresholds are needed by a case\n\n", needed, names.size());
  // Off one after the other, and kept off where no answer changes: what is left is what these cases need.
  Thresholds together;
  std::printf("off together, without another answer:\n");
  for (const std::string& name : names) {
    for (const double factor : {0.0, 1e6}) {
      Thresholds tried = together;
      each_threshold(tried, [&](const char* each, double& value) { value *= name == each ? factor : 1; });
      if (without(cases, answers, tried).changed > 0) continue;
      together = tried;
      std::printf("  %s (x %g)\n", name.c_str(), factor);
      std::fflush(stdout);
      break;
    }
  }
  return 0;
}

}  // namespace
}  // namespace headrace::analysis

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 4 && arguments[0] == "write") {
    return headrace::analysis::write_simulated(arguments[1], std::stoi(arguments[2]),
                                               std::stoull(arguments[3]));
  }
  const std::vector<std::filesystem::path> folders(arguments.begin() + (arguments.empty() ? 0 : 1),
                                                   arguments.end());
  if (!folders.empty() && arguments[0] == "judge") return headrace::analysis::judge(folders);
  if (!folders.empty() && arguments[0] == "ablate") return headrace::analysis::ablate(folders);
  std::fprintf(stderr, "usage: verdict_cases write FOLDER COUNT SEED, or judge or ablate FOLDER...\n");
  return 2;
}
