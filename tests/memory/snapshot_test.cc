#include "headrace/memory/snapshot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "headrace/profile/errors.h"
#include "memory/pickle_text.h"

namespace headrace::memory {
namespace {

/// Gives `most` bytes at a time.
class Trickle : public trace::ByteSource {
 public:
  Trickle(std::string_view bytes, std::size_t most) : rest_(bytes), most_(most) {}
  std::size_t read(std::span<char> into) override {
    return rest_.read(into.first(std::min(into.size(), most_)));
  }

 private:
  trace::MemoryBytes rest_;
  std::size_t most_;
};

Snapshot read(const std::string& bytes, std::size_t most = std::size_t{1} << 20) {
  Trickle source(bytes, most);
  return read_snapshot(source, "test");
}

std::string error_of(const std::string& bytes) {
  try {
    read(bytes);
  } catch (const FormatError& error) {
    return error.what();
  }
  return "no error";
}

std::string snapshot_with(const std::string& traces, const std::string& segments = "]") {
  return pickle(dict({{"segments", segments}, {"device_traces", traces}}));
}

TEST(MemorySnapshot, EventsBecomeRowsHoweverTheBytesCome) {
  const std::string frames = put(0, list({frame("a.py", "f"), frame("b.py", "g")}));
  const std::string bytes = snapshot_with(
      list({"]", list({event("alloc", 4096, 100, frames), event("free_completed", 4096, 100, get(0)),
                       event("alloc", 4096, 50, get(0)), event("new_in_a_later_version", 0, 0)})}));
  for (const std::size_t most : {std::size_t{1}, std::size_t{7}, std::size_t{1} << 20}) {
    const Snapshot snapshot = read(bytes, most);
    ASSERT_EQ(snapshot.devices.size(), 2U);
    EXPECT_EQ(snapshot.devices[0].count, 0U);
    EXPECT_EQ(snapshot.devices[1].count, 4U);
    EXPECT_EQ(snapshot.events.size, (trace::Values<std::int64_t>{100, 100, 50, 0}));
    EXPECT_EQ(snapshot.events.other_end, (trace::Values<std::uint32_t>{1, 0, kNone, kNone}));
    EXPECT_EQ(snapshot.events.action[3], Action::other);
    EXPECT_EQ(snapshot.events.stream[0], 5);
    ASSERT_EQ(snapshot.stack(snapshot.events.stack[2]).size(), 2U);
    const Frame& outer = snapshot.frames[snapshot.stack(snapshot.events.stack[2])[1]];
    EXPECT_EQ(snapshot.texts[outer.file], "b.py");
    EXPECT_EQ(outer.line, 3);
    EXPECT_TRUE(snapshot.stack(kNone).empty());
  }
}

TEST(MemorySnapshot, AnAllocationWithoutAnEndIsEndedByTheNextAtItsAddress) {
  const Snapshot snapshot =
      read(snapshot_with(list({list({event("alloc", 8, 1), event("alloc", 8, 2),
                                     event("free_completed", 8, 2), event("free_completed", 8, 9)})})));
  EXPECT_EQ(snapshot.events.other_end, (trace::Values<std::uint32_t>{1, 2, 1, kNone}));
}

TEST(MemorySnapshot, AddressesOfEveryLengthAreRead) {
  const auto with = [](const std::string& address) {
    return snapshot_with(list({list({dict({{"action", text("alloc")}, {"addr", address}})})}));
  };
  EXPECT_EQ(read(with(std::string("\x8a\x00", 2))).events.address[0], 0);
  EXPECT_EQ(read(with("\x8a\x01\xff")).events.address[0], -1);
  EXPECT_EQ(read(with("\x8a\x02\xff\x7f")).events.address[0], 0x7fff);
  EXPECT_EQ(read(with("\x8a\x09" + little_endian(~std::uint64_t{0}, 8) + '\0')).events.address[0], -1);
  EXPECT_EQ(read(with("\x8a\x0a" + std::string(10, 'x'))).events.address[0], 0) << "no address";
  EXPECT_EQ(read(with("J" + little_endian(0xfffffffe, 4))).events.address[0], -2);
}

TEST(MemorySnapshot, SumsThatASegmentLacksAreThoseOfItsBlocks) {
  const std::string blocks =
      list({dict({{"size", "M" + little_endian(512, 2)}, {"state", text("active_allocated")}}),
            dict({{"size", "M" + little_endian(1536, 2)}, {"state", text("inactive")}})});
  const Snapshot snapshot = read(snapshot_with("]", list({dict({{"device", "K\x01"},
                                                                {"address", integer(4096)},
                                                                {"total_size", integer(2048)},
                                                                {"blocks", blocks}})})));
  ASSERT_EQ(snapshot.segments.size(), 1U);
  const Segment& segment = snapshot.segments[0];
  EXPECT_EQ(segment.device, 1);
  EXPECT_EQ(segment.active_bytes, 512);
  EXPECT_EQ(segment.requested_bytes, 512);
  ASSERT_EQ(snapshot.blocks_of(segment).size(), 2U);
  EXPECT_EQ(snapshot.blocks_of(segment)[1].address, 4096 + 512);
}

TEST(MemorySnapshot, WhatACrashOrAnAttackLeavesIsAnErrorInOneLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "nothing in it"},
      {"\x80", "no memory snapshot"},
      {"\x80\x07.", "no memory snapshot"},
      {"{}", "no memory snapshot"},
      {"\x80\x02.", "a value on the stack"},
      {"\x80\x02N.", "a dict with"},
      {"\x80\x02}", "cut off"},
      {"\x80\x02u.", "a mark"},
      {"\x80\x02(u.", "a dict to put"},
      {"\x80\x02N(NNu.", "a dict to put"},
      {"\x80\x02}(Nu.", "a value for each key"},
      {"\x80\x02N(Ne.", "a list to put"},
      {"\x80\x02(a.", "more values"},
      {"\x80\x02K\x01\x87.", "more values"},
      {"\x80\x02h\x05.", "the memo has"},
      {"\x80\x02(q", "cut off"},
      {"\x80\x02(h", "cut off"},
      {"\x80\x02(\x94.", "a value on the stack"},
      {"\x80\x02" + std::string(21, '('), "nested"},
      {"\x80\x02X\xff\xff\xff\xff", "16 MiB"},
      {"\x80\x02X\x10" + std::string(3, '\0') + "abc", "cut off"},
      {"\x80\x02"
       "cos\nsystem\n.",
       "the global os.system (opcode GLOBAL, byte 2)"},
      {"\x80\x02(ios\nsystem\n.", "the global os.system (opcode INST, byte 3)"},
      {"\x80\x02" + text("os") + text("sys\ntem") + "\x93.", "the global os.sys?tem (opcode STACK_GLOBAL"},
      {"\x80\x02"
       "NN\x93.",
       "the opcode STACK_GLOBAL"},
      {"\x80\x02o.", "the opcode OBJ"},
      {"\x80\x02\x92.", "the opcode NEWOBJ_EX"},
      {"\x80\x02\x82\x01.", "the opcode EXT1"},
      {"\x80\x02Q.", "the opcode BINPERSID"},
      {"\x80\x02\xff.", "the opcode 0xff"},
  };
  for (const auto& [bytes, says] : cases) {
    const std::string error = error_of(bytes);
    EXPECT_NE(error.find(says), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

TEST(MemorySnapshot, SharedListsCannotMultiplyTheWork) {
  const std::string events = put(0, list({event("alloc", 1, 1)}));
  EXPECT_NE(error_of(snapshot_with(list({events, get(0)}))).find("each in one place"), std::string::npos);
  const std::string one = put(0, event("alloc", 1, 1));
  EXPECT_NE(error_of(snapshot_with(list({list({one, get(0)})}))).find("in their order"), std::string::npos);
  const std::string block = dict({{"size", "K\x01"}, {"state", text("inactive")}});
  const auto segment = [](const std::string& blocks) {
    return dict({{"total_size", "K\x01"}, {"blocks", blocks}});
  };
  const std::string shared = list({segment(put(0, list({block}))), segment(get(0))});
  EXPECT_NE(error_of(snapshot_with("]", shared)).find("each in one place"), std::string::npos);
  EXPECT_NE(error_of(pickle("]q" + std::string(1, '\0') + get(0) + "a")), "no error");
}

TEST(MemorySnapshot, SizesThatNoDeviceHasAreRefused) {
  for (const std::int64_t size : {std::int64_t{-1}, std::int64_t{1} << 62}) {
    EXPECT_NE(error_of(snapshot_with(list({list({event("alloc", 1, size)})}))).find("sizes"),
              std::string::npos);
  }
}

TEST(MemorySnapshot, ARecordIsWrittenInOnePiece) {
  const std::string later = event("alloc", 1, 1) + text("size") + "K\x02s";
  EXPECT_NE(error_of(snapshot_with(list({list({later})}))).find("in one piece"), std::string::npos);
}

}  // namespace
}  // namespace headrace::memory
