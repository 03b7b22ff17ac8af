#include "memory/pickle_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "headrace/profile/errors.h"

namespace headrace::memory {
namespace {

constexpr std::size_t kWindowBytes = std::size_t{256} << 10;
/// Longer than any operand but texts.
constexpr std::size_t kMaxOperand = 256;
constexpr std::size_t kMaxText = std::size_t{16} << 20;
/// A snapshot has eight levels.
constexpr std::size_t kMaxDepth = 20;
/// Values at once on the stack: PyTorch's own writer puts all events of a device there. 16 bytes each.
constexpr std::size_t kMaxStack = std::size_t{1} << 24;
constexpr std::size_t kMaxMemo = std::size_t{1} << 25;
constexpr std::size_t kMaxShownGlobal = 100;

std::string printable(std::string_view text) {
  std::string shown(text.substr(0, kMaxShownGlobal));
  for (char& each : shown) {
    if (each < ' ' || each > '~') each = '?';
  }
  return shown;
}

}  // namespace

PickleReader::PickleReader(trace::ByteSource& source, std::string name, RecordBuilder& records)
    : window_(source, kWindowBytes), name_(std::move(name)), records_(records) {
  window_.fill();
}

void PickleReader::fail(std::string_view expected) const {
  throw FormatError(name_, op_offset_, std::string(expected));
}

void PickleReader::need(std::size_t bytes) {
  if (window_.text().size() - at_ >= bytes) return;
  window_.drop(at_);
  at_ = 0;
  while (window_.capacity() < bytes) window_.grow(2 * kMaxText);
  window_.fill();
  if (window_.text().size() >= bytes) return;
  throw FormatError(name_, window_.offset() + window_.text().size(),
                    "more of the pickle: the file is cut off, or was still being written");
}

std::uint64_t PickleReader::take(std::size_t bytes) {
  need(bytes);
  std::uint64_t value = 0;
  std::memcpy(&value, window_.text().data() + at_, bytes);  // little-endian, as Linux's machines are
  at_ += bytes;
  return value;
}

Value PickleReader::taken_text(std::size_t bytes) {
  if (bytes > kMaxText) fail("a text of at most 16 MiB");
  need(bytes);
  const Value value = records_.text(window_.text().substr(at_, bytes));
  check(records_.what_is_too_much());
  at_ += bytes;
  return value;
}

/// Integers of more than 64 bits are in no snapshot; of addresses the bits count.
Value PickleReader::taken_long() {
  const std::size_t bytes = take(1);
  need(bytes);
  const std::string_view digits = window_.text().substr(at_, bytes);
  at_ += bytes;
  if (bytes == 0) return {0, ValueKind::integer};
  const bool fits = bytes <= 8 || (bytes == 9 && digits[8] == 0);
  if (!fits) return {0, ValueKind::other};
  std::uint64_t value = digits.back() < 0 ? ~std::uint64_t{0} : 0;
  std::memcpy(&value, digits.data(), std::min<std::size_t>(bytes, 8));
  return {static_cast<std::int64_t>(value), ValueKind::integer};
}

std::string PickleReader::taken_line() {
  std::string line;
  for (char next = static_cast<char>(take(1)); next != '\n'; next = static_cast<char>(take(1))) {
    if (line.size() < kMaxShownGlobal) line += next;
  }
  return line;
}

void PickleReader::push(Value value) {
  if (stack_.size() >= kMaxStack) fail("fewer values on the stack of the pickle");
  stack_.push_back(value);
}

Value& PickleReader::top() {
  if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size())) fail("a value on the stack");
  return stack_[stack_.size() - 1];
}

Value PickleReader::pop() {
  const Value value = top();
  stack_.pop_back();
  return value;
}

std::size_t PickleReader::pop_mark() {
  if (marks_.empty()) fail("a mark on the stack");
  const std::size_t mark = marks_.back();
  marks_.pop_back();
  return mark;
}

void PickleReader::put(std::uint64_t index) {
  // Writers count up, so no file has a number that is larger than its place.
  if (index >= kMaxMemo || index > op_offset_) fail("fewer values in the memo of the pickle");
  if (index >= memo_.size()) memo_.resize(static_cast<std::size_t>(index) + 1, {0, ValueKind::other});
  memo_[static_cast<std::size_t>(index)] = top();
}

void PickleReader::get(std::uint64_t index) {
  if (index >= memo_.size()) fail("a value that the memo has");
  push(memo_[static_cast<std::size_t>(index)]);
}

Value PickleReader::read() {
  op_offset_ = offset();
  if (window_.text().empty()) fail("a memory snapshot, but there is nothing in it");
  if (static_cast<Opcode>(take(1)) != Opcode::proto)
    fail("a pickle of protocol 2 to 5, which begins with the byte 0x80");
  if (const std::uint64_t protocol = take(1); protocol < 2 || protocol > 5)
    fail("a pickle of protocol 2 to 5, not " + std::to_string(protocol));
  for (;;) {
    op_offset_ = offset();
    const auto opcode = static_cast<Opcode>(take(1));
    if (opcode == Opcode::stop) return pop();
    run(opcode);
  }
}

