#include "headrace/timeline/gzip_writer.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "headrace/profile/errors.h"

namespace headrace::timeline {

struct GzipWriter::Deflater {
  isal_zstream stream{};
  std::vector<unsigned char> level_buffer = std::vector<unsigned char>(ISAL_DEF_LVL1_DEFAULT);
  std::vector<unsigned char> output = std::vector<unsigned char>(std::size_t{256} << 10);

  Deflater() { begin(); }
  void begin() {
    isal_deflate_init(&stream);
    stream.gzip_flag = IGZIP_GZIP;
    stream.level = 1;
    stream.level_buf = level_buffer.data();
    stream.level_buf_size = static_cast<std::uint32_t>(level_buffer.size());
  }
};

GzipWriter::GzipWriter(std::string path)
    : path_(std::move(path)),
      file_(path_),
      deflater_(path_.ends_with(".json") ? nullptr : std::make_unique<Deflater>()),
      buffer_(std::make_unique_for_overwrite<char[]>(kBuffer)) {}

GzipWriter::~GzipWriter() = default;

void GzipWriter::restart() {
  file_.restart();
  used_ = 0;
  bytes_out_ = 0;
  if (deflater_ != nullptr) deflater_->begin();
}

void GzipWriter::write(std::string_view text) {
  while (!text.empty()) {
    if (used_ == kBuffer) compress(false);
    const std::size_t part = std::min(text.size(), kBuffer - used_);
    std::memcpy(buffer_.get() + used_, text.data(), part);
    used_ += part;
    text.remove_prefix(part);
  }
}

void GzipWriter::put(const void* bytes, std::size_t count) {
  file_.write(bytes, count);
  bytes_out_ += count;
}

void GzipWriter::compress(bool last) {
  if (deflater_ == nullptr) {
    put(buffer_.get(), used_);
  } else {
    isal_zstream& stream = deflater_->stream;
    stream.next_in = reinterpret_cast<unsigned char*>(buffer_.get());
    stream.avail_in = static_cast<std::uint32_t>(used_);
    stream.end_of_stream = last ? 1 : 0;
    do {
      stream.next_out = deflater_->output.data();
      stream.avail_out = static_cast<std::uint32_t>(deflater_->output.size());
      if (isal_deflate(&stream) != COMP_OK) throw Error(path_ + ": could not be compressed");
      put(deflater_->output.data(), deflater_->output.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  }
  used_ = 0;
}

void GzipWriter::finish() {
  compress(true);
  file_.commit();
}

}  // namespace headrace::timeline
