// Operations on every total of a list (totals_of, figures.h): it is read from a cell, taken away, added
// up. How one is done follows from its type: numbers and histograms add up, of what may be unknown the known
// part.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "headrace/profile/figures.h"

namespace headrace::profile {

/// No counter reaches so much (73 years); a damaged file may say more. Three such times can be added up.
inline constexpr std::int64_t kMaxNs = std::int64_t{1} << 61;
inline std::int64_t sane_time(std::int64_t ns) { return std::clamp<std::int64_t>(ns, 0, kMaxNs); }
inline double sane(std::int64_t ns) { return static_cast<double>(sane_time(ns)); }
inline double sane(double sum) { return std::isfinite(sum) && sum > 0 ? sum : 0; }
inline double sane(std::uint32_t count) { return count; }
inline std::uint64_t sane(std::uint64_t count) { return std::min(count, std::uint64_t{1} << 53); }

template <class Totals>
concept Listed = requires { totals_of(Of<Totals>{}, [](auto...) {}); };

// --- from a cell ---

template <Listed Totals, class Cell>
void read(Totals& to, const Cell& cell);

template <class Number>
void read_one(double& to, const metrics::Relaxed<Number>& counter) {
  to = static_cast<double>(sane(counter.load()));
}
inline void read_one(std::uint64_t& to, const metrics::Relaxed<std::uint64_t>& counter) {
  to = sane(counter.load());
}
inline void read_one(std::optional<double>& to, const metrics::Relaxed<std::int64_t>& counter) {
  to = counter.load() < 0 ? std::nullopt : std::optional(sane(counter.load()));
}
inline void read_one(double& to, const metrics::ServiceSequence& sequence) {
  to = static_cast<double>(sane(sequence.count.load()));
}
inline void read_one(HistogramFigures& to, const metrics::LatencyHistogram& histogram) {
  for (std::size_t i = 0; i < to.buckets.size(); ++i) to.buckets[i] = sane(histogram.buckets[i].load());
  to.sum_ns = sane(histogram.sum_ns.load());
  to.max_ns = sane(histogram.max_ns.load());
}
template <Listed Totals, class Cell>
void read_one(Totals& to, const Cell& cell);
template <class Total, class Counter, std::size_t kSize>
void read_one(std::array<Total, kSize>& to, const std::array<Counter, kSize>& counters) {
  for (std::size_t i = 0; i < kSize; ++i) read_one(to[i], counters[i]);
}
template <Listed Totals, class Cell>
void read_one(Totals& to, const Cell& cell) {
  read(to, cell);
}

template <Listed Totals, class Cell>
void read(Totals& to, const Cell& cell) {
  totals_of(Of<Totals>{}, [&](auto total, auto counter, auto...) { read_one(to.*total, cell.*counter); });
}

// --- differences and sums ---

template <class Totals>
void subtract(Totals& from, const Totals& base);
template <class Totals>
void add(Totals& to, const Totals& other);

template <class Number>
  requires std::is_arithmetic_v<Number>
void subtract_one(Number& from, const Number& base) {
  from = from > base ? from - base : Number{0};
}
inline void subtract_one(std::optional<double>& from, const std::optional<double>& base) {
  if (from && base) subtract_one(*from, *base);
}
inline void subtract_one(HistogramFigures& from, const HistogramFigures& base) { from.subtract(base); }
template <class List>
  requires requires(List list) { list.size(); }
void subtract_one(List& from, const List& base) {
  for (std::size_t i = 0; i < from.size() && i < base.size(); ++i) subtract_one(from[i], base[i]);
}
template <Listed Totals>
void subtract_one(Totals& from, const Totals& base) {
  subtract(from, base);
}

template <class Totals>
void subtract(Totals& from, const Totals& base) {
  totals_of(Of<Totals>{}, [&](auto total, auto...) { subtract_one(from.*total, base.*total); });
}

template <class Number>
  requires std::is_arithmetic_v<Number>
void add_one(Number& to, const Number& other) {
  to += other;
}
inline void add_one(std::optional<double>& to, const std::optional<double>& other) {
  if (other) to = to.value_or(0) + *other;
}
inline void add_one(HistogramFigures& to, const HistogramFigures& other) { to.add(other); }
template <class List>
  requires requires(List list) { list.size(); }
void add_one(List& to, const List& other) {
  for (std::size_t i = 0; i < to.size() && i < other.size(); ++i) add_one(to[i], other[i]);
}
template <Listed Totals>
void add_one(Totals& to, const Totals& other) {
  add(to, other);
}

template <class Totals>
void add(Totals& to, const Totals& other) {
  totals_of(Of<Totals>{}, [&](auto total, auto...) { add_one(to.*total, other.*total); });
}

// --- between cells: those of writers that are gone ---

template <Listed Totals, class Cell>
void fold(Cell& to, const Cell& cell);

template <class Total, class Number>
void fold_one(metrics::Relaxed<Number>& to, const metrics::Relaxed<Number>& counter) {
  if constexpr (std::is_same_v<Total, std::optional<double>>) {
    if (counter.load() >= 0) to.store(std::max<Number>(0, to.load()) + counter.load());
  } else {
    to.bump(counter.load());
  }
}
template <class Total>
void fold_one(metrics::LatencyHistogram& to, const metrics::LatencyHistogram& histogram) {
  to.merge(histogram);
}
template <class Total>
void fold_one(metrics::ServiceSequence& to, const metrics::ServiceSequence& sequence) {
  to.append(sequence);
}
template <class Total, class Number, std::size_t kSize>
void fold_one(std::array<metrics::Relaxed<Number>, kSize>& to,
              const std::array<metrics::Relaxed<Number>, kSize>& counters) {
  for (std::size_t i = 0; i < kSize; ++i) fold_one<typename Total::value_type>(to[i], counters[i]);
}
template <Listed Total, class Cell>
void fold_one(Cell& to, const Cell& cell) {
  fold<Total>(to, cell);
}

template <Listed Totals, class Cell>
void fold(Cell& to, const Cell& cell) {
  totals_of(Of<Totals>{}, [&]<class Total>(Total Totals::*, auto counter, auto...) {
    fold_one<Total>(to.*counter, cell.*counter);
  });
}

/// Nothing is known yet of what may be unknown; the rest of a cleared cell is 0 as it is.
template <Listed Totals, class Cell>
void begin_unknown(Cell& cell) {
  totals_of(Of<Totals>{}, [&]<class Total>(Total Totals::*, auto counter, auto...) {
    if constexpr (std::is_same_v<Total, std::optional<double>>) (cell.*counter).store(-1);
  });
}

// --- into the profile ---

/// Counts stay counts; nanoseconds become seconds.
template <class Figure, class Total>
void tell(Figure& figure, const Total& total) {
  if constexpr (std::is_integral_v<Figure>) {
    figure = static_cast<Figure>(total);
  } else {
    figure = total * 1e-9;
  }
}
template <class Figure>
void tell(std::optional<Figure>& figure, const std::optional<double>& total) {
  figure.reset();
  if (total) tell(figure.emplace(), *total);
}

/// The totals that a figure of the profile is named for.
template <Listed Totals, class Profile>
void copy_totals(Profile& to, const Totals& totals) {
  totals_of(Of<Totals>{}, [&]<class... Figure>(auto total, auto, Figure... figure) {
    if constexpr (sizeof...(Figure) > 0) (tell(to.*figure, totals.*total), ...);
  });
}

}  // namespace headrace::profile