void PickleReader::run(Opcode opcode) {
  switch (opcode) {
    case Opcode::frame:  // says how long a part of the file is, which is read from its opcodes anyway
      take(8);
      return;
    case Opcode::binget:
    case Opcode::long_binget:
    case Opcode::binput:
    case Opcode::long_binput:
    case Opcode::memoize:
      return run_memo(opcode);
    case Opcode::mark:
    case Opcode::empty_dict:
    case Opcode::empty_list:
    case Opcode::empty_tuple:
    case Opcode::tuple:
    case Opcode::tuple1:
    case Opcode::tuple2:
    case Opcode::tuple3:
    case Opcode::setitem:
    case Opcode::setitems:
    case Opcode::append:
    case Opcode::appends:
      return run_container(opcode);
    default:
      return run_value(opcode);
  }
}

void PickleReader::run_memo(Opcode opcode) {
  switch (opcode) {
    case Opcode::binget:
      return get(take(1));
    case Opcode::long_binget:
      return get(take(4));
    case Opcode::binput:
      return put(take(1));
    case Opcode::long_binput:
      return put(take(4));
    default:
      return put(memo_.size());
  }
}

void PickleReader::run_value(Opcode opcode) {
  using enum ValueKind;
  switch (opcode) {
    case Opcode::none:
      return push({0, none});
    case Opcode::newtrue:
      return push({1, integer});
    case Opcode::newfalse:
      return push({0, integer});
    case Opcode::binint1:
      return push({static_cast<std::int64_t>(take(1)), integer});
    case Opcode::binint2:
      return push({static_cast<std::int64_t>(take(2)), integer});
    case Opcode::binint:
      return push({static_cast<std::int32_t>(take(4)), integer});
    case Opcode::long1:
      return push(taken_long());
    case Opcode::binfloat:
      take(8);  // a snapshot's floats are settings
      return push({0, other});
    case Opcode::short_binunicode:
      return push(taken_text(take(1)));
    case Opcode::binunicode:
      return push(taken_text(take(4)));
    default:
      refuse(opcode);
  }
}

void PickleReader::run_container(Opcode opcode) {
  const auto into_tuple = [this](std::size_t first) {
    const Value made = RecordBuilder::tuple(above(first));
    stack_.resize(first);
    push(made);
  };
  const auto last = [this](std::size_t count) {
    const std::size_t bottom = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() - bottom < count) fail("more values on the stack");
    return stack_.size() - count;
  };
  switch (opcode) {
    case Opcode::mark:
      if (marks_.size() >= kMaxDepth) fail("values that are nested less than 20 deep");
      return marks_.push_back(stack_.size());
    case Opcode::empty_dict:
      push(records_.new_dict());
      return check(records_.what_is_too_much());
    case Opcode::empty_list:
      push(records_.new_list());
      return check(records_.what_is_too_much());
    case Opcode::empty_tuple:
      return into_tuple(stack_.size());
    case Opcode::tuple1:
      return into_tuple(last(1));
    case Opcode::tuple2:
      return into_tuple(last(2));
    case Opcode::tuple3:
      return into_tuple(last(3));
    case Opcode::tuple:
      return into_tuple(pop_mark());
    default:
      break;
  }
  const bool is_one = opcode == Opcode::append || opcode == Opcode::setitem;
  const bool is_dict = opcode == Opcode::setitem || opcode == Opcode::setitems;
  const std::size_t first = is_one ? last(is_dict ? 2 : 1) : pop_mark();
  const std::size_t bottom = marks_.empty() ? 0 : marks_.back();
  if (first <= bottom) fail(is_dict ? "a dict to put items into" : "a list to put items into");
  const Value into = stack_[first - 1];
  check(is_dict ? records_.set_items(into, above(first)) : records_.append(into, above(first)));
  stack_.resize(first);
}

void PickleReader::refuse(Opcode opcode) {
  if (opcode == Opcode::global || opcode == Opcode::inst) {
    const std::string module = taken_line();
    refuse_global(module + "." + taken_line(), opcode);
  }
  if (opcode == Opcode::stack_global) {
    const Value name = pop();
    const Value module = pop();
    if (name.kind == ValueKind::text && module.kind == ValueKind::text)
      refuse_global(records_.text_of(module) + "." + records_.text_of(name), opcode);
  }
  throw FormatError(name_, "no memory snapshot: it needs the opcode " +
                               name_of_opcode(static_cast<std::uint8_t>(opcode)) + " (byte " +
                               std::to_string(op_offset_) + "), and a snapshot has plain values only");
}

void PickleReader::refuse_global(const std::string& global, Opcode opcode) const {
  throw FormatError(name_, "no memory snapshot: it asks for the global " + printable(global) + " (opcode " +
                               name_of_opcode(static_cast<std::uint8_t>(opcode)) + ", byte " +
                               std::to_string(op_offset_) +
                               "), and a snapshot has plain values only; nothing of the file was run");
}

}  // namespace headrace::memory
