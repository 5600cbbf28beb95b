// SPDX-License-Identifier: MIT
/// A stand-in for the part of RapidCheck that the tests use, for platforms without a RapidCheck: the
/// same properties over as many random cases, always the same ones, and no smaller counterexample.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <ostream>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace rc {

namespace detail {

struct failed {
  std::string what;
};
struct discarded {};
struct SuccessResult {};
struct TestMetadata {
  std::string id;
  std::string description;
};

/// SplitMix64.
inline std::uint64_t word() {
  static std::uint64_t state = 20240229;
  std::uint64_t z = state += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
inline std::size_t below(std::size_t n) {
  return static_cast<std::size_t>(word() % static_cast<std::uint64_t>(n));
}

struct outcome {
  bool good = true;
  std::string text = {};

  template <class Kind>
  bool is() const {
    static_assert(std::is_same_v<Kind, SuccessResult>);
    return good;
  }
};

/// The environment's SUBFED_CASES, or 100.
inline int cases() {
  const char* const text = std::getenv("SUBFED_CASES");
  return text == nullptr ? 100 : std::atoi(text);
}

template <class Property>
outcome checkTestable(Property&& property, const TestMetadata&) {
  int tried = 0;
  for (int kept = 0; kept < cases() && tried < 10000; ++tried) {
    try {
      if constexpr (std::is_same_v<decltype(property()), bool>) {
        if (!property()) throw failed{"false was returned"};
      } else {
        property();
      }
      ++kept;
    } catch (const failed& f) {
      return {false, "case " + std::to_string(tried) + ": " + f.what};
    } catch (const discarded&) {
    }
  }
  return {tried < 10000, "too many cases do not meet their condition"};
}
inline void printResultMessage(const outcome& result, std::ostream& out) { out << result.text; }

inline void require(bool holds, const char* text, const char* file, int line) {
  if (!holds) throw failed{std::string(file) + ":" + std::to_string(line) + ": " + text};
}

}  // namespace detail

template <class T>
class Gen {
 public:
  template <class F>
  requires std::convertible_to<std::invoke_result_t<F&>, T>
  explicit Gen(F make) : make_(std::move(make)) {}
  T operator*() const { return make_(); }

 private:
  std::function<T()> make_;
};

namespace gen {

/// low .. high - 1.
template <class T>
Gen<T> inRange(T low, T high) {
  return Gen<T>([low, high] {
    const auto width = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    return static_cast<T>(static_cast<std::uint64_t>(low) + detail::word() % width);
  });
}
/// Any bits; numbers small in size as often as large ones.
template <class T>
Gen<T> arbitrary() {
  return Gen<T>([] {
    if constexpr (std::floating_point<T>) {
      static_assert(sizeof(T) == 8);
      return std::bit_cast<T>(detail::word());
    } else {
      return static_cast<T>(detail::word() >> detail::below(64));
    }
  });
}
template <class T, class F>
auto map(Gen<T> from, F f) {
  using result = std::decay_t<std::invoke_result_t<F&, T>>;
  return Gen<result>([from, f] { return f(*from); });
}
template <class T, class F>
auto mapcat(Gen<T> from, F f) {
  using result = std::decay_t<decltype(*f(*from))>;
  return Gen<result>([from, f] { return *f(*from); });
}
template <class T, class F>
Gen<T> suchThat(Gen<T> from, F condition) {
  return Gen<T>([from, condition] {
    for (int i = 0; i < 1000; ++i) {
      T value = *from;
      if (condition(value)) return value;
    }
    throw detail::discarded{};
  });
}
template <class T, class F>
Gen<T> suchThat(F condition) {
  return suchThat(arbitrary<T>(), condition);
}
template <class Container>
auto elementOf(Container from) {
  using element = typename Container::value_type;
  return Gen<element>([from] { return from[detail::below(from.size())]; });
}
template <class T, class... More>
Gen<T> element(T first, More... more) {
  return elementOf(std::vector<T>{first, more...});
}
template <class T>
Gen<T> weightedElement(std::initializer_list<std::pair<std::size_t, T>> from) {
  std::vector<T> each;
  for (const auto& [weight, value] : from) each.insert(each.end(), weight, value);
  return elementOf(each);
}
template <class... T>
Gen<std::tuple<T...>> tuple(Gen<T>... each) {
  return Gen<std::tuple<T...>>([each...] { return std::tuple<T...>{*each...}; });
}
template <class Container, class T>
Gen<Container> container(std::size_t count, Gen<T> each) {
  return Gen<Container>([count, each] {
    Container out;
    for (std::size_t i = 0; i < count; ++i) out.push_back(*each);
    return out;
  });
}
template <class Container, class T>
Gen<Container> container(Gen<T> each) {
  return Gen<Container>([each] { return *container<Container>(detail::below(30), each); });
}

}  // namespace gen

}  // namespace rc

#define RC_ASSERT(condition) \
  ::rc::detail::require(static_cast<bool>(condition), #condition, __FILE__, __LINE__)
#define RC_PRE(condition)                           \
  if (!(condition)) throw ::rc::detail::discarded { \
    }
