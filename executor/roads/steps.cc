#include "executor/roads/steps.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "executor/roads/pipeline.h"

namespace commtune {

namespace {

/// While one is on its way back, the other keeps the link busy; of short ones as many as the longest has
/// bytes.
std::size_t chunks_ahead(const RoadMessage& message, const ChunkStream& stream, Range range) {
  constexpr std::size_t kFewest = 2;
  const std::size_t all = chunks(range.length, stream.chunk_bytes);
  if (all <= kFewest) return all;
  const std::size_t each = chunk(range, stream.chunk_bytes, 0).length;
  return std::clamp(message.settings.chunk.count / each, kFewest, all);
}

/// Chunks from..to-1 of a range.
void send_chunks(const RoadMessage& message, const ChunkStream& stream, Range range, std::size_t from,
                 std::size_t to, Group& group) {
  for (std::size_t i = from; i < to; ++i) {
    message.communicator.send(stream.peer, stream.tag, message.part(chunk(range, stream.chunk_bytes, i)),
                              group);
  }
}

}  // namespace

void start_send(const RoadMessage& message, const ChunkStream& stream, Range range, Group& group) {
  send_chunks(message, stream, range, 0, chunks(range.length, stream.chunk_bytes), group);
}

Sending::Sending(const RoadMessage& message, const ChunkStream& stream, Range range, Group& group)
    : message_(message),
      stream_(stream),
      range_(range),
      group_(group),
      sent_(chunks_ahead(message, stream, range)) {
  send_chunks(message_, stream_, range_, 0, sent_, group_);
}

void Sending::go_on() {
  const std::size_t all = chunks(range_.length, stream_.chunk_bytes);
  send_chunks(message_, stream_, range_, std::exchange(sent_, all), all, group_);
}

Task receive_and_add(RoadMessage message, ChunkStream stream, Range range, Sending* in_return) {
  struct Incoming {
    Transfer transfer;
    Scratch::Block block;
    Range range;
  };
  Window<Incoming> window(message.settings.window);
  std::size_t posted = 0;
  const auto post = [&] {
    while (!window.full() && posted < chunks(range.length, stream.chunk_bytes)) {
      Incoming incoming{{}, message.scratch.take(), chunk(range, stream.chunk_bytes, posted++)};
      incoming.transfer =
          message.communicator.receive(stream.peer, stream.tag, incoming.block.bytes(incoming.range.length));
      window.push(std::move(incoming));
    }
  };
  post();
  while (!window.empty()) {
    const Incoming incoming = window.pop();
    co_await incoming.transfer;
    if (in_return != nullptr) in_return->go_on();
    co_await message.add(message.part(incoming.range), incoming.block.bytes(incoming.range.length));
    post();
  }
  if (in_return != nullptr) in_return->go_on();  // nothing came
}

Task receive_in_place(RoadMessage message, ChunkStream stream, Range range, Sending* in_return) {
  const std::size_t count = chunks(range.length, stream.chunk_bytes);
  const auto place = [&](std::size_t i) { return message.part(chunk(range, stream.chunk_bytes, i)); };
  Group others;
  if (count > 0) {
    const Transfer first = message.communicator.receive(stream.peer, stream.tag, place(0));
    for (std::size_t i = 1; i < count; ++i)
      message.communicator.receive(stream.peer, stream.tag, place(i), others);
    co_await first;
  }
  if (in_return != nullptr) in_return->go_on();
  co_await others.empty();
}

Task exchange_and_add(RoadMessage message, ChunkStream stream, Range range) {
  struct Exchange {
    Transfer send, receive;
    Scratch::Block block;
    Range range;
  };
  Window<Exchange> window(message.settings.window);
  const std::size_t count = chunks(range.length, stream.chunk_bytes);
  std::size_t posted = 0;
  const auto post = [&](std::size_t until) {
    while (!window.full() && posted < until) {
      Exchange exchange{{}, {}, message.scratch.take(), chunk(range, stream.chunk_bytes, posted++)};
      exchange.receive =
          message.communicator.receive(stream.peer, stream.tag, exchange.block.bytes(exchange.range.length));
      exchange.send = message.communicator.send(stream.peer, stream.tag, message.part(exchange.range));
      window.push(std::move(exchange));
    }
  };
  post(chunks_ahead(message, stream, range));
  while (!window.empty()) {
    const Exchange exchange = window.pop();
    co_await exchange.receive;
    post(count);
    co_await exchange.send;  // what is being sent must not change before it has left
    co_await message.add(message.part(exchange.range), exchange.block.bytes(exchange.range.length));
  }
}

int folded_size(int workers) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(workers))); }

}  // namespace commtune
