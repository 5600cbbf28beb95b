// SPDX-License-Identifier: MIT
#include "shares.hpp"

extern "C" {  // the header does not say so itself
#include <libgfshare.h>
}
#include <sodium.h>

#include <cstddef>
#include <memory>
#include <string>

namespace secure_aggregation {

namespace {

struct free_context {
  void operator()(gfshare_ctx* context) const { gfshare_ctx_free(context); }
};
using context = std::unique_ptr<gfshare_ctx, free_context>;

void fill_random(unsigned char* to, unsigned count) { randombytes_buf(to, count); }
/// libgfshare calls it to make shares and to wipe every context, also those that only combine.
void start_shares() {
  start_crypto();
  gfshare_fill_rand = &fill_random;  // null before
}

/// Throws  failure unless the numbers can be those of shares.
void check(std::span<const std::uint8_t> numbers, int threshold) {
  const int count = static_cast<int>(numbers.size());
  if (threshold < 2) {
    throw failure("the threshold is " + std::to_string(threshold) +
                  ": each share would be the secret");
  }
  if (threshold > count) {
    throw failure("the threshold is " + std::to_string(threshold) + " of " + std::to_string(count) +
                  " shares");
  }
  std::array<bool, 256> seen{};
  for (const std::uint8_t n : numbers) {
    if (n == 0) throw failure("a share has the number 0");
    if (seen[n]) throw failure("there are two shares of the number " + std::to_string(n));
    seen[n] = true;
  }
}

}  // namespace

std::vector<share> split(const secret& whole, std::span<const std::uint8_t> numbers,
                         int threshold) {
  start_shares();
  check(numbers, threshold);
  bytes own_numbers(numbers.begin(), numbers.end());
  secret own = whole;  // the library's arguments are not const
  const context made(gfshare_ctx_init_enc(own_numbers.data(), static_cast<unsigned>(numbers.size()),
                                          static_cast<unsigned char>(threshold),
                                          static_cast<unsigned>(own.bits.size())));
  if (made == nullptr) throw failure("libgfshare makes no shares");
  gfshare_ctx_enc_setsecret(made.get(), own.bits.data());
  std::vector<share> out(numbers.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].number = numbers[i];
    gfshare_ctx_enc_getshare(made.get(), static_cast<unsigned char>(i), out[i].bits.data());
  }
  return out;
}

secret combine(std::span<const share> shares, int threshold) {
  start_shares();
  bytes numbers;
  for (const share& s : shares) numbers.push_back(s.number);
  if (static_cast<int>(shares.size()) < threshold) {
    throw failure("there are " + std::to_string(shares.size()) + " shares, expected " +
                  std::to_string(threshold));
  }
  check(numbers, threshold);
  const context made(
      gfshare_ctx_init_dec(numbers.data(), static_cast<unsigned>(numbers.size()), 32));
  if (made == nullptr) throw failure("libgfshare combines no shares");
  for (std::size_t i = 0; i < shares.size(); ++i) {
    std::array<std::uint8_t, 32> bits = shares[i].bits;
    gfshare_ctx_dec_giveshare(made.get(), static_cast<unsigned char>(i), bits.data());
  }
  secret out;
  gfshare_ctx_dec_extract(made.get(), out.bits.data());
  return out;
}

}  // namespace secure_aggregation
