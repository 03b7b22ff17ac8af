// A file that is to be read, and the formats that it may have: each says which files are its own, and reads them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/trace/reader.h"
#include "trace/database.h"

namespace headrace::trace {

/// Enough of a file to tell what it is.
inline constexpr std::size_t kBeginning = std::size_t{1} << 14;

/// A file that is to be read, opened as far as its format has to be known.
class Input {
 public:
  /// Throws FormatError for a SQLite database that cannot be opened.
  explicit Input(const std::string& path);
  /// Input in memory, called `name` in errors; `bytes` must outlive this.
  Input(std::string_view bytes, const std::string& name);

  const std::string& path() const noexcept { return path_; }
  /// Some thousand bytes, inflated; empty for what can be read only once.
  std::string_view beginning() const noexcept { return beginning_; }
  /// Protocol buffers may begin with a line break, as JSON may.
  bool begins_as_json() const noexcept;
  /// The file's size as it is; 0 if it is no file.
  std::size_t size() const noexcept;
  /// Its bytes from the first one on, as they are. `bytes_read` as FileBytes'.
  std::unique_ptr<ByteSource> open(std::atomic<std::uint64_t>* bytes_read = nullptr) const;
  bool has_database() const noexcept { return database_.has_value(); }
  /// To be asked for only where there is one.
  Database& database() noexcept { return *database_; }
  bool any_table(bool (*is)(std::string_view table)) const;
  bool has_table(std::string_view table) const noexcept { return database_ && database_->has_table(table); }

 private:
  std::string path_;
  std::optional<std::string_view> memory_;
  std::string beginning_;
  std::optional<Database> database_;
};

/// At most `most` bytes of a stream; `is_more` is set where there are more.
std::string read_all(ByteSource& source, std::size_t most, bool& is_more);

/// A file's bytes, inflated if they begin like gzip; `damage` as GzipStream's. Throws FormatError, also for
/// what is compressed more than profiles are.
std::string read_whole(const Input& input, const ReadOptions& options, std::string& damage);

/// A folder of this room has one; they are listed in format.cc, where the first that recognises a file reads it.
struct Format {
  /// As messages call it.
  std::string_view name;
  bool of_database = false;
  bool (*recognises)(const Input& input) = nullptr;
  /// One trace per rank. Throws FormatError.
  std::vector<TraceFile> (*read)(Input& input, const ReadOptions& options) = nullptr;
};

extern const Format kAscendProfile, kNsightExport, kRocpd, kXPlane, kPerfetto;

}  // namespace headrace::trace
