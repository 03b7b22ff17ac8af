#include "analysis/device/operator_cost.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

namespace headrace::analysis::device {
namespace {

using Shape = std::vector<double>;

enum class CostForm : std::uint8_t {
  product,
  attention,
  convolution,
  convolution_backward,
  norm,
  elementwise
};

/// Positions of a formula's operands among the operator's inputs.
struct CostFormula {
  std::string_view name;
  CostForm form = CostForm::elementwise;
  int first = 0;  ///< the first operand: A, query, input
  bool backward = false;
  bool heads_last = false;  ///< attention: batch, sequence, head, width
  int flag = -1;            ///< attention: is_causal
  int stride = -1;          ///< convolution
  int padding = -1;
  int dilation = -1;
  int groups = -1;
};

constexpr CostFormula product(std::string_view name, int first) { return {name, CostForm::product, first}; }
constexpr CostFormula attention(std::string_view name, bool backward, bool heads_last, int flag) {
  return {name, CostForm::attention, backward ? 1 : 0, backward, heads_last, flag};
}
constexpr CostFormula convolution(std::string_view name, int stride, int padding, int dilation, int groups) {
  return {name, CostForm::convolution, 0, false, false, -1, stride, padding, dilation, groups};
}
constexpr CostFormula norm(std::string_view name, bool backward = false) {
  return {name, CostForm::norm, 0, backward};
}
constexpr CostFormula elementwise(std::string_view name) { return {name, CostForm::elementwise}; }

constexpr std::array kCostFormulas = {
    product("aten::mm", 0),
    product("aten::addmm", 1),
    product("aten::bmm", 0),
    product("aten::baddbmm", 1),
    product("aten::_scaled_mm", 0),
    product("aten::_int_mm", 0),
    product("aten::mv", 0),
    attention("aten::_scaled_dot_product_flash_attention", false, false, 4),
    attention("aten::_scaled_dot_product_efficient_attention", false, false, 6),
    attention("aten::_scaled_dot_product_cudnn_attention", false, false, 6),
    attention("aten::_flash_attention_forward", false, true, 8),
    attention("aten::_efficient_attention_forward", false, true, -1),
    attention("flash_attn::_flash_attn_forward", false, true, 5),
    attention("aten::_scaled_dot_product_flash_attention_backward", true, false, 11),
    attention("aten::_scaled_dot_product_efficient_attention_backward", true, false, -1),
    attention("aten::_flash_attention_backward", true, true, 11),
    attention("aten::_efficient_attention_backward", true, true, -1),
    attention("flash_attn::_flash_attn_backward", true, true, -1),
    convolution("aten::convolution", 3, 4, 5, 8),
    convolution("aten::_convolution", 3, 4, 5, 8),
    convolution("aten::cudnn_convolution", 3, 2, 4, 5),
    convolution("aten::miopen_convolution", 4, 3, 5, 6),
    convolution("aten::mkldnn_convolution", 4, 3, 5, 6),
    CostFormula{"aten::convolution_backward", CostForm::convolution_backward, 1},
    norm("aten::native_layer_norm"),
    norm("aten::native_batch_norm"),
    norm("aten::cudnn_batch_norm"),
    norm("aten::miopen_batch_norm"),
    norm("aten::native_group_norm"),
    norm("aten::_fused_rms_norm"),
    norm("aten::_softmax"),
    norm("aten::_log_softmax"),
    norm("aten::native_layer_norm_backward", true),
    norm("aten::native_batch_norm_backward", true),
    norm("aten::cudnn_batch_norm_backward", true),
    norm("aten::miopen_batch_norm_backward", true),
    norm("aten::native_group_norm_backward", true),
    norm("aten::_softmax_backward_data", true),
    norm("aten::_log_softmax_backward_data", true),
    elementwise("aten::add"),
    elementwise("aten::add_"),
    elementwise("aten::sub"),
    elementwise("aten::mul"),
    elementwise("aten::mul_"),
    elementwise("aten::div"),
    elementwise("aten::div_"),
    elementwise("aten::relu"),
    elementwise("aten::relu_"),
    elementwise("aten::clamp_min"),
    elementwise("aten::clamp_min_"),
    elementwise("aten::gelu"),
    elementwise("aten::silu"),
    elementwise("aten::sigmoid"),
    elementwise("aten::tanh"),
    elementwise("aten::gelu_backward"),
    elementwise("aten::silu_backward"),
    elementwise("aten::threshold_backward"),
    elementwise("aten::copy_"),
};

const CostFormula* formula_of(std::string_view name) noexcept {
  const auto* const at = std::find_if(kCostFormulas.begin(), kCostFormulas.end(),
                                      [&](const CostFormula& each) { return each.name == name; });
  return at == kCostFormulas.end() ? nullptr : at;
}

constexpr double kLargest = 1e15;  // no dimension is

/// The numbers of the flat list that begins at `at`; `at` goes behind it.
Shape numbers_at(std::string_view text, std::size_t& at) {
  Shape shape;
  while (at < text.size() && text[at] != ']') {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (error == std::errc()) {
      shape.push_back(std::clamp(value, 0.0, kLargest));
      at = static_cast<std::size_t>(end - text.data());
    } else {
      ++at;
    }
  }
  if (at < text.size()) ++at;
  return shape;
}

/// "[[8, 16], [], [4]]": a shape for each input. Lists of tensors are left empty.
std::vector<Shape> shapes_of(std::string_view text) {
  std::vector<Shape> shapes;
  int depth = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '[') {
      ++depth;
      ++at;
      if (depth == 2) {
        const std::size_t first = text.find_first_not_of(' ', at);
        const bool is_list = first != std::string_view::npos && text[first] == '[';
        if (is_list) {
          shapes.emplace_back();
        } else {
          shapes.push_back(numbers_at(text, at));
          --depth;
        }
      }
    } else {
      depth -= text[at] == ']' ? 1 : 0;
      ++at;
    }
  }
  return shapes;
}

