#include "operator_kinds.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace headrace::loader_files {

using profile::OperatorKind;

std::string_view plain_type(std::string_view type) noexcept {
  if (type.size() > 2 && type.ends_with("Op")) type.remove_suffix(2);
  return type;
}

bool feeds_device(std::string_view type) noexcept {
  type = plain_type(type);
  return type == "DeviceQueue" || type == "DataQueue";
}

bool runs_in_parallel(std::string_view type) noexcept {
  // One thread each, or none of its own.
  constexpr std::array<std::string_view, 13> kSingle{
      "Barrier", "Concat", "EpochCtrl", "Rename",      "Repeat",    "Shuffle",      "Skip",
      "Take",    "Zip",    "Project",   "DeviceQueue", "DataQueue", "ReceiveBridge"};
  return std::find(kSingle.begin(), kSingle.end(), plain_type(type)) == kSingle.end();
}

profile::Word<OperatorKind> kind_of_type(std::string_view type, bool is_leaf) {
  type = plain_type(type);
  if (feeds_device(type)) return OperatorKind::transfer;
  if (type == "Map") return OperatorKind::map;
  if (type.find("Batch") != std::string_view::npos) return OperatorKind::batch;
  if (type == "Shuffle") return OperatorKind::shuffle;
  if (type == "Filter") return OperatorKind::filter;
  if (is_leaf) return OperatorKind::source;
  std::string word;
  for (const char c : type) word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return word;
}

}  // namespace headrace::loader_files
