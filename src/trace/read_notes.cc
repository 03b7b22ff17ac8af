#include "headrace/trace/read_notes.h"

namespace headrace::trace {

const char* to_string(ReadProblem problem) noexcept {
  constexpr std::array<const char*, kReadProblems> kTexts = {
      "not an object",
      "not valid JSON",
      "longer than the limit",
      "no phase",
      "no time stamp",
      "no duration",
      "negative duration",
      "time out of range",
      "not a number",
      "number out of range",
      "a text with a bad escape, kept as it stands",
      "control characters or invalid UTF-8 in a text",
  };
  return kTexts[static_cast<std::size_t>(problem)];
}

void ReadNotes::count(ReadProblem problem, std::uint64_t offset) noexcept {
  Count& count = problems[static_cast<std::size_t>(problem)];
  if (count.count++ == 0) count.first_offset = offset;
}

std::uint64_t ReadNotes::skipped() const noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kReadProblems; ++i)
    sum += is_skipped(static_cast<ReadProblem>(i)) ? problems[i].count : 0;
  return sum;
}

bool ReadNotes::clean() const noexcept { return sentences().empty(); }

std::vector<std::string> ReadNotes::sentences() const {
  std::vector<std::string> sentences;
  if (!damage.empty()) sentences.push_back(damage);
  if (cut) sentences.push_back("the file ends " + cut_where + " at byte " + std::to_string(cut_offset));
  for (std::size_t i = 0; i < kReadProblems; ++i) {
    const Count& count = problems[i];
    if (count.count == 0) continue;
    const auto problem = static_cast<ReadProblem>(i);
    std::string sentence = std::to_string(count.count);
    if (is_skipped(problem)) {
      sentence += count.count == 1 ? " event skipped: " : " events skipped: ";
    } else if (problem == ReadProblem::repaired) {
      sentence += count.count == 1 ? " event repaired: " : " events repaired: ";
    } else {
      sentence += count.count == 1 ? " field: " : " fields: ";
    }
    sentence += to_string(problem);
    sentence += " (first at byte " + std::to_string(count.first_offset) + ")";
    sentences.push_back(std::move(sentence));
  }
  sentences.insert(sentences.end(), remarks.begin(), remarks.end());
  return sentences;
}

}  // namespace headrace::trace
