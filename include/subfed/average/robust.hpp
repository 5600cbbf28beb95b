// SPDX-License-Identifier: MIT
/// Averages that a minority of lying clients cannot move far: the median and the trimmed mean of every
/// parameter over the clients that hold it.
#pragma once

#include <subfed/average/cohort.hpp>
#include <subfed/average/detail/any_element.hpp>
#include <subfed/average/detail/checks.hpp>
#include <subfed/average/held_elements.hpp>
#include <subfed/average/options.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/internals.hpp>
#include <subfed/detail/memory_overlap.hpp>
#include <subfed/detail/tensor_checks.hpp>
#include <subfed/error.hpp>
#include <subfed/executor.hpp>
#include <subfed/model.hpp>
#include <subfed/scalar.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>
#include <subfed/untyped_view.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// What a parameter with few holders gets: of two values, no majority says which is the lie.
enum class few_holders {
  keep,  ///< its bits stay
  mean,  ///< the mean of its holders
};

struct robust_options {
  /// Of h values, floor(trim h + 1e-9) at each end are left out, but never all. 0: the mean; 1/2: the
  /// median, the middle value or the mean of the two in the middle.
  double trim = 0.5;
  /// Parameters with fewer holders are few_holders.
  std::int64_t least_holders = 3;
  few_holders on_few = few_holders::keep;
  subfed::content content = content::parameters;  ///< deltas: the result is added to the old value

  friend bool operator==(const robust_options&, const robust_options&) = default;
};

struct robust_report {
  std::int64_t clients = 0;           ///< updates that took part
  std::int64_t held = 0;              ///< elements with a new value
  std::int64_t few = 0;               ///< of all elements: those with some holders, but too few
  std::int64_t unheld = 0;            ///< elements that nobody held
  std::int64_t kept = 0;              ///< integers, counters and local tensors
  std::int64_t skipped_elements = 0;  ///< values that are not finite: as if not held
  std::int64_t trimmed_elements =
      0;  ///< values that were left out at the ends, or beside the middle
  std::int64_t overflowed =
      0;  ///< results of finite values that became infinite, being too large for T

  friend bool operator==(const robust_report&, const robust_report&) = default;
};

namespace detail {

/// A client's part in one tensor, and for each dimension where a global index is in it, or -1.
struct robust_holder {
  any_pointer data;
  std::array<std::int64_t, max_rank> strides = {};
  std::vector<std::vector<std::int64_t>> places = {};
};

inline std::vector<std::vector<std::int64_t>> places_in(const selection& chosen,
                                                        std::span<const std::int64_t> extents) {
  std::vector<std::vector<std::int64_t>> out;
  for (std::size_t r = 0; r < extents.size(); ++r) {
    out.emplace_back(static_cast<std::size_t>(extents[r]), std::int64_t{-1});
    for (const run& part : chosen.dimension(static_cast<int>(r)).runs) {
      for (std::int64_t i = 0; i < part.length; ++i) {
        out.back()[static_cast<std::size_t>(part.first + i)] = part.position + i;
      }
    }
  }
  return out;
}

/// Doubles that are sorted as integers, which does not depend on flags and puts -0 before 0.
class sorted_values {
 public:
  void clear() noexcept { keys_.clear(); }
  void add(double x) {
    const auto bits = std::bit_cast<std::int64_t>(x);
    keys_.push_back(bits < 0 ? bits ^ mask : bits);
  }
  std::int64_t size() const noexcept { return static_cast<std::int64_t>(keys_.size()); }

  /// The mean of all but k at each end, added from the least up.
  double mean_without(std::int64_t k) {
    std::sort(keys_.begin(), keys_.end());
    const std::int64_t end = size() - k;
    const auto sum_of = [&](double scale) {
      double sum = -0.0;
      for (std::int64_t i = k; i < end; ++i) sum += value(i) * scale;
      return sum;
    };
    const auto count = static_cast<double>(end - k);
    const double sum = sum_of(1);
    if (is_finite_double(sum)) return sum / count;
    return sum_of(0x1p-64) / count * 0x1p64;
  }

