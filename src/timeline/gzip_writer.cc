#include "headrace/timeline/gzip_writer.h"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "headrace/profile/errors.h"

namespace headrace::timeline {
namespace {

/// Lines are compared sixteen bytes at a time.
constexpr std::size_t kSlack = 16;

/// RFC 1952: deflate, no flags, no time, Unix.
constexpr unsigned char kHeader[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};

}  // namespace

struct GzipWriter::Deflater {
  isal_zstream stream{};
  std::vector<unsigned char> level_buffer = std::vector<unsigned char>(ISAL_DEF_LVL1_DEFAULT);
  std::vector<unsigned char> output = std::vector<unsigned char>(std::size_t{256} << 10);

  /// A stretch of raw deflate that refers to nothing before it.
  void begin() {
    isal_deflate_init(&stream);
    stream.gzip_flag = IGZIP_DEFLATE;
    stream.level = 1;
    stream.level_buf = level_buffer.data();
    stream.level_buf_size = static_cast<std::uint32_t>(level_buffer.size());
    stream.flush = NO_FLUSH;
  }
};

GzipWriter::GzipWriter(std::string path)
    : path_(std::move(path)),
      file_(path_),
      compresses_(!path_.ends_with(".json")),
      buffer_(new char[kBuffer + kSlack]()),
      deflater_(std::make_unique<Deflater>()) {
  begin();
}

GzipWriter::~GzipWriter() = default;

void GzipWriter::begin() {
  if (compresses_) put(reinterpret_cast<const char*>(kHeader), sizeof(kHeader));
  deflater_->begin();
}

void GzipWriter::restart() {
  file_.restart();
  used_ = summed_ = 0;
  checksum_ = 0;
  bytes_in_ = bytes_out_ = 0;
  if (in_lines_) lines_ = LineDeflater();
  in_lines_ = false;
  begin();
}

void GzipWriter::write(std::string_view text) {
  if (in_lines_) end_lines(false);
  while (!text.empty()) {
    if (used_ == kBuffer) compress(false);
    const std::size_t part = std::min(text.size(), kBuffer - used_);
    std::memcpy(buffer_.get() + used_, text.data(), part);
    used_ += part;
    text.remove_prefix(part);
  }
}

void GzipWriter::write_line(std::string_view text) {
  while (!text.empty()) {
    const std::size_t part = std::min(text.size(), kMostLine);
    std::memcpy(line_room(part), text.data(), part);
    Place nowhere;
    wrote_line(part, nowhere);
    text.remove_prefix(part);
  }
}

void GzipWriter::put(const char* bytes, std::size_t count) {
  file_.write(bytes, count);
  bytes_out_ += count;
}

void GzipWriter::compress(bool whole_bytes) {
  isal_zstream& stream = deflater_->stream;
  if (compresses_) {
    checksum_ = crc32_gzip_refl(checksum_, reinterpret_cast<const unsigned char*>(buffer_.get()), used_);
    stream.next_in = reinterpret_cast<unsigned char*>(buffer_.get());
    stream.avail_in = static_cast<std::uint32_t>(used_);
    stream.flush = whole_bytes ? FULL_FLUSH : NO_FLUSH;
    do {
      stream.next_out = deflater_->output.data();
      stream.avail_out = static_cast<std::uint32_t>(deflater_->output.size());
      if (isal_deflate(&stream) != COMP_OK) throw Error(path_ + ": could not be compressed");
      put(reinterpret_cast<const char*>(deflater_->output.data()),
          deflater_->output.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  } else {
    put(buffer_.get(), used_);
  }
  bytes_in_ += used_;
  used_ = 0;
}

void GzipWriter::begin_lines() {
  compress(true);
  in_lines_ = true;
  if (compresses_) lines_.begin_block();
}

void GzipWriter::slide() {
  if (!compresses_) return compress(false);
  checksum_ = crc32_gzip_refl(checksum_, reinterpret_cast<const unsigned char*>(buffer_.get()) + summed_,
                              used_ - summed_);
  summed_ = std::min(used_, LineDeflater::kWindow);
  std::memmove(buffer_.get(), buffer_.get() + (used_ - summed_), summed_);
  bytes_in_ += used_ - summed_;
  used_ = summed_;
}

void GzipWriter::put_pending() {
  put(lines_.pending().data(), lines_.pending().size());
  lines_.clear();
}

void GzipWriter::end_lines(bool last) {
  in_lines_ = false;
  if (!compresses_) return;
  slide();
  lines_.end_block(last);
  put_pending();
  bytes_in_ += used_;
  used_ = summed_ = 0;
  deflater_->begin();
}

void GzipWriter::finish() {
  if (!in_lines_) begin_lines();
  end_lines(true);
  if (compresses_) {
    const std::uint32_t trailer[] = {checksum_, static_cast<std::uint32_t>(bytes_in_)};
    put(reinterpret_cast<const char*>(trailer), sizeof(trailer));
  } else {
    compress(false);
  }
  file_.commit();
}

}  // namespace headrace::timeline
