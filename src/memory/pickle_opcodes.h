// The opcodes of pickles that a memory snapshot needs, and the names of all others.
#pragma once

#include <cstdint>
#include <string>

namespace headrace::memory {

enum class Opcode : std::uint8_t {
  mark = '(',
  empty_tuple = ')',
  stop = '.',
  binfloat = 'G',
  binint = 'J',
  binint1 = 'K',
  binint2 = 'M',
  none = 'N',
  binunicode = 'X',
  empty_list = ']',
  append = 'a',
  global = 'c',
  appends = 'e',
  binget = 'h',
  inst = 'i',
  long_binget = 'j',
  binput = 'q',
  long_binput = 'r',
  setitem = 's',
  tuple = 't',
  setitems = 'u',
  empty_dict = '}',
  proto = 0x80,
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  newtrue = 0x88,
  newfalse = 0x89,
  long1 = 0x8a,
  short_binunicode = 0x8c,
  stack_global = 0x93,
  memoize = 0x94,
  frame = 0x95,
};

/// "BINBYTES8" of an opcode that is not read; "0x07" where no protocol has it.
std::string name_of_opcode(std::uint8_t opcode);

}  // namespace headrace::memory
