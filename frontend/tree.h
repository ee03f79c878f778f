// The syntax tree: s-expressions. A leaf is a string (an atom); a compound tree has a kind (see
// lexer.h) and children. `z.sigmoid() - (x + y)` is
//
//   (- (apply (. (variable (ident z)) (ident sigmoid)) (list) (list))
//      (+ (variable (ident x)) (variable (ident y))))
//
// frontend/tree_views.h gives the children names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/source_range.h"

namespace wick {

class Tree;
// Trees are immutable and shared; any number of threads may read one.
using TreeRef = std::shared_ptr<const Tree>;
using TreeList = std::vector<TreeRef>;

class Tree {
 public:
  static TreeRef atom(SourceRange range, std::string value);
  static TreeRef create(int kind, SourceRange range, TreeList children = {});

  Tree(int kind, SourceRange range, std::string value, TreeList children);
  // Frees any depth without recursion.
  ~Tree();
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  int kind() const { return kind_; }
  const SourceRange& range() const { return range_; }
  bool isAtom() const;
  // Of an atom; InternalError on a compound tree.
  const std::string& stringValue() const;

  const TreeList& children() const { return children_; }
  size_t size() const { return children_.size(); }
  // InternalError when there is no such child.
  const TreeRef& child(size_t index) const;

  // The longest way down, where lists, options, identifiers and atoms count nothing. Parsed trees
  // stay within kMaxTreeHeight (parser.h); a recursive walk needs a stack for that many levels.
  size_t height() const { return height_; }

 private:
  int kind_;
  unsigned height_ = 0;
  SourceRange range_;
  std::string value_;
  TreeList children_;
};

// The s-expression on one line. Atoms other than plain words and numbers are quoted and escaped.
std::string toString(const TreeRef& tree);

}  // namespace wick
