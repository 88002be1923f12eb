#pragma once
// What a client may take of a connection's time and memory.

#include <chrono>
#include <cstddef>

namespace commtune::api::rest {

struct ConnectionLimits {
  std::size_t head_bytes = 16U << 10U;           ///< request line and headers
  std::chrono::milliseconds head_time{10'000};   ///< from a request's first byte to the end of its head
  std::chrono::milliseconds body_time{30'000};   ///< from a request's first byte to the end of its body
  std::chrono::milliseconds write_time{30'000};  ///< for an answer, and for each piece of a streamed one
};

}  // namespace commtune::api::rest
