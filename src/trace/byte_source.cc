#include "headrace/trace/byte_source.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "headrace/profile/errors.h"
#include "profile/file_calls.h"

namespace headrace::trace {
FileBytes::FileBytes(std::string path, std::atomic<std::uint64_t>* bytes_read)
    : path_(std::move(path)), file_(path_), bytes_read_(bytes_read) {
  profile::read_ahead(file_.descriptor());
}

std::size_t FileBytes::read(std::span<char> into) {
  for (;;) {
    const ssize_t bytes = ::read(file_.descriptor(), into.data(), into.size());
    if (bytes >= 0) {
      const auto count = static_cast<std::size_t>(bytes);
      if (bytes_read_ != nullptr) bytes_read_->fetch_add(count, std::memory_order_relaxed);
      return count;
    }
    if (errno != EINTR) throw FormatError(path_, std::strerror(errno));
  }
}

std::size_t MemoryBytes::read(std::span<char> into) {
  const std::size_t bytes = std::min(into.size(), rest_.size());
  std::copy_n(rest_.data(), bytes, into.data());
  rest_.remove_prefix(bytes);
  return bytes;
}

PeekedBytes::PeekedBytes(ByteSource& source, std::size_t bytes) : source_(source), first_(bytes, '\0') {
  std::size_t size = 0;
  for (std::size_t more = 1; more > 0 && size < bytes; size += more)
    more = source.read(std::span(first_).subspan(size));
  first_.resize(size);
}

std::size_t PeekedBytes::read(std::span<char> into) {
  if (given_ == first_.size()) return source_.read(into);
  const std::size_t count = std::min(into.size(), first_.size() - given_);
  std::copy_n(first_.data() + given_, count, into.data());
  given_ += count;
  return count;
}

namespace {

constexpr std::size_t kInputBytes = std::size_t{256} << 10;
constexpr char kMagic[] = {'\x1f', '\x8b'};

std::string words_of(int error) {
  switch (error) {
    case ISAL_INVALID_WRAPPER:
      return "a gzip header is damaged";
    case ISAL_UNSUPPORTED_METHOD:
      return "a gzip header names an unknown method";
    case ISAL_INCORRECT_CHECKSUM:
      return "the checksum does not match";
    default:
      return "the compressed data is damaged";
  }
}

}  // namespace

struct GzipStream::Inflater {
  inflate_state state;
};

GzipStream::GzipStream(ByteSource& compressed, std::string name)
    : compressed_(compressed), name_(std::move(name)), input_(kInputBytes) {}

GzipStream::~GzipStream() = default;

std::size_t GzipStream::read(std::span<char> into) {
  if (mode_ == Mode::unknown) begin();
  if (mode_ == Mode::plain) return pass_through(into);
  return inflate(into);
}

/// Waits for two bytes, however little the source gives at a time.
void GzipStream::begin() {
  while (input_end_ < sizeof kMagic) {
    const std::size_t bytes = compressed_.read(std::span(input_).subspan(input_end_));
    if (bytes == 0) break;
    input_end_ += bytes;
    read_bytes_ += bytes;
  }
  mode_ = Mode::plain;
  if (input_end_ < sizeof kMagic || !std::equal(kMagic, kMagic + sizeof kMagic, input_.data())) return;
  mode_ = Mode::inflating;
  inflater_ = std::make_unique<Inflater>();
  isal_inflate_init(&inflater_->state);
  inflater_->state.crc_flag = ISAL_GZIP;
}

std::size_t GzipStream::pass_through(std::span<char> into) {
  if (input_begin_ == input_end_) return compressed_.read(into);
  const std::size_t bytes = std::min(into.size(), input_end_ - input_begin_);
  std::copy_n(input_.data() + input_begin_, bytes, into.data());
  input_begin_ += bytes;
  return bytes;
}

bool GzipStream::refill() {
  input_begin_ = 0;
  input_end_ = compressed_.read(input_);
  read_bytes_ += input_end_;
  return input_end_ > 0;
}

void GzipStream::give_up(std::string damage) {
  mode_ = Mode::done;
  damage_ = std::move(damage) + " (compressed byte " +
            std::to_string(read_bytes_ - (input_end_ - input_begin_)) + ")";
}

/// Behind the end of a member: another one, padding, or the end.
bool GzipStream::next_member() {
  // Zeros between and behind members are padding (tapes, block devices), never part of one.
  do {
    while (input_begin_ < input_end_ && input_[input_begin_] == '\0') ++input_begin_;
  } while (input_begin_ == input_end_ && refill());
  if (input_begin_ == input_end_ || input_[input_begin_] != kMagic[0]) return false;
  isal_inflate_reset(&inflater_->state);
  inflater_->state.crc_flag = ISAL_GZIP;
  return true;
}

std::size_t GzipStream::inflate(std::span<char> into) {
  inflate_state& state = inflater_->state;
  into = into.first(std::min<std::size_t>(into.size(), std::numeric_limits<std::uint32_t>::max()));
  std::size_t written = 0;
  while (mode_ == Mode::inflating && written == 0 && !into.empty()) {
    // Inflated bytes come out without new input, so the end of the input alone ends nothing.
    const bool ended = input_begin_ == input_end_ && !refill();
    state.next_in = reinterpret_cast<std::uint8_t*>(input_.data() + input_begin_);
    state.avail_in = static_cast<std::uint32_t>(input_end_ - input_begin_);
    state.next_out = reinterpret_cast<std::uint8_t*>(into.data());
    state.avail_out = static_cast<std::uint32_t>(into.size());
    const int error = isal_inflate(&state);
    input_begin_ = input_end_ - state.avail_in;
    written = into.size() - state.avail_out;
    if (error < ISAL_DECOMP_OK) {
      if (written == 0 && state.total_out == 0 && error <= ISAL_INVALID_WRAPPER &&
          error != ISAL_INCORRECT_CHECKSUM)
        throw FormatError(name_, 0, "gzip data: " + words_of(error));
      give_up(words_of(error));
    } else if (state.block_state == ISAL_BLOCK_FINISH) {
      if (!next_member()) mode_ = Mode::done;
    } else if (ended && written == 0) {
      give_up("the compressed data ends too early");
    }
  }
  return written;
}

}  // namespace headrace::trace
