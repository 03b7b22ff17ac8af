// The exceptions that cross a public boundary of the C++ library. Python sees the same tree (headrace.Error
// ...).
//
// Recording never throws into a training loop; readers throw FormatError or SegmentError and nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace headrace {

/// Root of the tree: whatever Headrace itself reports.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A file or text that is not what it should be.
class FormatError : public Error {
 public:
  /// `path`: the file, or what the text is if there is no file; `offset`: byte at which it went wrong (0
  /// where the place is named in `expected`); `expected`: what should have stood there, in plain words.
  FormatError(std::string path, std::uint64_t offset, std::string expected)
      : Error(path + ": byte " + std::to_string(offset) + ": expected " + expected),
        path_(std::move(path)),
        offset_(offset),
        expected_(std::move(expected)) {}

  /// A file whose content could not be read: `reason` is the whole message behind the path.
  FormatError(std::string path, std::string reason)
      : Error(path + ": " + reason), path_(std::move(path)), expected_(std::move(reason)) {}

  const std::string& path() const noexcept { return path_; }
  /// Empty if nothing was read.
  std::optional<std::uint64_t> offset() const noexcept { return offset_; }
  /// Expected content, or why nothing was read.
  const std::string& expected() const noexcept { return expected_; }

 private:
  std::string path_;
  std::optional<std::uint64_t> offset_;
  std::string expected_;
};

/// A segment that is missing, cut short, of another version, or not ours.
class SegmentError : public Error {
 public:
  using Error::Error;
};

/// A call that cannot mean anything: wrong arguments, wrong order.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// An accelerator or its runtime failed.
class DeviceError : public Error {
 public:
  using Error::Error;
};

}  // namespace headrace