/// The texts of a JSON list; escapes stay.
std::vector<std::string_view> texts_of_list(std::string_view text) {
  std::vector<std::string_view> texts;
  std::size_t at = 0;
  while ((at = text.find('"', at)) != std::string_view::npos) {
    const std::size_t end = text.find('"', at + 1);
    if (end == std::string_view::npos) break;
    texts.push_back(text.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return texts;
}

double bytes_of_element(std::string_view type) noexcept {
  constexpr double kUnknown = 4;
  if (type.find("8") != std::string_view::npos && type.find("Float8") != std::string_view::npos) return 1;
  if (type == "double" || type == "long int" || type == "long" || type == "c10::complex<float>") return 8;
  if (type == "float" || type == "int") return 4;
  if (type == "c10::BFloat16" || type == "c10::Half" || type == "short") return 2;
  if (type == "unsigned char" || type == "signed char" || type == "bool") return 1;
  return kUnknown;
}

double elements(const Shape& shape) noexcept {
  double product_of = 1;
  for (const double each : shape) product_of *= each;
  return shape.empty() ? 0 : product_of;
}

/// The inputs of one call.
class Inputs {
 public:
  Inputs(std::string_view dims, std::string_view types, std::string_view concrete)
      : shapes_(shapes_of(dims)), types_(texts_of_list(types)), concrete_(texts_of_list(concrete)) {}

  const Shape* shape(int at) const noexcept {
    const auto index = static_cast<std::size_t>(at);
    return at >= 0 && index < shapes_.size() && !shapes_[index].empty() ? &shapes_[index] : nullptr;
  }
  double element_bytes(int at) const noexcept {
    const auto index = static_cast<std::size_t>(at);
    return bytes_of_element(index < types_.size() ? types_[index] : std::string_view());
  }
  std::string_view concrete(int at) const noexcept {
    const auto index = static_cast<std::size_t>(at);
    return at >= 0 && index < concrete_.size() ? concrete_[index] : std::string_view();
  }
  /// Sum over all tensors.
  double bytes() const noexcept {
    double sum = 0;
    for (std::size_t i = 0; i < shapes_.size(); ++i)
      sum += elements(shapes_[i]) * element_bytes(static_cast<int>(i));
    return sum;
  }
  const Shape& largest() const noexcept {
    return *std::max_element(shapes_.begin(), shapes_.end(),
                             [](const Shape& a, const Shape& b) { return elements(a) < elements(b); });
  }
  bool empty() const noexcept { return shapes_.empty(); }

 private:
  std::vector<Shape> shapes_;
  std::vector<std::string_view> types_;
  std::vector<std::string_view> concrete_;
};

std::optional<OperatorCost> cost_of_product(const CostFormula& formula, const Inputs& inputs) {
  const Shape* const a = inputs.shape(formula.first);
  const Shape* const b = inputs.shape(formula.first + 1);
  if (a == nullptr || b == nullptr || a->size() < 2) return std::nullopt;
  const double k = a->back();
  const double n = b->size() < 2 ? 1 : b->back();
  const double k_of_b = b->size() < 2 ? b->back() : (*b)[b->size() - 2];
  if (k != k_of_b) return std::nullopt;
  const double rows = elements(*a) / std::max(1.0, k);  // of all matrices of a batch
  double out_bytes = inputs.element_bytes(formula.first);
  if (out_bytes < 2) out_bytes = 2;  // of eight bits, the result has sixteen
  return OperatorCost{"gemm", 2 * rows * n * k, inputs.bytes() + rows * n * out_bytes};
}

bool is_true(std::string_view text) noexcept { return text == "True" || text == "true" || text == "1"; }

std::optional<OperatorCost> cost_of_attention(const CostFormula& formula, const Inputs& inputs) {
  const Shape* const query = inputs.shape(formula.first);
  const Shape* const key = inputs.shape(formula.first + 1);
  if (query == nullptr || key == nullptr || query->size() != 4 || key->size() != 4) return std::nullopt;
  const std::size_t sequence = formula.heads_last ? 1 : 2;
  const double rows = (*query)[sequence];
  const double columns = (*key)[sequence];
  double flops = 4 * elements(*query) * columns;
  if (is_true(inputs.concrete(formula.flag)) && rows == columns) flops /= 2;
  constexpr double kBackward = 2.5;
  if (formula.backward) flops *= kBackward;
  const double out = elements(*query) * inputs.element_bytes(formula.first);
  return OperatorCost{"attention", flops, inputs.bytes() + (formula.backward ? 3 * out : out)};
}

double number_of(std::string_view list, std::size_t at, double otherwise) {
  std::size_t from = list.find('[');
  if (from == std::string_view::npos) return otherwise;
  const Shape numbers = numbers_at(list, ++from);
  if (numbers.empty()) return otherwise;
  return at < numbers.size() ? numbers[at] : numbers.front();
}

std::optional<OperatorCost> cost_of_convolution(const CostFormula& formula, const Inputs& inputs) {
  const Shape* const input = inputs.shape(0);
  const Shape* const weight = inputs.shape(1);
  if (input == nullptr || weight == nullptr || input->size() < 3 || weight->size() != input->size())
    return std::nullopt;
  if (inputs.concrete(formula.stride).empty() || inputs.concrete(formula.padding).empty())
    return std::nullopt;
  double out = input->front() * weight->front();
  for (std::size_t i = 2; i < input->size(); ++i) {
    const double stride = number_of(inputs.concrete(formula.stride), i - 2, 1);
    const double padding = number_of(inputs.concrete(formula.padding), i - 2, 0);
    const double dilation = number_of(inputs.concrete(formula.dilation), i - 2, 1);
    const double reach = dilation * ((*weight)[i] - 1) + 1;
    if (stride < 1 || (*input)[i] + 2 * padding < reach) return std::nullopt;
    out *= static_cast<double>(static_cast<std::int64_t>(((*input)[i] + 2 * padding - reach) / stride)) + 1;
  }
  const double each = elements(*weight) / std::max(1.0, weight->front());
  return OperatorCost{"convolution", 2 * out * each, inputs.bytes() + out * inputs.element_bytes(0)};
}

std::optional<OperatorCost> cost_of_convolution_backward(const Inputs& inputs) {
  constexpr int kOutputMask = 10;
  const Shape* const gradient = inputs.shape(0);
  const Shape* const input = inputs.shape(1);
  const Shape* const weight = inputs.shape(2);
  if (gradient == nullptr || input == nullptr || weight == nullptr) return std::nullopt;
  const std::string_view mask = inputs.concrete(kOutputMask);
  const std::size_t comma = mask.find(',');
  const bool to_input = mask.empty() || mask.substr(0, comma).find("rue") != std::string_view::npos;
  const bool to_weight =
      mask.empty() || mask.substr(std::min(comma, mask.size())).find("rue") != std::string_view::npos;
  const double each = 2 * elements(*gradient) * elements(*weight) / std::max(1.0, weight->front());
  const double written = (to_input ? elements(*input) * inputs.element_bytes(1) : 0) +
                         (to_weight ? elements(*weight) * inputs.element_bytes(2) : 0);
  return OperatorCost{"convolution", each * ((to_input ? 1 : 0) + (to_weight ? 1 : 0)),
                      inputs.bytes() + written};
}

}  // namespace

bool has_cost(std::string_view name) noexcept { return formula_of(name) != nullptr; }

std::optional<OperatorCost> cost_of(std::string_view name, std::string_view dims, std::string_view types,
                                    std::string_view concrete) {
  const CostFormula* const formula = formula_of(name);
  const Inputs inputs(dims, types, concrete);
  if (formula == nullptr || inputs.empty()) return std::nullopt;
  switch (formula->form) {
    case CostForm::product:
      return cost_of_product(*formula, inputs);
    case CostForm::attention:
      return cost_of_attention(*formula, inputs);
    case CostForm::convolution:
      return cost_of_convolution(*formula, inputs);
    case CostForm::convolution_backward:
      return cost_of_convolution_backward(inputs);
    case CostForm::norm: {
      const Shape* const input = inputs.shape(0);
      if (input == nullptr) return std::nullopt;
      constexpr double kForward = 5;
      const double count = elements(*input);
      return OperatorCost{"normalisation", count * kForward * (formula->backward ? 2 : 1),
                          inputs.bytes() + count * inputs.element_bytes(0)};
    }
    case CostForm::elementwise:
      break;
  }
  const double count = elements(inputs.largest());
  if (count <= 0) return std::nullopt;
  constexpr std::string_view kCopy = "aten::copy_";
  // A copy's first input is what it writes.
  if (name == kCopy) return OperatorCost{"elementwise", 0, inputs.bytes()};
  return OperatorCost{"elementwise", count, inputs.bytes() + count * inputs.element_bytes(0)};
}

}  // namespace headrace::analysis::device
