// Cases for verdicts, as files: a profile and the answers that are right for it.
//
//     verdict_cases write FOLDER COUNT SEED    so many simulated ones of all classes, in turn
//     verdict_cases ablate FOLDER...           which thresholds no case in these folders needs
//
//     {"kinds": ["input_bound"], "operators": ["decode"], "cause": "too_few_workers", "profile": {...}}
//
// Operators: any of these is right; "*" is any operator at all; none: not judged. The cause: "" is not judged.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/analysis/diagnosis/diagnose.h"
#include "headrace/analysis/diagnosis/plausible.h"
#include "headrace/profile/json_fields.h"
#include "headrace/profile/profile_json.h"
#include "support/simulation/labelled_lines.h"
#include "support/simulation/labelled_loaders.h"
#include "support/verdict_words.h"
#include "verdicts/each_threshold.h"
#include "verdicts/remembering.h"

namespace headrace::analysis {
namespace {

namespace fs = std::filesystem;

struct VerdictCase {
  std::string name;
  std::set<std::string> kinds;
  std::vector<std::string> operators;
  std::string cause;
  std::unique_ptr<profile::Profile> profile;  // the predictor's
  std::unique_ptr<Remembering> predictor;
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

/// How much of it is right.
int points(const VerdictCase& one, const Answer& said) {
  const auto names = [&](const std::string& op) { return op == "*" ? !said.op.empty() : op == said.op; };
  int right = one.kinds.contains(said.kind) ? 1 : 0;
  right += std::any_of(one.operators.begin(), one.operators.end(), names) ? 1 : 0;
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
    if (at < lines.size()) {
      const simulation::Labelled drawn = lines[at].draw(random);
      write(folder, std::string(lines[at].name) + "_" + std::to_string(seed), drawn.kinds, drawn.op,
            drawn.cause, simulation::simulate(drawn.line, seed));
    } else {
      const simulation::LoaderClass& each = loaders[at - lines.size()];
      const simulation::LabelledLoader drawn = each.draw(random);
      write(folder, std::string(each.name) + "_" + std::to_string(seed), drawn.kinds, drawn.op, drawn.cause,
            simulation::simulate(drawn.loader, seed));
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
      one.predictor = std::make_unique<Remembering>(*one.profile);
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
  std::printf("%d of %zu thresholds are needed by a case\n", needed, names.size());
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
  if (arguments.size() >= 2 && arguments[0] == "ablate")
    return headrace::analysis::ablate({arguments.begin() + 1, arguments.end()});
  std::fprintf(stderr, "usage: verdict_cases write FOLDER COUNT SEED | verdict_cases ablate FOLDER...\n");
  return 2;
}
