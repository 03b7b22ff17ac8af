// Writes a gzip file as it is filled: text in, compressed blocks out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace headrace::timeline {

/// One gzip member, compressed by ISA-L at a fast level; where `path` ends in ".json", the text as it is. The
/// file is written beside `path` and gets its name when it is complete, so that nobody reads half of one. Not
/// thread-safe. Throws Error when it cannot be written.
class GzipWriter {
 public:
  explicit GzipWriter(std::string path);
  /// Without `finish` nothing is left behind.
  ~GzipWriter();
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;

  void write(std::string_view text);
  /// Room for `most` (at most 4096) bytes; `wrote` says how many of them were used.
  char* room(std::size_t most) {
    if (kBuffer - used_ < most) flush();
    return buffer_.get() + used_;
  }
  void wrote(std::size_t bytes) noexcept { used_ += bytes; }

  /// Begins again, as if nothing had been written.
  void restart();
  /// Ends the stream and gives the file its name.
  void finish();

  std::uint64_t bytes_in() const noexcept { return bytes_in_ + used_; }
  std::uint64_t bytes_out() const noexcept { return bytes_out_; }

 private:
  static constexpr std::size_t kBuffer = std::size_t{256} << 10;
  struct Deflater;

  void flush() { compress(false); }
  void compress(bool last);
  void put(const char* bytes, std::size_t count);
  void open();
  [[noreturn]] void fail(int error) const;

  std::string path_;
  std::string beside_;
  bool compresses_;
  int file_ = -1;
  std::unique_ptr<char[]> buffer_;
  std::size_t used_ = 0;
  std::uint64_t bytes_in_ = 0;
  std::uint64_t bytes_out_ = 0;
  std::unique_ptr<Deflater> deflater_;
};

}  // namespace headrace::timeline
