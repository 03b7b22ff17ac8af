#include "headrace/loader_files/collectives_file.h"

#include <cmath>
#include <limits>

#include "headrace/profile/errors.h"
#include "json_document.h"
#include "text_file.h"
#include "units.h"

namespace headrace::loader_files {
namespace {

constexpr double kKilobyte = 1e3;
/// Links and operators of all steps together; a job of 1024 ranks has some thousand links a step.
constexpr std::size_t kMaxLinks = 1 << 22;

class CollectivesReader {
 public:
  CollectivesReader(std::string_view text, const std::string& path)
      : rows_(rows_of(text, path)), path_(path) {}

  CollectivesFile read() {
    const Row names = rows_.empty() ? Row{} : rows_.front();
    const Heading heading(names);
    if (heading.place("step_num") < 0 || heading.place("communication_cost") < 0 ||
        heading.place("wait_cost") < 0)
      throw FormatError(path_, 0,
                        "a table of collectives with the columns step_num, communication_cost and wait_cost");
    for (std::size_t i = 1; i < rows_.size(); ++i) add_row(heading, rows_[i], i + 1 == rows_.size());
    if (left_out_ > 0)
      file_.notes.push_back(std::to_string(left_out_) + " rows of collectives could not be read");
    if (unread_ > 0)
      file_.notes.push_back("the links or operators of " + std::to_string(unread_) +
                            " rows of collectives could not be read");
    if (file_.steps.empty() && !file_.average)
      throw FormatError(path_, 0, "at least one step below the heading");
    to_seconds();
    return std::move(file_);
  }

 private:
  void add_row(const Heading& heading, const Row& row, bool is_last) {
    const std::string_view step_num = heading.value(row, "step_num");
    const std::optional<std::int64_t> step = whole_number(step_num);
    const std::optional<double> communication = number(heading.value(row, "communication_cost"));
    const std::optional<double> wait = number(heading.value(row, "wait_cost"));
    const bool is_average = is_last && step_num == "-";
    if ((!step && !is_average) || !communication || !wait || *communication < 0 || *wait < 0) {
      ++left_out_;
      return;
    }
    CollectivesStep read;
    read.number = step.value_or(0);
    read.cost.communication_s = *communication;
    read.cost.wait_s = *wait;
    const std::string_view links = heading.value(row, "link_info");
    const std::string_view operators = heading.value(row, "communication_operator_cost");
    try {
      if (!links.empty()) read.cost.links = links_of(JsonDocument(links, path_).root());
      if (!operators.empty()) read.operators = operators_of(JsonDocument(operators, path_));
    } catch (const FormatError&) {
      ++unread_;
    }
    if (is_average) {
      file_.average = std::move(read);
    } else {
      file_.steps.push_back(std::move(read));
    }
  }

  void count_entry() {
    if (++entries_ > kMaxLinks)
      throw Error(path_ + ": more than " + std::to_string(kMaxLinks) + " links and operators");
  }

  /// {"1-0": {"SDMA": [time, size, bandwidth, wait]}}
  std::vector<LinkUse> links_of(Json of) {
    std::vector<LinkUse> uses;
    simdjson::dom::object links;
    if (of.get(links) != simdjson::SUCCESS) return uses;
    for (const simdjson::dom::key_value_pair link : links) {
      const std::size_t dash = link.key.find('-');
      const std::optional<std::int64_t> source = whole_number(link.key.substr(0, dash));
      const std::optional<std::int64_t> destination =
          dash == std::string_view::npos ? std::nullopt : whole_number(link.key.substr(dash + 1));
      simdjson::dom::object types;
      if (!source || !destination || link.value.get(types) != simdjson::SUCCESS) continue;
      for (const simdjson::dom::key_value_pair type : types) {
        std::optional<LinkUse> use = link_of(type.value);
        if (!use) continue;
        count_entry();
        use->source = *source;
        use->destination = *destination;
        use->type = std::string(type.key);
        uses.push_back(std::move(*use));
      }
    }
    return uses;
  }

  std::optional<LinkUse> link_of(Json value) {
    simdjson::dom::array figures;
    if (value.get(figures) != simdjson::SUCCESS || figures.size() < 3) return std::nullopt;
    const auto at = [&](std::size_t i) {
      Json figure;
      return figures.at(i).get(figure) == simdjson::SUCCESS ? number_of(figure) : std::nullopt;
    };
    const std::optional<double> time_ms = at(0);
    const std::optional<double> size_kb = at(1);
    const std::optional<double> bandwidth = at(2);
    if (!time_ms || !size_kb || *time_ms < 0 || *size_kb < 0) return std::nullopt;
    LinkUse use;
    use.total_s = *time_ms * kMillisecond;
    use.bytes = *size_kb * kKilobyte;
    if (const std::optional<double> wait_ms = at(3)) use.wait_s = *wait_ms * kMillisecond;
    // A sum of KB/s is never below KB/ms; GB/s is a thousandth of that.
    if (bandwidth && *bandwidth > 0 && *time_ms > 0 && *size_kb > 0)
      (*bandwidth < *size_kb / *time_ms ? in_gigabytes_ : in_kilobytes_) += 1;
    return use;
  }

  /// {"stream_41_0_AllReduce-op4582": [step, communication, wait, links]}
  std::vector<CollectiveOperator> operators_of(const JsonDocument& document) {
    std::vector<CollectiveOperator> found;
    simdjson::dom::object operators;
    if (document.root().get(operators) != simdjson::SUCCESS) return found;
    for (const simdjson::dom::key_value_pair each : operators) {
      simdjson::dom::array parts;
      if (each.value.get(parts) != simdjson::SUCCESS) continue;
      Json communication;
      Json wait;
      if (parts.at(1).get(communication) != simdjson::SUCCESS || parts.at(2).get(wait) != simdjson::SUCCESS)
        continue;
      count_entry();
      CollectiveOperator op;
      op.name = std::string(each.key);
      op.cost.communication_s = std::max(0.0, number_of(communication).value_or(0));
      op.cost.wait_s = std::max(0.0, number_of(wait).value_or(0));
      Json links;
      if (parts.at(3).get(links) == simdjson::SUCCESS) op.cost.links = links_of(links);
      found.push_back(std::move(op));
    }
    return found;
  }

  void to_seconds() {
    const double unit = in_gigabytes_ > in_kilobytes_ ? kMicrosecond : kMillisecond;
    const auto convert = [unit](CollectivesStep& step) {
      step.cost.communication_s *= unit;
      step.cost.wait_s *= unit;
      for (CollectiveOperator& op : step.operators) {
        op.cost.communication_s *= unit;
        op.cost.wait_s *= unit;
      }
    };
    for (CollectivesStep& step : file_.steps) convert(step);
    if (file_.average) convert(*file_.average);
  }

  std::vector<Row> rows_;
  const std::string& path_;
  CollectivesFile file_;
  std::size_t left_out_ = 0;
  std::size_t unread_ = 0;
  std::size_t entries_ = 0;
  std::size_t in_kilobytes_ = 0;
  std::size_t in_gigabytes_ = 0;
};

}  // namespace

double LinkUse::bytes_per_s() const noexcept {
  return total_s > 0 ? bytes / total_s : std::numeric_limits<double>::quiet_NaN();
}

CollectivesFile read_collectives(std::string_view text, const std::string& path) {
  return CollectivesReader(text, path).read();
}

}  // namespace headrace::loader_files
