#pragma once
// Two complementary binary trees, each for half of the message (Sanders, Speck and Traeff, Parallel Computing
// 35, 2009; the trees are laid out as in NCCL, Jeaugey 2019): every rank is a leaf in one and an inner node
// in the other (but for one or two), so that both directions of every link are used.
//
// Reduce: in each tree a rank adds what its children send, lower child first, and sends the sum to its
// parent. Distribute: the root's chunks come down the same edges. Both are pipelined in chunks; in the
// all-reduce a chunk turns round at the root while later ones are still on their way up.
//
// Bytes each way per rank: about m reducing and m distributing, in 2 log2(N) steps of latency and as many
// chunks in flight. The sum's order is fixed by the tree.

#include "executor/roads/road.h"

namespace commtune {

/// A rank's neighbours in one tree over ranks 0..size-1; -1 where there is none.
struct TreeNode {
  int parent = -1;
  int children[2] = {-1, -1};
};

/// tree  0 or 1
TreeNode tree_node(int tree, int size, int rank);

Task double_tree_all_reduce(RoadMessage message);
Task double_tree_reduce(RoadMessage message);
Task double_tree_broadcast(RoadMessage message);

}  // namespace commtune
