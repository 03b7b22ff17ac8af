#include "headrace/metrics/array_statistics.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

namespace headrace::metrics {
namespace {

/// As many as fit the first cache and keep a sum of floats exact enough.
constexpr std::size_t kBlock = 2048;
constexpr std::size_t kHashedBytes = 4096;

/// Compilers turn these into the vectors of any processor.
template <class Real>
struct Vector {
  using Of [[gnu::vector_size(16)]] = Real;
  static constexpr std::size_t kLanes = 16 / sizeof(Real);
};

/// Number by number: what no whole vector is left for, and blocks with squares that are too large.
template <class Real>
void add_slowly(const Real* from, std::size_t count, Moments& into) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto x = static_cast<double>(from[i]);
    if (!std::isfinite(x)) {
      ++into.nonfinite;
      continue;
    }
    ++into.finite;
    into.min = std::min(into.min, x);
    into.max = std::max(into.max, x);
    into.sum += x;
    into.squares += x * x;
  }
}

/// A block's figures so far, in four chains, which hide an addition's latency.
template <class Real>
struct Chains {
  using V = typename Vector<Real>::Of;
  static constexpr std::size_t kCount = 4;
  static constexpr std::size_t kLanes = Vector<Real>::kLanes;
  static constexpr std::size_t kStep = kCount * kLanes;

  std::array<V, kCount> low;
  std::array<V, kCount> high;
  std::array<V, kCount> sums{};
  std::array<V, kCount> squares{};
  std::array<V, kCount> nonfinite{};

  Chains() {
    for (V& each : low) each = V{} + std::numeric_limits<Real>::infinity();
    for (V& each : high) each = V{} - std::numeric_limits<Real>::infinity();
  }

  void add(std::size_t k, V x) {
    low[k] = x < low[k] ? x : low[k];
    high[k] = x > high[k] ? x : high[k];
    sums[k] += x;
    squares[k] += x * x;
  }
  /// `add` for the finite numbers among them.
  void add_finite(std::size_t k, V x) {
    // NaN for what is not finite.
    const auto finite = (x - x) == 0;  // NOLINT(misc-redundant-expression)
    const V kept = finite ? x : V{};
    low[k] = finite ? (x < low[k] ? x : low[k]) : low[k];
    high[k] = finite ? (x > high[k] ? x : high[k]) : high[k];
    sums[k] += kept;
    squares[k] += kept * kept;
    nonfinite[k] += finite ? V{} : V{} + 1;
  }

  /// False: a number that is not finite, or a square that is too large, made the sums useless.
  bool give(std::size_t count, Moments& into) const {
    Moments block;
    double odd = 0;
    for (std::size_t k = 0; k < kCount; ++k) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        block.sum += static_cast<double>(sums[k][lane]);
        block.squares += static_cast<double>(squares[k][lane]);
        block.min = std::min(block.min, static_cast<double>(low[k][lane]));
        block.max = std::max(block.max, static_cast<double>(high[k][lane]));
        odd += static_cast<double>(nonfinite[k][lane]);
      }
    }
    if (!std::isfinite(block.sum) || !std::isfinite(block.squares)) return false;
    block.nonfinite = static_cast<std::uint64_t>(odd);
    block.finite = count - block.nonfinite;
    into.add(block);
    return true;
  }
};

/// A whole number of steps. What is not finite shows in the sums, so it is not looked for at first.
template <class Real>
void add_block(const Real* from, std::size_t count, Moments& into) {
  using Block = Chains<Real>;
  const auto pass = [&](auto add) {
    Block block;
    for (std::size_t i = 0; i < count; i += Block::kStep) {
      for (std::size_t k = 0; k < Block::kCount; ++k) {
        typename Block::V x;
        std::memcpy(&x, from + i + k * Block::kLanes, sizeof x);
        add(block, k, x);
      }
    }
    return block.give(count, into);
  };
  if (pass([](Block& block, std::size_t k, typename Block::V x) { block.add(k, x); })) return;
  if (pass([](Block& block, std::size_t k, typename Block::V x) { block.add_finite(k, x); })) return;
  add_slowly(from, count, into);
}

template <class Real>
void add_reals(const Real* from, std::size_t count, Moments& into) {
  constexpr std::size_t kStep = Chains<Real>::kStep;
  while (count >= kStep) {
    const std::size_t block = std::min(count - count % kStep, kBlock);
    add_block(from, block, into);
    from += block;
    count -= block;
  }
  add_slowly(from, count, into);
}

