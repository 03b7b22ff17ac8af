// Writes a gzip file as it is filled: text in, compressed blocks out.
//
//     GzipWriter out("timeline.json.gz");
//     out.write(text);
//     char* at = out.room(200);               // or without a copy:
//     out.wrote(make_line(at));
//     out.finish();
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "headrace/profile/output_file.h"

namespace headrace::timeline {

/// One gzip member, compressed by ISA-L at a fast level; where `path` ends in ".json", the text as it is. The
/// file gets its name when it is complete, and a device or a pipe is written through (profile::OutputFile).
/// Not thread-safe. Throws Error when it cannot be written.
class GzipWriter {
 public:
  explicit GzipWriter(std::string path);
  /// Without `finish` nothing is left behind.
  ~GzipWriter();
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;

  void write(std::string_view text);

  /// The most bytes that `room` gives.
  static constexpr std::size_t kMaxRoom = 4096;
  /// Room for at most `most` bytes of text; `wrote` then says how many there are.
  char* room(std::size_t most) {
    if (kBuffer - used_ < most) compress(false);
    return buffer_.get() + used_;
  }
  void wrote(std::size_t bytes) noexcept { used_ += bytes; }

  /// Begins again, as if nothing had been written.
  void restart();
  /// Ends the stream and gives the file its name.
  void finish();

  std::uint64_t bytes_out() const noexcept { return bytes_out_; }

 private:
  static constexpr std::size_t kBuffer = std::size_t{256} << 10;
  struct Deflater;

  /// Empties the buffer; `last`: and ends the stream.
  void compress(bool last);
  void put(const void* bytes, std::size_t count);

  std::string path_;
  profile::OutputFile file_;
  std::unique_ptr<Deflater> deflater_;  ///< null: the text stays as it is
  std::unique_ptr<char[]> buffer_;
  std::size_t used_ = 0;
  std::uint64_t bytes_out_ = 0;
};

}  // namespace headrace::timeline
