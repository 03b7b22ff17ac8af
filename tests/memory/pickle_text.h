// Pickles for tests, put together from their opcodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace headrace::memory {

inline std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  return text;
}

inline std::string text(std::string_view value) {
  return "X" + little_endian(value.size(), 4) + std::string(value);
}
inline std::string integer(std::int64_t value) {
  return "\x8a\x08" + little_endian(static_cast<std::uint64_t>(value), 8);
}
inline std::string list(std::initializer_list<std::string> items) {
  std::string all = "](";
  for (const std::string& item : items) all += item;
  return all + "e";
}
inline std::string dict(std::initializer_list<std::pair<std::string_view, std::string>> items) {
  std::string all = "}(";
  for (const auto& [key, value] : items) all += text(key) + value;
  return all + "u";
}
inline std::string put(int number, const std::string& value) {
  return value + "r" + little_endian(static_cast<std::uint64_t>(number), 4);
}
inline std::string get(int number) { return "j" + little_endian(static_cast<std::uint64_t>(number), 4); }
inline std::string pickle(const std::string& value) { return "\x80\x02" + value + "."; }

inline std::string event(std::string_view action, std::int64_t address, std::int64_t size,
                         const std::string& frames = "]") {
  return dict({{"action", text(action)},
               {"addr", integer(address)},
               {"size", integer(size)},
               {"time_us", integer(7)},
               {"stream", "K\x05"},
               {"frames", frames}});
}

inline std::string frame(std::string_view file, std::string_view name) {
  return dict({{"filename", text(file)}, {"line", "K\x03"}, {"name", text(name)}});
}

}  // namespace headrace::memory