float float_of_half(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 31;
  const std::uint32_t mantissa = bits & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13));
  if (exponent == 0) {
    const float small = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -small : small;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

float float_of_bfloat(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Other types pass through a block of numbers that are exact.
template <class Real, class Stored, class Convert>
void add_converted(const void* data, std::size_t first, std::size_t count, Convert convert, Moments& into) {
  const auto* from = static_cast<const Stored*>(data) + first;
  std::array<Real, kBlock> numbers;
  while (count > 0) {
    const std::size_t block = std::min(count, kBlock);
    for (std::size_t i = 0; i < block; ++i) numbers[i] = convert(from[i]);
    add_reals(numbers.data(), block, into);
    from += block;
    count -= block;
  }
}

template <class Real, class Stored>
void add_plain(const void* data, std::size_t first, std::size_t count, Moments& into) {
  add_converted<Real, Stored>(data, first, count, [](Stored x) { return static_cast<Real>(x); }, into);
}

void add_elements(const void* data, Element type, std::size_t first, std::size_t count, Moments& into) {
  switch (type) {
    case Element::f32:
      return add_reals(static_cast<const float*>(data) + first, count, into);
    case Element::f64:
      return add_reals(static_cast<const double*>(data) + first, count, into);
    case Element::f16:
      return add_converted<float, std::uint16_t>(data, first, count, float_of_half, into);
    case Element::bf16:
      return add_converted<float, std::uint16_t>(data, first, count, float_of_bfloat, into);
    case Element::i8:
      return add_plain<float, std::int8_t>(data, first, count, into);
    case Element::u8:
    case Element::boolean:
      return add_plain<float, std::uint8_t>(data, first, count, into);
    case Element::i16:
      return add_plain<float, std::int16_t>(data, first, count, into);
    case Element::i32:
      return add_plain<double, std::int32_t>(data, first, count, into);
    case Element::i64:
      return add_plain<double, std::int64_t>(data, first, count, into);
  }
}

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a ^ 0x9e3779b97f4a7c15U) * (b ^ 0xd6e8feb86659fd93U);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

}  // namespace

std::optional<Element> element_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Element>, 10> kNames{{{"float16", Element::f16},
                                                                         {"bfloat16", Element::bf16},
                                                                         {"float32", Element::f32},
                                                                         {"float64", Element::f64},
                                                                         {"int8", Element::i8},
                                                                         {"uint8", Element::u8},
                                                                         {"int16", Element::i16},
                                                                         {"int32", Element::i32},
                                                                         {"int64", Element::i64},
                                                                         {"bool", Element::boolean}}};
  for (const auto& [known, type] : kNames) {
    if (known == name) return type;
  }
  return std::nullopt;
}

std::size_t bytes_of(Element type) {
  switch (type) {
    case Element::f64:
    case Element::i64:
      return 8;
    case Element::f32:
    case Element::i32:
      return 4;
    case Element::f16:
    case Element::bf16:
    case Element::i16:
      return 2;
    case Element::i8:
    case Element::u8:
    case Element::boolean:
      break;
  }
  return 1;
}

void Moments::add(const Moments& other) noexcept {
  min = std::min(min, other.min);
  max = std::max(max, other.max);
  sum += other.sum;
  squares += other.squares;
  finite += other.finite;
  nonfinite += other.nonfinite;
}

double Moments::deviation() const noexcept {
  if (finite == 0) return 0;
  return std::sqrt(std::max(0.0, squares / static_cast<double>(finite) - mean() * mean()));
}

double Moments::peak() const noexcept { return finite > 0 ? std::max(std::abs(min), std::abs(max)) : 0; }

ArrayStatistics array_statistics(const void* data, Element type, std::size_t rows, std::size_t parts,
                                 std::size_t part_size) {
  ArrayStatistics found;
  found.parts.resize(parts);
  found.peaks.reserve(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    Moments of_row;
    for (std::size_t part = 0; part < parts; ++part) {
      Moments of_part;
      add_elements(data, type, (row * parts + part) * part_size, part_size, of_part);
      found.parts[part].add(of_part);
      of_row.add(of_part);
    }
    found.all.add(of_row);
    found.peaks.push_back(of_row.peak());
    if (of_row.nonfinite > 0) found.nonfinite_rows.push_back(static_cast<std::uint32_t>(row));
    const bool constant = of_row.nonfinite == 0 && of_row.finite > 1 && of_row.min == of_row.max;
    if (constant) found.constant_rows.push_back(static_cast<std::uint32_t>(row));
  }
  return found;
}

std::vector<std::uint64_t> row_hashes(const void* data, std::size_t rows, std::size_t row_bytes,
                                      std::uint64_t salt) {
  const auto* from = static_cast<const unsigned char*>(data);
  const std::size_t hashed = std::min(row_bytes, kHashedBytes);
  std::vector<std::uint64_t> hashes(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    std::uint64_t hash = mixed(salt, row_bytes);
    for (std::size_t at = 0; at < hashed; at += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, from + row * row_bytes + at, std::min(sizeof word, hashed - at));
      hash = mixed(hash, word);
    }
    hashes[row] = hash;
  }
  return hashes;
}

}  // namespace headrace::metrics
