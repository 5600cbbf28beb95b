// SPDX-License-Identifier: MIT
/// Orders drawn from a subfed random stream: the same on every platform, unlike std::shuffle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <subfed/philox.hpp>
#include <utility>
#include <vector>

namespace trainer {

/// Puts `count` random items of the list at its front, in random order (all of them: a shuffle).
template <class T>
void draw_to_front(std::vector<T>& items, std::size_t count, subfed::random_stream& stream) {
  for (std::size_t i = 0; i < count && i < items.size(); ++i) {
    const std::uint64_t offset = stream.below(items.size() - i);
    std::swap(items[i], items[i + static_cast<std::size_t>(offset)]);
  }
}

template <class T>
void shuffle(std::vector<T>& items, subfed::random_stream& stream) {
  draw_to_front(items, items.size(), stream);
}

}  // namespace trainer
