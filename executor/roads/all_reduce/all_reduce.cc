#include "executor/roads/all_reduce/all_reduce.h"

#include "executor/roads/all_reduce/double_binary_tree.h"
#include "executor/roads/all_reduce/halving_doubling.h"
#include "executor/roads/all_reduce/hierarchical.h"
#include "executor/roads/all_reduce/library.h"
#include "executor/roads/all_reduce/one_shot.h"
#include "executor/roads/all_reduce/recursive_doubling.h"
#include "executor/roads/all_reduce/ring.h"

namespace commtune {

AllReduceAlgorithm algorithm(Collective collective) {
  switch (collective) {
    case Collective::kRing:
      return {ring_all_reduce, ring_reduce_scatter, ring_all_gather};
    case Collective::kHalvingDoubling:
      return {halving_doubling_all_reduce, halving_reduce_scatter, doubling_all_gather};
    case Collective::kRecursiveDoubling:
      return {recursive_doubling_all_reduce};
    case Collective::kOneShot:
      return {one_shot_all_reduce};
    case Collective::kDoubleBinaryTree:
      return {double_tree_all_reduce, double_tree_reduce, double_tree_broadcast};
    case Collective::kHierarchical:
      return {hierarchical_all_reduce, hierarchical_reduce_scatter, hierarchical_all_gather};
    case Collective::kLibrary:
      break;
  }
  return {library_all_reduce, library_reduce_scatter, library_all_gather};
}

}  // namespace commtune