 private:
  static constexpr std::int64_t mask = 0x7FFFFFFFFFFFFFFF;
  double value(std::int64_t i) const noexcept {
    const std::int64_t key = keys_[static_cast<std::size_t>(i)];
    return std::bit_cast<double>(key < 0 ? key ^ mask : key);
  }
  std::vector<std::int64_t> keys_;
};

/// How many are left out at each end of h values.
inline std::int64_t trimmed_of(std::int64_t h, double trim) noexcept {
  const auto k = static_cast<std::int64_t>(rounded_product(trim, static_cast<double>(h)) + 1e-9);
  return (std::min)(k, (h - 1) / 2);
}

/// Elements of the rows begin .. end-1 of a tensor. A row is one index of all dimensions but the last.
/// taken, where it is not null: of each element whether it gets a value.
template <class E>
void robust_rows(const tensor_view<E>& global, const std::vector<robust_holder>& holders,
                 const robust_options& options, std::int64_t begin, std::int64_t end,
                 robust_report& report, std::vector<unsigned char>* taken) {
  using traits = scalar_traits<E>;
  struct active {
    const robust_holder* holder;
    std::int64_t offset;
  };
  const auto rank = static_cast<std::size_t>(global.rank());
  const std::size_t outer = rank == 0 ? 0 : rank - 1;
  std::vector<active> here;
  sorted_values values;
  for (std::int64_t row = begin; row < end; ++row) {
    std::array<std::int64_t, max_rank> index{};
    std::int64_t rest = row;
    std::int64_t at = 0;
    for (std::size_t r = outer; r-- > 0;) {
      index[r] = rest % global.extents()[r];
      rest /= global.extents()[r];
      at += index[r] * global.strides()[r];
    }
    here.clear();
    for (const robust_holder& h : holders) {
      std::int64_t offset = 0;
      bool holds = true;
      for (std::size_t r = 0; holds && r < outer; ++r) {
        const std::int64_t place = h.places[r][static_cast<std::size_t>(index[r])];
        holds = place >= 0;
        offset += place * h.strides[r];
      }
      if (holds) here.push_back({&h, offset});
    }
    const std::int64_t length = rank == 0 ? 1 : global.extents()[outer];
    const std::int64_t stride = rank == 0 ? 1 : global.strides()[outer];
    if (taken != nullptr) taken->resize(static_cast<std::size_t>((end - begin) * length), 0);
    for (std::int64_t i = 0; i < length; ++i) {
      values.clear();
      for (const active& a : here) {
        std::int64_t place = 0;
        if (rank != 0) {
          place = a.holder->places[outer][static_cast<std::size_t>(i)];
          if (place < 0) continue;
          place *= a.holder->strides[outer];
        }
        const double x = load_at(a.holder->data + (a.offset + place));
        if (is_finite_double(x)) {
          values.add(x);
        } else {
          ++report.skipped_elements;
        }
      }
      const std::int64_t h = values.size();
      const bool few = h < options.least_holders;
      if (h == 0) {
        ++report.unheld;
        continue;
      }
      report.few += few ? 1 : 0;
      if (few && options.on_few == few_holders::keep) continue;
      ++report.held;
      if (taken != nullptr) (*taken)[static_cast<std::size_t>((row - begin) * length + i)] = 1;
      const std::int64_t k = few ? 0 : trimmed_of(h, options.trim);
      report.trimmed_elements += 2 * k;
      const double value = values.mean_without(k);
      E& element = global.data_handle()[at + i * stride];
      const double old = options.content == content::deltas ? traits::load(element) : -0.0;
      element = traits::store(old + value);
      if (!traits::is_finite(element) && is_finite_double(old)) ++report.overflowed;
    }
  }
}

inline void check_robust_options(const robust_options& options) {
  if (!is_finite_double(options.trim) || options.trim < 0 || options.trim > 0.5) {
    fail("subfed: robust_cohort: trim is " + text(options.trim) + ", expected 0 to 1/2");
  }
  if (options.least_holders < 1) {
    fail("subfed: robust_cohort: least_holders is " + std::to_string(options.least_holders) +
         ", expected 1 or more");
  }
}

inline void add_counts(robust_report& to, const robust_report& from) noexcept {
  to.held += from.held;
  to.few += from.few;
  to.unheld += from.unheld;
  to.skipped_elements += from.skipped_elements;
  to.trimmed_elements += from.trimmed_elements;
  to.overflowed += from.overflowed;
}

/// held may be null.
template <class T, class U, class Executor>
robust_report robust_updates(const model& net, std::span<const update<U>> updates,
                             const tensor_views<T>& globals, held_elements* held,
                             const robust_options& options, Executor&& run_by) {
  check_robust_options(options);
  check_globals("robust_cohort", net, globals);
  robust_report report;
  placed_tensors memory;
  for (std::size_t t = 0; t < globals.size(); ++t) {
    memory.add(globals[t], net.tensors()[t].name, access::writes);
  }
  for (const auto& u : updates) {
    check_update<U>("robust_cohort", net, u.sub, u.tensors, u.weight);
    check_convertible("robust_cohort", net, globals, u.tensors, options.content);
    if (!(u.weight > 0)) continue;
    ++report.clients;
    for (std::size_t t = 0; t < globals.size(); ++t) {
      if (net.tensors()[t].is_local()) continue;
      memory.add(u.tensors[t], net.tensors()[t].name, access::reads);
    }
  }
  memory.check_apart("robust_cohort");
  held_elements held_now;  // given to the caller when all is done
  if (held != nullptr) held_now = held_elements(net);
  for (std::size_t t = 0; t < globals.size(); ++t) {
    const auto& info = net.tensors()[t];
    with_type(globals[t], [&]<class E>(const tensor_view<E>& global) {
      if constexpr (averageable<E>) {
        if (!info.is_local() && info.role != role::counter) {
          if (global.size() == 0) return;
          std::vector<robust_holder> holders;
          for (const auto& u : updates) {
            if (!(u.weight > 0)) continue;
            with_type(u.tensors[t], [&]<class F>(const tensor_view<const F>& tensor) {
              if constexpr (averageable<F>) {
                robust_holder h;
                h.data = element_pointer<any_element>::from(tensor.data_handle());
                std::copy(tensor.strides().begin(), tensor.strides().end(), h.strides.begin());
                h.places = places_in(u.sub[tensor_id(t)], info.extents);
                holders.push_back(std::move(h));
              }
            });
          }
          const std::int64_t length =
              global.rank() == 0 ? 1
                                 : global.extents()[static_cast<std::size_t>(global.rank() - 1)];
          const std::int64_t rows = global.size() / length;
          const std::int64_t a_part = (std::max)(std::int64_t{1 << 14} / length, std::int64_t{1});
          std::vector<robust_report> parts(static_cast<std::size_t>((rows + a_part - 1) / a_part));
          std::vector<std::vector<unsigned char>> taken(held != nullptr ? parts.size() : 0);
          run_parts(run_by, static_cast<std::int64_t>(parts.size()), [&](std::int64_t p) {
            const float_mode mode;
            const auto number = static_cast<std::size_t>(p);
            robust_rows(global, holders, options, p * a_part, (std::min)(rows, (p + 1) * a_part),
                        parts[number], held != nullptr ? &taken[number] : nullptr);
          });
          for (const robust_report& part : parts) add_counts(report, part);
          std::int64_t element = 0;
          for (const std::vector<unsigned char>& part : taken) {
            for (const unsigned char has : part) {
              if (has != 0) internals::add(held_now, t, element, 1, 1);
              ++element;
            }
          }
          return;
        }
      }
      report.kept += global.size();
    });
  }
  if (held != nullptr) *held = std::move(held_now);
  return report;
}

}  // namespace detail

