#include "headrace/loader_files/batch_records.h"

#include <algorithm>
#include <array>

#include "headrace/profile/errors.h"
#include "text_file.h"

namespace headrace::loader_files {
namespace {

constexpr std::size_t kMaxBatches = 1 << 23;
constexpr std::size_t kFewestWords = 4;
constexpr std::size_t kMaxWords = 5;
constexpr std::int64_t kTimeLine = 0;
constexpr std::int64_t kQueueLine = 1;
constexpr std::int64_t kWaitTime = 0;
constexpr std::int64_t kPushTime = 1;
constexpr std::int64_t kTotalTime = 2;

struct Line {
  std::int64_t type = 0;
  std::int64_t extra = 0;
  std::int64_t batch = 0;
  std::int64_t value = 0;
  std::optional<std::int64_t> time;
};

std::optional<Line> line_of(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  if (words.size() < kFewestWords || words.size() > kMaxWords) return std::nullopt;
  std::array<std::int64_t, kMaxWords> numbers{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::optional<std::int64_t> number = whole_number(words[i]);
    if (!number) return std::nullopt;
    numbers[i] = *number;
  }
  Line line{numbers[0], numbers[1], numbers[2], numbers[3], std::nullopt};
  if (words.size() == kMaxWords) line.time = numbers[4];
  if ((line.type != kTimeLine && line.type != kQueueLine) || line.batch < 0 || line.value < 0)
    return std::nullopt;
  return line;
}

/// Whether the record has no place for `line` any more: then it is of the next batch.
bool is_taken(const BatchRecord& record, const Line& line) {
  if (record.batch != line.batch) return true;
  if (line.type == kQueueLine) return record.level.has_value();
  if (line.extra == kWaitTime) return record.wait_ms.has_value();
  if (line.extra == kPushTime) return record.push_ms.has_value();
  return line.extra == kTotalTime && record.total_ms.has_value();
}

void add(BatchRecord& record, const Line& line) {
  const auto value = static_cast<double>(line.value);
  if (line.time) record.end_ms = static_cast<double>(*line.time);
  if (line.type == kQueueLine) {
    record.level = line.value;
    if (line.extra > 0) record.capacity = line.extra;
  } else if (line.extra == kWaitTime) {
    record.wait_ms = value;
  } else if (line.extra == kPushTime) {
    record.push_ms = value;
  } else if (line.extra == kTotalTime) {
    record.total_ms = value;
  }
}

}  // namespace

BatchRecords read_batch_records(std::string_view text, const std::string& path) {
  BatchRecords records;
  std::string_view rest = text;
  std::size_t unread = 0;
  std::size_t number = 0;
  std::size_t first_unread = 0;
  while (const std::optional<std::string_view> line = next_line(rest)) {
    ++number;
    if (line->empty()) continue;
    const std::optional<Line> read = line_of(*line);
    if (!read) {
      if (unread++ == 0) first_unread = number;
      continue;
    }
    if (records.batches.empty() || is_taken(records.batches.back(), *read)) {
      if (records.batches.size() >= kMaxBatches)
        throw FormatError(path, 0, "at most " + std::to_string(kMaxBatches) + " batches");
      records.batches.emplace_back().batch = read->batch;
    }
    add(records.batches.back(), *read);
  }
  if (records.batches.empty())
    throw FormatError(path, 0, "lines of five whole numbers: type, extra, batch, value, time");
  if (unread > 0) {
    records.notes.push_back(std::to_string(unread) + " of " + std::to_string(number) +
                            " lines of the batches' file could not be read (first: line " +
                            std::to_string(first_unread) + ")");
  }
  const bool all_timed = std::all_of(records.batches.begin(), records.batches.end(),
                                     [](const BatchRecord& each) { return each.end_ms.has_value(); });
  if (all_timed) {
    std::stable_sort(records.batches.begin(), records.batches.end(),
                     [](const BatchRecord& a, const BatchRecord& b) { return *a.end_ms < *b.end_ms; });
  }
  records.has_times = std::any_of(records.batches.begin(), records.batches.end(),
                                  [](const BatchRecord& each) { return each.end_ms && each.wait_ms; });
  return records;
}

}  // namespace headrace::loader_files
