// SPDX-License-Identifier: MIT
#include "wire.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace secure_aggregation {

namespace {

constexpr int patience_ms = 30'000;
constexpr std::size_t head_bytes = 9;

[[noreturn]] void fail(const char* what) {
  throw failure(std::string(what) + ": " + std::strerror(errno));
}
void wait_for(int socket, const char* what) {
  pollfd one{socket, POLLIN, 0};
  const int ready = ::poll(&one, 1, patience_ms);
  if (ready < 0 && errno != EINTR) fail("poll");
  if (ready == 0) throw failure(std::string("nothing arrives: ") + what);
}
sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return out;
}
void no_delay(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

connection& connection::operator=(connection&& other) noexcept {
  close();
  socket_ = std::exchange(other.socket_, -1);
  sent = other.sent;
  received = other.received;
  return *this;
}
connection::~connection() { close(); }
void connection::close() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

void connection::send(frame kind, const bytes& payload) {
  bytes all{static_cast<std::uint8_t>(kind)};
  all.reserve(head_bytes + payload.size());
  for (int shift = 0; shift < 64; shift += 8) {
    all.push_back(static_cast<std::uint8_t>(std::uint64_t{payload.size()} >> shift & 0xFF));
  }
  all.insert(all.end(), payload.begin(), payload.end());
  for (std::size_t done = 0; done < all.size();) {
    const ssize_t n = ::send(socket_, all.data() + done, all.size() - done, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("the other end is gone");
    done += static_cast<std::size_t>(n);
  }
  sent += all.size();
}

void connection::fill(std::uint8_t* to, std::size_t count) {
  for (std::size_t done = 0; done < count;) {
    wait_for(socket_, "the other end is silent");
    const ssize_t n = ::recv(socket_, to + done, count - done, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("the other end is gone");
    if (n == 0) throw failure("the other end has closed the connection");
    done += static_cast<std::size_t>(n);
  }
}

bytes connection::receive(frame kind, std::uint64_t most) {
  std::uint8_t head[head_bytes];
  fill(head, head_bytes);
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8; ++i) length |= std::uint64_t{head[1 + i]} << (8 * i);
  if (head[0] != static_cast<std::uint8_t>(kind)) {
    throw failure("a message of kind " + std::to_string(head[0]) + ", expected " +
                  std::to_string(static_cast<int>(kind)));
  }
  if (length > most) {
    throw failure("a message of " + std::to_string(length) + " bytes, expected at most " +
                  std::to_string(most));
  }
  bytes out(static_cast<std::size_t>(length));
  fill(out.data(), out.size());
  received += head_bytes + length;
  return out;
}

listener::listener() : socket_(::socket(AF_INET, SOCK_STREAM, 0)), port_(0) {
  if (socket_ < 0) fail("socket");
  sockaddr_in at = loopback(0);
  socklen_t size = sizeof at;
  if (::bind(socket_, reinterpret_cast<sockaddr*>(&at), size) != 0 || ::listen(socket_, 300) != 0 ||
      ::getsockname(socket_, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
    fail("the server cannot listen");
  }
  port_ = ntohs(at.sin_port);
}
listener::~listener() { ::close(socket_); }

connection listener::accept() {
  wait_for(socket_, "nobody connects");
  const int socket = ::accept(socket_, nullptr, nullptr);
  if (socket < 0) fail("accept");
  no_delay(socket);
  return connection(socket);
}

connection connect_to(std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  if (socket < 0) fail("socket");
  connection out(socket);
  const sockaddr_in at = loopback(port);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) fail("connect");
  no_delay(socket);
  return out;
}

}  // namespace secure_aggregation