/// Gives every global parameter the trimmed mean, or the median, of the clients that hold it:
///
///   robust_cohort<float>(net, updates, globals);                   // the median
///   robust_cohort<float>(net, updates, globals, {.trim = 0.2});
///
/// Whatever a minority of a parameter's holders sends (for a trimmed mean: at most as many as are left
/// out at each end), the result stays among the values of the others. The weights of updates have no
/// effect, except that those of weight 0 take no part. Statistics are treated as parameters are. U: the
/// type of the updates' elements, void where they differ.
///
/// Shapes    as in average_cohort.
/// Post      Elements that nobody holds, or too few (options.on_few), keep their bits, and so do
///           integers, counters and local tensors.
/// Throws    error for what average_cohort refuses of updates and global tensors, and a trim outside
///           [0, 1/2]; nothing has been written then. Who reports how often is the caller's business:
///           a client that reports twice has two votes.
/// Numerics  The values are sorted and those that stay are added in double from the least up, so
///           neither the order of the updates nor the executor has an effect on the bits. Rounded to T
///           once; results that are too large for T are infinite, and counted. Values that are not
///           finite are left out, and counted.
/// Cost      Reads each element of the updates once, O(h log h) for each parameter of h holders. 8 bytes
///           for each global index of each dimension and client.
template <class T, class U = T, executor Executor = serial>
requires(averageable<T> || std::is_void_v<T>) robust_report
    robust_cohort(const model& net, std::span<const std::type_identity_t<update<U>>> updates,
                  const tensor_views<std::type_identity_t<T>>& globals,
                  const robust_options& options = {}, Executor&& run_by = {}) {
  return detail::robust_updates<T, U>(net, updates, globals, nullptr, options, run_by);
}

/// The same, and says which elements got a value, for server optimisers: not those with few holders that
/// are kept, nor those whose holders have no finite value.
///
/// Cost      One byte for each element of a tensor at a time.
template <class T, class U = T, executor Executor = serial>
requires(averageable<T> || std::is_void_v<T>) robust_report
    robust_cohort(const model& net, std::span<const std::type_identity_t<update<U>>> updates,
                  const tensor_views<std::type_identity_t<T>>& globals, held_elements& held,
                  const robust_options& options = {}, Executor&& run_by = {}) {
  return detail::robust_updates<T, U>(net, updates, globals, &held, options, run_by);
}

}  // namespace subfed::inline v0
