// Stacks, by the place in the user's program that asked for the memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/memory/snapshot.h"

namespace headrace::analysis::device_memory {

/// Numbers places from 0 on, in the order of first use. The snapshot must outlive it.
class Places {
 public:
  explicit Places(const memory::Snapshot& snapshot);

  /// The place of a stack (kNone: no stack). Each stack is gone through once.
  std::uint32_t of_stack(std::uint32_t stack);
  /// A place that is no function.
  std::uint32_t named(std::string_view label) { return numbered(std::string(label), {}); }

  std::size_t size() const noexcept { return places_.size(); }
  /// "model.py:10 forward"
  const std::string& label(std::uint32_t place) const noexcept { return places_[place].label; }
  /// The file's whole path; empty if the place is no function of Python.
  const std::string& file(std::uint32_t place) const noexcept { return places_[place].file; }

 private:
  enum class FrameKind : std::uint8_t { program, framework, autograd, native, no_name };
  struct Place {
    std::string label;
    std::string file;
  };

  FrameKind kind_of(const memory::Frame& frame) const;
  std::uint32_t find(std::uint32_t stack);
  std::uint32_t function(const memory::Frame& frame);
  std::uint32_t numbered(std::string label, std::string_view file);

  const memory::Snapshot& snapshot_;
  std::vector<FrameKind> kinds_;         ///< by frame
  std::vector<std::uint32_t> of_stack_;  ///< kNone until it is asked for
  std::vector<Place> places_;
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
};

}  // namespace headrace::analysis::device_memory
