// The texts of an Nsight Systems export, without what makes each of them unique.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/trace/names.h"
#include "trace/database.h"

namespace headrace::trace::nsight {

/// PyTorch's `emit_nvtx` writes "aten::add, seq = 12, op_id = 34, sizes = [[2, 3]]": a text of its own for each call.
struct RangeText {
  std::string_view name;
  std::optional<std::int64_t> sequence;
  bool of_operator = false;
};
RangeText range_text(std::string_view text);

/// "cudaLaunchKernel" of "cudaLaunchKernel_v7000".
std::string_view call_name(std::string_view text);

/// Table StringIds; of ranges' texts the name alone is kept.
class Texts {
 public:
  /// Numbers of `name` are those of `names()`.
  struct Text {
    Names::Id name = 0;
    std::int64_t sequence = -1;
    bool of_operator = false;
  };

  explicit Texts(Database& database);

  /// The empty text for a number that the table does not have.
  Text at(std::optional<std::int64_t> id) const;
  const Names& names() const noexcept { return names_; }

 private:
  Names names_;
  /// Ascending by the number of the text; `sequences_` has the few that have one.
  std::vector<std::pair<std::int64_t, Names::Id>> by_id_;
  std::vector<std::pair<std::int64_t, std::int64_t>> sequences_;
  std::vector<bool> of_operator_;  ///< by name
};

}  // namespace headrace::trace::nsight
