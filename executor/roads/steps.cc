#include "executor/roads/steps.h"

#include <bit>

#include "executor/reduce.h"
#include "executor/roads/pipeline.h"

namespace commtune {

void start_send(const RoadMessage& message, const Stream& stream, Range range, Group& group) {
  for (std::size_t i = 0; i < chunks(range.length, stream.chunk_bytes); ++i) {
    message.communicator.send(stream.peer, stream.tag, message.part(chunk(range, stream.chunk_bytes, i)),
                              group);
  }
}

Task receive_and_add(RoadMessage message, Stream stream, Range range) {
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
    add(message.settings.type, message.part(incoming.range), incoming.block.bytes(incoming.range.length));
    post();
  }
}

Task receive_in_place(RoadMessage message, Stream stream, Range range) {
  Group group;
  for (std::size_t i = 0; i < chunks(range.length, stream.chunk_bytes); ++i) {
    message.communicator.receive(stream.peer, stream.tag, message.part(chunk(range, stream.chunk_bytes, i)),
                                 group);
  }
  co_await group.empty();
}

Task exchange_and_add(RoadMessage message, Stream stream, Range range) {
  struct Exchange {
    Transfer send, receive;
    Scratch::Block block;
    Range range;
  };
  Window<Exchange> window(message.settings.window);
  std::size_t posted = 0;
  const auto post = [&] {
    while (!window.full() && posted < chunks(range.length, stream.chunk_bytes)) {
      Exchange exchange{{}, {}, message.scratch.take(), chunk(range, stream.chunk_bytes, posted++)};
      exchange.receive =
          message.communicator.receive(stream.peer, stream.tag, exchange.block.bytes(exchange.range.length));
      exchange.send = message.communicator.send(stream.peer, stream.tag, message.part(exchange.range));
      window.push(std::move(exchange));
    }
  };
  post();
  while (!window.empty()) {
    const Exchange exchange = window.pop();
    co_await exchange.receive;
    co_await exchange.send;  // what is being sent must not change before it has left
    add(message.settings.type, message.part(exchange.range), exchange.block.bytes(exchange.range.length));
    post();
  }
}

int folded_size(int workers) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(workers))); }

}  // namespace commtune
