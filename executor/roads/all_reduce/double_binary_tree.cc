#include "executor/roads/all_reduce/double_binary_tree.h"

#include "executor/roads/pipeline.h"
#include "executor/roads/steps.h"

namespace commtune {
namespace {

/// The in-order binary tree with rank 0 on top of its root: node r's parent and children follow from the
/// lowest bit set in r.
TreeNode in_order_node(int size, int rank) {
  int bit = 1;
  while (bit < size && (bit & rank) == 0) bit <<= 1;
  TreeNode node;
  if (rank == 0) {
    if (size > 1) node.children[1] = bit >> 1;
    return node;
  }
  const int up = (rank ^ bit) | (bit << 1);
  node.parent = up < size ? up : rank ^ bit;
  int low = bit >> 1;
  if (low == 0) return node;
  node.children[0] = rank - low;
  int down = rank + low;
  while (down >= size && low > 0) {
    low >>= 1;
    down = low == 0 ? size : rank + low;
  }
  node.children[1] = low == 0 ? -1 : down;
  return node;
}

/// One tree's half of a message, and this rank's place in the tree.
struct Branch {
  Branch(const RoadMessage& message, int tree)
      : node(tree_node(tree, message.settings.workers, message.communicator.rank())),
        range(segment(message.data.bytes, element_size(message.settings.type).count, 2, tree)),
        chunk_bytes(message.settings.chunk_for(message.data.bytes, 2)),
        up(lane_tag(TagSpace::kReduce, message.number, static_cast<std::uint32_t>(tree))),
        down(lane_tag(TagSpace::kDistribute, message.number, static_cast<std::uint32_t>(tree))) {}

  bool is_root() const { return node.parent < 0; }
  std::size_t chunk_count() const { return chunks(range.length, chunk_bytes); }

  TreeNode node;
  Range range;
  std::size_t chunk_bytes;
  Tag up, down;
};

void send_down(const RoadMessage& message, const Branch& branch, Buffer bytes, Group& sends) {
  for (const int child : branch.node.children) {
    if (child >= 0) message.communicator.send(child, branch.down, bytes, sends);
  }
}

/// turns_round  the root sends each complete chunk down at once
Task reduce_in_tree(RoadMessage message, int tree, bool turns_round) {
  struct Incoming {  // NOLINT(bugprone-reserved-identifier): a name that the arrays' copying is given
    Transfer transfers[2];
    Scratch::Block blocks[2];
    Range range;
  };
  const Branch branch(message, tree);
  Window<Incoming> window(message.settings.window);
  Group sends;
  std::size_t posted = 0;
  const auto post = [&] {
    while (!window.full() && posted < branch.chunk_count()) {
      Incoming incoming;
      incoming.range = chunk(branch.range, branch.chunk_bytes, posted++);
      for (int i = 0; i < 2; ++i) {
        if (branch.node.children[i] < 0) continue;
        incoming.blocks[i] = message.scratch.take();
        incoming.transfers[i] = message.communicator.receive(branch.node.children[i], branch.up,
                                                             incoming.blocks[i].bytes(incoming.range.length));
      }
      window.push(std::move(incoming));
    }
  };
  post();
  while (!window.empty()) {
    const Incoming incoming = window.pop();
    const Buffer here = message.part(incoming.range);
    for (int i = 0; i < 2; ++i) {
      if (!incoming.blocks[i].valid()) continue;
      co_await incoming.transfers[i];
      co_await message.add(here, incoming.blocks[i].bytes(here.bytes));
    }
    if (!branch.is_root()) {
      message.communicator.send(branch.node.parent, branch.up, here, sends);
    } else {
      co_await message.finish(here);
      if (turns_round) send_down(message, branch, here, sends);
    }
    post();
  }
  co_await sends.empty();
}

Task broadcast_in_tree(RoadMessage message, int tree) {
  struct Incoming {
    Transfer transfer;
    Range range;
  };
  const Branch branch(message, tree);
  Group sends;
  if (branch.is_root()) {
    for (std::size_t i = 0; i < branch.chunk_count(); ++i) {
      send_down(message, branch, message.part(chunk(branch.range, branch.chunk_bytes, i)), sends);
    }
    co_await sends.empty();
    co_return;
  }
  Window<Incoming> window(message.settings.window);
  std::size_t posted = 0;
  const auto post = [&] {
    while (!window.full() && posted < branch.chunk_count()) {
      Incoming incoming{{}, chunk(branch.range, branch.chunk_bytes, posted++)};
      incoming.transfer =
          message.communicator.receive(branch.node.parent, branch.down, message.part(incoming.range));
      window.push(incoming);
    }
  };
  post();
  while (!window.empty()) {
    const Incoming incoming = window.pop();
    co_await incoming.transfer;
    send_down(message, branch, message.part(incoming.range), sends);
    post();
  }
  co_await sends.empty();
}

}  // namespace

TreeNode tree_node(int tree, int size, int rank) {
  if (tree == 0) return in_order_node(size, rank);
  // The second tree: mirrored for an even number of ranks, shifted by one for an odd one.
  const bool mirror = size % 2 == 0;
  const auto there = [&](int r) { return mirror ? size - 1 - r : (r - 1 + size) % size; };
  const auto back = [&](int r) {
    if (r < 0) return -1;
    return mirror ? size - 1 - r : (r + 1) % size;
  };
  const TreeNode node = in_order_node(size, there(rank));
  return {back(node.parent), {back(node.children[0]), back(node.children[1])}};
}

Task double_tree_all_reduce(RoadMessage message) {
  Task up[2] = {reduce_in_tree(message, 0, true), reduce_in_tree(message, 1, true)};
  Task down[2];
  for (int tree = 0; tree < 2; ++tree) {
    up[tree].start();
    // The root's chunks turn round in its reduce task.
    if (Branch(message, tree).is_root()) continue;
    down[tree] = broadcast_in_tree(message, tree);
    down[tree].start();
  }
  for (Task& task : up) co_await task.ended();
  message.report(Stage::kReduce);
  for (Task& task : down) {
    if (task.valid()) co_await task.ended();
  }
  message.report(Stage::kDistribute);
}

Task double_tree_reduce(RoadMessage message) {
  Task up[2] = {reduce_in_tree(message, 0, false), reduce_in_tree(message, 1, false)};
  for (Task& task : up) task.start();
  for (Task& task : up) co_await task.ended();
  message.report(Stage::kReduce);
}

Task double_tree_broadcast(RoadMessage message) {
  Task down[2] = {broadcast_in_tree(message, 0), broadcast_in_tree(message, 1)};
  for (Task& task : down) task.start();
  for (Task& task : down) co_await task.ended();
  message.report(Stage::kDistribute);
}

}  // namespace commtune
