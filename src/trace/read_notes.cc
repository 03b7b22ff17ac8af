#include "headrace/trace/read_notes.h"

namespace headrace::trace {

const char* to_string(Trouble trouble) noexcept {
  switch (trouble) {
    case Trouble::not_an_object:
      return "not an object";
    case Trouble::unreadable:
      return "not valid JSON";
    case Trouble::too_long:
      return "longer than the limit";
    case Trouble::no_phase:
      return "no phase";
    case Trouble::no_time_stamp:
      return "no time stamp";
    case Trouble::no_duration:
      return "no duration";
    case Trouble::negative_duration:
      return "negative duration";
    case Trouble::time_out_of_range:
      return "time out of range";
    case Trouble::not_a_number:
      return "not a number";
    case Trouble::number_out_of_range:
      return "number out of range";
    case Trouble::bad_escape:
      return "a text with a bad escape, kept as it stands";
    case Trouble::repaired:
      return "control characters or invalid UTF-8 in a text";
  }
  return "";
}

void ReadNotes::count(Trouble trouble, std::uint64_t offset) noexcept {
  Count& count = troubles[static_cast<std::size_t>(trouble)];
  if (count.count++ == 0) count.first_offset = offset;
}

std::uint64_t ReadNotes::skipped() const noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kTroubles; ++i)
    sum += is_skipped(static_cast<Trouble>(i)) ? troubles[i].count : 0;
  return sum;
}

bool ReadNotes::clean() const noexcept { return sentences().empty(); }

std::vector<std::string> ReadNotes::sentences() const {
  std::vector<std::string> sentences;
  if (!damage.empty()) sentences.push_back(damage);
  if (cut) sentences.push_back("the file ends " + cut_where + " at byte " + std::to_string(cut_offset));
  for (std::size_t i = 0; i < kTroubles; ++i) {
    const Count& count = troubles[i];
    if (count.count == 0) continue;
    const auto trouble = static_cast<Trouble>(i);
    std::string sentence = std::to_string(count.count);
    if (is_skipped(trouble)) {
      sentence += count.count == 1 ? " event skipped: " : " events skipped: ";
    } else if (trouble == Trouble::repaired) {
      sentence += count.count == 1 ? " event repaired: " : " events repaired: ";
    } else {
      sentence += count.count == 1 ? " field: " : " fields: ";
    }
    sentence += to_string(trouble);
    sentence += " (first at byte " + std::to_string(count.first_offset) + ")";
    sentences.push_back(std::move(sentence));
  }
  sentences.insert(sentences.end(), remarks.begin(), remarks.end());
  return sentences;
}

}  // namespace headrace::trace
