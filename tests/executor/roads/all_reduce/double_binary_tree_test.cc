#include "executor/roads/all_reduce/double_binary_tree.h"

#include <gtest/gtest.h>

#include <vector>

namespace commtune {
namespace {

TEST(DoubleBinaryTree, ParentsAndChildrenAgreeAndReachEveryRank) {
  for (int size = 1; size <= 40; ++size) {
    for (int tree = 0; tree < 2; ++tree) {
      int roots = 0;
      int edges = 0;
      for (int rank = 0; rank < size; ++rank) {
        const TreeNode node = tree_node(tree, size, rank);
        roots += node.parent < 0 ? 1 : 0;
        for (const int child : node.children) {
          if (child < 0) continue;
          ++edges;
          EXPECT_EQ(tree_node(tree, size, child).parent, rank) << size << " ranks, tree " << tree;
        }
        // No cycle: the way up ends at the root.
        int up = rank;
        int steps = 0;
        while (tree_node(tree, size, up).parent >= 0 && steps++ <= size)
          up = tree_node(tree, size, up).parent;
        EXPECT_LE(steps, size);
      }
      EXPECT_EQ(roots, 1);
      EXPECT_EQ(edges, size - 1);
    }
  }
}

TEST(DoubleBinaryTree, GivesNearlyEveryRankOneLeafAndOneInnerPlace) {
  // Both directions of a link are in use when whoever passes on in one tree only gives in the other.
  for (int size = 4; size <= 40; ++size) {
    int inner_twice = 0;
    for (int rank = 0; rank < size; ++rank) {
      const auto is_inner = [&](int tree) {
        const TreeNode node = tree_node(tree, size, rank);
        return node.children[0] >= 0 && node.children[1] >= 0;
      };
      inner_twice += is_inner(0) && is_inner(1) ? 1 : 0;
    }
    EXPECT_EQ(inner_twice, 0) << size << " ranks";
  }
}

}  // namespace
}  // namespace commtune
