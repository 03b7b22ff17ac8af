// The machine that a pickle is a program for, with the opcodes of plain values only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "headrace/trace/values.h"
#include "memory/pickle_opcodes.h"
#include "memory/record_builder.h"
#include "trace/byte_window.h"

namespace headrace::memory {

/// Reads one pickle. Stack and memo hold numbers (16 bytes a value), so a value that is shared is never
/// copied out.
class PickleReader {
 public:
  /// `name`: what errors call the pickle.
  PickleReader(trace::ByteSource& source, std::string name, RecordBuilder& records);

  /// The value that STOP leaves. Throws FormatError.
  Value read();

  /// The byte behind what was read.
  std::uint64_t offset() const noexcept { return window_.offset() + at_; }
  [[noreturn]] void fail(std::string_view expected) const;

 private:
  void run(Opcode opcode);
  void run_value(Opcode opcode);
  void run_container(Opcode opcode);
  void run_memo(Opcode opcode);
  [[noreturn]] void refuse(Opcode opcode);
  [[noreturn]] void refuse_global(const std::string& global, Opcode opcode) const;

  /// Makes the next `bytes` contiguous in the window.
  void need(std::size_t bytes);
  std::uint64_t take(std::size_t bytes);
  Value taken_text(std::size_t bytes);
  Value taken_long();
  std::string taken_line();

  void push(Value value);
  Value pop();
  std::size_t pop_mark();
  /// The stack from the last mark on; `drop` takes it off.
  std::span<const Value> above(std::size_t mark) const noexcept {
    return std::span(stack_.data(), stack_.size()).subspan(mark);
  }
  Value& top();
  void put(std::uint64_t index);  // of the value on top
  void get(std::uint64_t index);
  void check(const char* wrong) const {
    if (wrong != nullptr) fail(wrong);
  }

  trace::ByteWindow window_;
  std::string name_;
  RecordBuilder& records_;
  std::size_t at_ = 0;           ///< in the window's text
  std::uint64_t op_offset_ = 0;  ///< of the opcode that runs
  trace::Values<Value> stack_;
  trace::Values<std::size_t> marks_;
  trace::Values<Value> memo_;
};

}  // namespace headrace::memory
