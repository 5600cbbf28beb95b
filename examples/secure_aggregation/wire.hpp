// SPDX-License-Identifier: MIT
/// Frames over a socket: a kind, a length, a payload. Nothing is allocated before the length is checked.
#pragma once

#include "bytes.hpp"

#include <cstdint>
#include <optional>
#include <utility>

namespace secure_aggregation {

enum class frame : std::uint8_t {
  advertise = 1,   ///< client: its public keys, capacity and weight, signed
  participants,    ///< server: all that have advertised
  shares,          ///< client: sealed shares for each of them, and a hash of its self mask's seed
  shares_for_you,  ///< server: those that others have sealed for the client
  upload,          ///< client: the masked update
  survivors,       ///< server: whose uploads have arrived
  agreed,          ///< client: its signature of that list
  agreements,      ///< server: the signatures
  opening,         ///< client: shares of seeds and keys
  plain,           ///< client: an update without masks, to compare
};

/// A connected socket, closed when it goes.
class connection {
 public:
  explicit connection(int socket) : socket_(socket) {}
  connection(connection&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  connection& operator=(connection&& other) noexcept;
  ~connection();

  void close();
  bool is_open() const { return socket_ >= 0; }

  /// Throws  failure when the other end is gone.
  void send(frame kind, const bytes& payload);
  /// Throws  failure for another kind, more than so many bytes, when the other end is gone, and after
  ///         30 seconds without a byte.
  bytes receive(frame kind, std::uint64_t most);

  std::uint64_t sent = 0, received = 0;  ///< bytes, frames' heads included

 private:
  void fill(std::uint8_t* to, std::size_t count);

  int socket_;
};

/// Accepts connections on a free port of 127.0.0.1.
class listener {
 public:
  listener();
  ~listener();
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;

  std::uint16_t port() const { return port_; }
  /// Throws  failure when nobody connects for 30 seconds.
  connection accept();

 private:
  int socket_;
  std::uint16_t port_;
};

connection connect_to(std::uint16_t port);

}  // namespace secure_aggregation
