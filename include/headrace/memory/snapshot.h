// Memory snapshots of PyTorch's caching allocator, read into columns.
//
//     const auto snapshot = headrace::memory::read_snapshot("snapshot.pickle");
//     for (const headrace::memory::Segment& segment : snapshot.segments)
//       std::cout << segment.device << ' ' << segment.total_bytes << '\n';
//
// A snapshot is what `torch.cuda.memory._dump_snapshot` and its kin of other devices write: the segments and
// blocks at that moment, and, if it was recorded, the allocator's latest events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/trace/byte_source.h"
#include "headrace/trace/names.h"
#include "headrace/trace/values.h"

namespace headrace::memory {

/// In place of an index that does not exist.
inline constexpr std::uint32_t kNone = ~std::uint32_t{0};

enum class Action : std::uint8_t {
  alloc,
  free_requested,  ///< the program freed the block; other streams may still use it
  free_completed,  ///< the block can be used again
  segment_alloc,   ///< memory from the driver
  segment_free,
  segment_map,  ///< the same for a part of an expandable segment
  segment_unmap,
  oom,
  snapshot,
  other,
};
inline constexpr std::size_t kActions = static_cast<std::size_t>(Action::other) + 1;

/// As the file writes it: "segment_alloc".
std::string_view to_string(Action action) noexcept;

/// The events of all devices, one entry per event. Those of a device follow each other in the order of time.
struct Events {
  trace::Values<Action> action;
  /// Address of the block or segment; of an `oom`: bytes that the device had free, -1 if unknown.
  trace::Values<std::int64_t> address;
  /// Bytes. Of `alloc` and `free_*`: as the program asked for, without rounding.
  trace::Values<std::int64_t> size;
  /// Microseconds of Unix time.
  trace::Values<std::int64_t> time_us;
  trace::CompactIntegers stream;
  /// For `Snapshot::stack`, kNone if there is none.
  trace::Values<std::uint32_t> stack;
  /// Event that ended an `alloc`'s block, kNone if it lived on; for a `free_completed`, its `alloc`,
  /// kNone if the block is older than the recording. kNone for other events.
  trace::Values<std::uint32_t> other_end;

  std::size_t count() const noexcept { return action.size(); }
};

/// A part of a segment.
struct Block {
  std::int64_t address = 0;
  std::int64_t bytes = 0;
  /// As the program asked for; 0 for a free block.
  std::int64_t requested_bytes = 0;
  std::uint32_t stack = kNone;
  /// In use, or freed and waiting for another stream.
  bool active = false;
};

/// Memory that the allocator has from the driver.
struct Segment {
  std::int64_t device = 0;
  std::int64_t total_bytes = 0;
  std::int64_t allocated_bytes = 0;  ///< blocks in use
  std::int64_t active_bytes = 0;     ///< and those that wait for another stream
  std::int64_t requested_bytes = 0;
  std::uint32_t first_block = 0;
  std::uint32_t blocks = 0;
  bool expandable = false;
  /// In a pool of its own, such as that of a CUDA graph: no other allocation can use it.
  bool in_private_pool = false;
};

/// A function on a stack. `file` and `name` are numbers of `Snapshot::texts`.
struct Frame {
  trace::Names::Id file = 0;
  trace::Names::Id name = 0;
  std::int64_t line = 0;
};

/// The beginning or the end of a range that the program named.
struct Annotation {
  trace::Names::Id name = 0;
  std::int64_t device = 0;
  std::int64_t time_us = 0;
  bool begins = false;
};

/// The events of one device: rows of `Events`.
struct DeviceEvents {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// Plain data; thread-safe as long as it is not changed. Sizes are 0 or more, and the sum of all fits 62
/// bits.
struct Snapshot {
  std::string path;
  trace::Names texts;
  Events events;
  /// By number of the device; the number of a trace is its place in the file.
  std::vector<DeviceEvents> devices;
  std::vector<Segment> segments;
  trace::Values<Block> blocks;
  std::vector<Annotation> annotations;
  trace::Values<Frame> frames;
  /// PYTORCH_CUDA_ALLOC_CONF of the run.
  std::string allocator_conf;
  bool expandable_segments = false;

  /// The frames of a stack, the innermost first: numbers of `frames`. Many events share a stack.
  std::span<const std::uint32_t> stack(std::uint32_t id) const noexcept {
    if (id >= stacks.size()) return {};
    return std::span(stack_frames.data(), stack_frames.size()).subspan(stacks[id].first, stacks[id].count);
  }
  std::span<const Block> blocks_of(const Segment& segment) const noexcept {
    return std::span(blocks.data(), blocks.size()).subspan(segment.first_block, segment.blocks);
  }

  struct Stack {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  trace::Values<Stack> stacks;
  trace::Values<std::uint32_t> stack_frames;
};

/// Reads a snapshot, a pickle of protocol 2 to 5, plain or compressed with gzip. Nothing in the file is run:
/// of the opcodes only those that make plain values are known, any other ends in an error that names it.
///
/// Memory is the columns (about 40 bytes an event) and the pickle's memo (16 bytes for each shared object).
/// Throws FormatError for anything that is not a whole snapshot.
Snapshot read_snapshot(const std::string& path);

/// Reads from any source; `name` is what errors and `path` call it.
Snapshot read_snapshot(trace::ByteSource& source, const std::string& name);

/// Whether a file begins as a pickle, or as the archive that `torch.save` writes: no trace, and perhaps a
/// snapshot. False for what cannot be read.
bool holds_pickle(const std::string& path);

}  // namespace headrace::memory
