// Storage of a trace's columns: arrays that grow to many megabytes without being copied.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace headrace::trace {

/// Memory that can be had longer, whatever is in it. While it is small it comes from the heap; from a quarter
/// of a megabyte on it is pages of its own, which are moved instead of copied, and of which only those count
/// that were written to. So an array that grows is never there twice, and leaves no hole in the heap.
class GrowingMemory {
 public:
  GrowingMemory() = default;
  ~GrowingMemory();
  GrowingMemory(GrowingMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  GrowingMemory& operator=(GrowingMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }

  /// Makes it at least `bytes` long, and at least twice as long as it was. Throws std::bad_alloc.
  void grow(std::size_t bytes);

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// The part of std::vector's interface that columns need, for plain numbers. One writer at a time.
template <class T>
class Values {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  using value_type = T;
  using const_iterator = const T*;
  using iterator = const_iterator;

  Values() = default;
  Values(std::initializer_list<T> values) { append(values); }
  Values(const Values& other) { append(other); }
  Values(Values&& other) noexcept
      : memory_(std::move(other.memory_)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  Values& operator=(Values other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~Values() = default;

  void push_back(T value) {
    if (size_ == capacity_) grow(size_ + 1);
    data()[size_++] = value;
  }
  void pop_back() noexcept {
    assert(size_ > 0);
    --size_;
  }
  void append(std::span<const T> values) {
    if (values.size() > capacity_ - size_) grow(size_ + values.size());
    std::copy(values.begin(), values.end(), data() + size_);
    size_ += values.size();
  }
  void resize(std::size_t size, T fill = T{}) {
    if (size > capacity_) grow(size);
    if (size > size_) std::fill(data() + size_, data() + size, fill);
    size_ = size;
  }

  T* data() noexcept { return static_cast<T*>(memory_.data()); }
  const T* data() const noexcept { return static_cast<const T*>(memory_.data()); }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  /// Bytes in use. What was asked for ahead and never written to is nowhere.
  std::size_t bytes() const noexcept { return size_ * sizeof(T); }

  T& operator[](std::size_t i) noexcept {
    assert(i < size_);
    return data()[i];
  }
  const T& operator[](std::size_t i) const noexcept {
    assert(i < size_);
    return data()[i];
  }
  /// Throws std::out_of_range if there is no such item.
  T at(std::size_t i) const {
    if (i >= size_) throw std::out_of_range("no such item in a column");
    return (*this)[i];
  }
  T front() const noexcept { return (*this)[0]; }
  T back() const noexcept { return (*this)[size_ - 1]; }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size_; }

  friend bool operator==(const Values& a, std::span<const T> b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend bool operator==(const Values& a, const Values& b) noexcept { return a == std::span<const T>(b); }

 private:
  void grow(std::size_t size) {
    memory_.grow(size * sizeof(T));
    capacity_ = memory_.bytes() / sizeof(T);
  }

  GrowingMemory memory_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

/// Integers of a type that is hardly ever needed: they are kept in a narrower one until the first that does
/// not fit. Numbers of streams and calls are 64 bits wide in the format, and small in nearly every file.
template <class Narrow, class Wide>
class Compact {
  static_assert(sizeof(Narrow) < sizeof(Wide) && std::is_signed_v<Narrow> == std::is_signed_v<Wide>);

 public:
  using value_type = Wide;

  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Wide;
    using difference_type = std::ptrdiff_t;
    using pointer = const Wide*;
    using reference = Wide;

    Iterator() = default;
    Iterator(const Compact* values, std::size_t at) noexcept : values_(values), at_(at) {}
    Wide operator*() const noexcept { return (*values_)[at_]; }
    Iterator& operator++() noexcept { return ++at_, *this; }
    Iterator operator++(int) noexcept { return {values_, at_++}; }
    bool operator==(const Iterator&) const = default;

   private:
    const Compact* values_ = nullptr;
    std::size_t at_ = 0;
  };
  using iterator = Iterator;
  using const_iterator = Iterator;

  Compact() = default;
  Compact(std::initializer_list<Wide> values) {
    for (const Wide value : values) push_back(value);
  }

  void push_back(Wide value) {
    if (!is_wide_ && value != static_cast<Wide>(static_cast<Narrow>(value))) widen();
    if (is_wide_) return wide_.push_back(value);
    narrow_.push_back(static_cast<Narrow>(value));
  }
  void pop_back() noexcept { is_wide_ ? wide_.pop_back() : narrow_.pop_back(); }
  void resize(std::size_t size) { is_wide_ ? wide_.resize(size) : narrow_.resize(size); }

  Wide operator[](std::size_t i) const noexcept { return is_wide_ ? wide_[i] : Wide{narrow_[i]}; }
  /// Throws std::out_of_range if there is no such item.
  Wide at(std::size_t i) const { return is_wide_ ? wide_.at(i) : Wide{narrow_.at(i)}; }
  Wide back() const noexcept { return (*this)[size() - 1]; }
  Iterator begin() const noexcept { return {this, 0}; }
  Iterator end() const noexcept { return {this, size()}; }
  std::size_t size() const noexcept { return is_wide_ ? wide_.size() : narrow_.size(); }
  bool empty() const noexcept { return size() == 0; }
  std::size_t bytes() const noexcept { return narrow_.bytes() + wide_.bytes(); }

  /// True if `wide` holds the values; the other is empty.
  bool is_wide() const noexcept { return is_wide_; }
  const Values<Narrow>& narrow() const noexcept { return narrow_; }
  const Values<Wide>& wide() const noexcept { return wide_; }

  friend bool operator==(const Compact& a, const Compact& b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend bool operator==(const Compact& a, std::span<const Wide> b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  void widen() {
    for (const Narrow value : narrow_) wide_.push_back(value);
    narrow_ = {};
    is_wide_ = true;
  }

  bool is_wide_ = false;
  Values<Narrow> narrow_;
  Values<Wide> wide_;
};

using CompactIntegers = Compact<std::int32_t, std::int64_t>;

}  // namespace headrace::trace
