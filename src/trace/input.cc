#include "trace/input.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>

#include "headrace/profile/errors.h"
#include "headrace/trace/byte_source.h"

namespace headrace::trace {
namespace {

/// Only of files that can be read twice.
std::string beginning_of(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) return "";
  FileBytes file(path);
  return std::string(PeekedBytes(file, kBeginning).first());
}

/// Text of a stream that begins so, as far as it goes.
std::string inflated(const std::string& beginning, const std::string& path) {
  MemoryBytes bytes(beginning);
  GzipStream stream(bytes, path);
  return std::string(PeekedBytes(stream, kBeginning).first());
}

}  // namespace

Input::Input(const std::string& path) : path_(path), beginning_(beginning_of(path)) {
  if (beginning_.starts_with(kDatabaseMagic)) {
    database_.emplace(path);
  } else {
    beginning_ = inflated(beginning_, path);
  }
}

Input::Input(std::string_view bytes, const std::string& name) : path_(name), memory_(bytes) {
  if (bytes.starts_with(kDatabaseMagic)) {
    database_.emplace(bytes, name);
  } else {
    beginning_ = inflated(std::string(bytes.substr(0, kBeginning)), name);
  }
}

std::size_t Input::size() const noexcept {
  if (memory_) return memory_->size();
  std::error_code unknown;
  const std::uintmax_t bytes = std::filesystem::file_size(path_, unknown);
  return unknown ? 0 : static_cast<std::size_t>(bytes);
}

std::unique_ptr<ByteSource> Input::open(std::atomic<std::uint64_t>* bytes_read) const {
  if (memory_) return std::make_unique<MemoryBytes>(*memory_);
  return std::make_unique<FileBytes>(path_, bytes_read);
}

bool Input::begins_as_json() const noexcept {
  const std::size_t bracket = beginning_.find_first_not_of(" \t\r\n");
  if (bracket == std::string::npos || (beginning_[bracket] != '{' && beginning_[bracket] != '['))
    return false;
  constexpr std::string_view kBehind = " \t\r\n\"{}[]-0123456789";
  return bracket + 1 == beginning_.size() || kBehind.find(beginning_[bracket + 1]) != std::string_view::npos;
}

bool Input::any_table(bool (*is)(std::string_view table)) const {
  return database_ && std::any_of(database_->tables().begin(), database_->tables().end(), is);
}

std::string read_all(ByteSource& source, std::size_t most, bool& is_more) {
  std::string bytes;
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  for (std::size_t more = 1; more > 0;) {
    const std::size_t size = bytes.size();
    bytes.resize(size + kChunk);
    more = source.read(std::span(bytes).subspan(size));
    bytes.resize(size + more);
    if (bytes.size() > most) {
      is_more = true;
      break;
    }
  }
  return bytes;
}

std::string read_whole(const Input& input, const ReadOptions& options, std::string& damage) {
  // Profiles of this kind shrink to a tenth.
  constexpr std::size_t kMostRatio = 100;
  constexpr std::size_t kAlways = std::size_t{64} << 20;
  std::atomic<std::uint64_t> read = 0;
  const std::unique_ptr<ByteSource> bytes = input.open(&read);
  GzipStream inflated(*bytes, input.path());
  bool is_more = false;
  std::string whole = read_all(inflated, std::max(kAlways, kMostRatio * input.size()), is_more);
  if (options.bytes_read != nullptr) *options.bytes_read += read;
  if (is_more)
    throw FormatError(input.path(), "a profile, but it holds more than a hundred times what it takes");
  damage = inflated.damage();
  return whole;
}

}  // namespace headrace::trace
