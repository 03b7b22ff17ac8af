#include "memory/pickle_opcodes.h"

#include <array>
#include <string_view>
#include <utility>

namespace headrace::memory {
namespace {

constexpr std::array<std::pair<std::uint8_t, std::string_view>, 40> kUnreadOpcodes = {{
    {'0', "POP"},
    {'1', "POP_MARK"},
    {'2', "DUP"},
    {'F', "FLOAT"},
    {'I', "INT"},
    {'L', "LONG"},
    {'P', "PERSID"},
    {'Q', "BINPERSID"},
    {'R', "REDUCE"},
    {'S', "STRING"},
    {'T', "BINSTRING"},
    {'U', "SHORT_BINSTRING"},
    {'V', "UNICODE"},
    {'b', "BUILD"},
    {'c', "GLOBAL"},
    {'d', "DICT"},
    {'g', "GET"},
    {'i', "INST"},
    {'l', "LIST"},
    {'o', "OBJ"},
    {'p', "PUT"},
    {0x80, "PROTO"},
    {0x81, "NEWOBJ"},
    {0x82, "EXT1"},
    {0x83, "EXT2"},
    {0x84, "EXT4"},
    {0x8b, "LONG4"},
    {'B', "BINBYTES"},
    {'C', "SHORT_BINBYTES"},
    {0x8d, "BINUNICODE8"},
    {0x8e, "BINBYTES8"},
    {0x8f, "EMPTY_SET"},
    {0x90, "ADDITEMS"},
    {0x91, "FROZENSET"},
    {0x92, "NEWOBJ_EX"},
    {0x93, "STACK_GLOBAL"},
    {0x96, "BYTEARRAY8"},
    {0x97, "NEXT_BUFFER"},
    {0x98, "READONLY_BUFFER"},
    {'.', "STOP"},
}};

}  // namespace

std::string name_of_opcode(std::uint8_t opcode) {
  for (const auto& [known, name] : kUnreadOpcodes) {
    if (known == opcode) return std::string(name);
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  return {'0', 'x', kDigits[opcode >> 4], kDigits[opcode & 15]};
}

}  // namespace headrace::memory
