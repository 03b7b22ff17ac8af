// Writes a gzip file as it is filled: text in, compressed blocks out.
//
//     GzipWriter out("timeline.json.gz");
//     out.write(anything);
//     GzipWriter::Place like;                   // of each kind of line one, for each of its fields
//     char* line = out.line_room(200);
//     out.wrote_line(make_line(line), like);    // costs a tenth of `write` where it is like the last one
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "headrace/profile/output_file.h"
#include "headrace/timeline/line_deflater.h"

namespace headrace::timeline {

/// One gzip member; where `path` ends in ".json", the text as it is. Text of any kind is compressed by ISA-L
/// at a fast level, lines by `LineDeflater`. The file gets its name when it is complete, and a device or a
/// pipe is written through (profile::OutputFile). Not thread-safe. Throws Error when it cannot be written.
class GzipWriter {
 public:
  explicit GzipWriter(std::string path);
  /// Without `finish` nothing is left behind.
  ~GzipWriter();
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;

  void write(std::string_view text);

  /// Where a line, or a part of one, was written last.
  class Place {
    friend class GzipWriter;
    std::uint64_t at_ = std::numeric_limits<std::uint64_t>::max();
  };
  static constexpr std::size_t kMostLine = LineDeflater::kMostBytes;
  /// Room for a line of at most `most` (at most kMostLine) bytes, which is then handed over in one or several
  /// parts that follow each other.
  char* line_room(std::size_t most) {
    if (!in_lines_) begin_lines();
    if (kBuffer - used_ < most) slide();
    return buffer_.get() + used_;
  }
  /// The next `bytes` bytes of the line. They begin like what was written at `like`, or not; `like` is theirs
  /// then.
  void wrote_line(std::size_t bytes, Place& like) {
    const std::size_t distance = distance_to(like);
    like.at_ = bytes_in_ + used_;
    if (compresses_) {
      lines_.append(buffer_.get() + used_, bytes, distance);
      if (lines_.pending().size() > LineDeflater::kMostPending) put_pending();
    }
    used_ += bytes;
  }
  /// The same for a caller that puts the code of a line, for which there is `line_room`, itself: null where
  /// the text stays as it is. What was written at `like` stands `distance_to` bytes before, 0: too far.
  LineDeflater* coder() noexcept { return compresses_ ? &lines_ : nullptr; }
  std::size_t distance_to(const Place& like) const noexcept {
    const std::uint64_t at = bytes_in_ + used_;
    const bool is_near = like.at_ >= bytes_in_ && like.at_ < at && at - like.at_ <= LineDeflater::kWindow;
    return is_near ? static_cast<std::size_t>(at - like.at_) : 0;
  }
  void wrote_coded(std::size_t bytes, Place& like) {
    like.at_ = bytes_in_ + used_;
    used_ += bytes;
    if (lines_.pending().size() > LineDeflater::kMostPending) put_pending();
  }
  /// A line of any length that is like none.
  void write_line(std::string_view text);

  /// Begins again, as if nothing had been written.
  void restart();
  /// Ends the stream and gives the file its name.
  void finish();

  std::uint64_t bytes_in() const noexcept { return bytes_in_ + used_; }
  std::uint64_t bytes_out() const noexcept { return bytes_out_; }

 private:
  static constexpr std::size_t kBuffer = std::size_t{256} << 10;
  struct Deflater;

  void begin();
  /// Text that waits goes through ISA-L; `whole_bytes`: all that it has taken comes out, up to a whole byte.
  void compress(bool whole_bytes);
  void begin_lines();
  void end_lines(bool last);
  void slide();
  void put_pending();
  void put(const char* bytes, std::size_t count);
  std::string path_;
  profile::OutputFile file_;
  bool compresses_;
  std::unique_ptr<char[]> buffer_;
  std::size_t used_ = 0;
  std::size_t summed_ = 0;      ///< so many bytes of the buffer are in the checksum
  std::uint32_t checksum_ = 0;  ///< CRC-32
  bool in_lines_ = false;
  std::uint64_t bytes_in_ = 0;  ///< before the buffer
  std::uint64_t bytes_out_ = 0;
  std::unique_ptr<Deflater> deflater_;
  LineDeflater lines_;
};

}  // namespace headrace::timeline
