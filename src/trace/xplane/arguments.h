// Which stats of an event become arguments of its row.
#pragma once

#include <string_view>

#include "headrace/trace/reader.h"

namespace headrace::trace::xplane {

/// The number of a step.
inline constexpr std::string_view kStepNumber = "step_num";
/// What ties an event that asks for work to the one that does it, on another thread: type and number, of
/// both.
inline constexpr std::string_view kProducerType = "_pt";
inline constexpr std::string_view kProducer = "_p";
inline constexpr std::string_view kConsumerType = "_ct";
inline constexpr std::string_view kConsumer = "_c";
/// Of a call of an iterator of tf.data: its own number and that of the one which asked, the dataset, calls at
/// a time, elements that are ready, and how many may be.
inline constexpr std::string_view kIterator = "id";
inline constexpr std::string_view kIteratorAbove = "parent_id";
inline constexpr std::string_view kDataset = "name";
inline constexpr std::string_view kParallelism = "parallelism";
inline constexpr std::string_view kLevel = "buffered_elements";
inline constexpr std::string_view kCapacity = "buffer_limit";
/// Cores that tf.data counts with.
inline constexpr std::string_view kCores = "cpu_budget";

/// Of a copy, a fill, an operation of XLA; arguments where JSON is read.
inline constexpr std::string_view kCopyDetails = "memcpy_details";
inline constexpr std::string_view kFillDetails = "memset_details";
inline constexpr std::string_view kOperationKind = "hlo_category";

/// The argument for a stat, "" for those that are left in the file.
std::string_view argument_of(std::string_view stat) noexcept;

/// `options` with these arguments. `of_json`: and those by which the kind of an event is known.
ReadOptions with_arguments(ReadOptions options, bool of_json = false);

}  // namespace headrace::trace::xplane
