#include "frontend/tree.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/error.h"
#include "core/memory_limit.h"
#include "frontend/lexer.h"

namespace wick {

namespace {

// Neither expressions nor statements: walks over trees do not recurse for these on their own.
bool onlyGroups(int kind) {
  switch (kind) {
    case TK_STRING:
    case TK_LIST:
    case TK_OPTION:
    case TK_IDENT:
    case TK_DECL:
    case TK_PARAM:
    case TK_ATTRIBUTE:
    case TK_COMP_FOR:
    case TK_WITH_ITEM:
    case TK_ALIAS:
      return true;
    default:
      return false;
  }
}

bool isPlainAtom(const std::string& value) {
  auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '*' || c == '+' || c == '-';
  };
  return !value.empty() && std::all_of(value.begin(), value.end(), plain);
}

void appendAtom(std::string& out, const std::string& value) {
  if (isPlainAtom(value)) {
    out += value;
    return;
  }
  out += '"';
  for (char c : value) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace

// About how much memory a tree takes, with its entry among the children of another one.
constexpr int64_t kTreeBytes = sizeof(Tree) + 64;

TreeRef Tree::atom(SourceRange range, std::string value) {
  return std::make_shared<Tree>(TK_STRING, std::move(range), std::move(value), TreeList());
}

TreeRef Tree::create(int kind, SourceRange range, TreeList children) {
  checkGrowth();
  return std::make_shared<Tree>(kind, std::move(range), std::string(), std::move(children));
}

Tree::Tree(int kind, SourceRange range, std::string value, TreeList children)
    : kind_(kind),
      range_(std::move(range)),
      value_(std::move(value)),
      children_(std::move(children)) {
  for (const TreeRef& child : children_) {
    WICK_ASSERT(child != nullptr, "a tree of kind {} has a null child", kindToString(kind));
    height_ = std::max(height_, child->height_);
  }
  if (!onlyGroups(kind)) ++height_;
  noteMemory(kTreeBytes);
}

Tree::~Tree() {
  noteMemory(-kTreeBytes);
  // Only the outermost destructor of a thread releases children; those that this brings about hand
  // theirs to it, so that destructors nest two deep whatever the depth of the tree.
  static thread_local TreeList* doomed = nullptr;
  if (children_.empty()) return;
  if (doomed != nullptr) {
    std::move(children_.begin(), children_.end(), std::back_inserter(*doomed));
    return;
  }
  TreeList list = std::move(children_);
  doomed = &list;
  while (!list.empty()) {
    TreeRef tree = std::move(list.back());
    list.pop_back();
    tree.reset();
  }
  doomed = nullptr;
}

bool Tree::isAtom() const {
  return kind_ == TK_STRING;
}

const std::string& Tree::stringValue() const {
  WICK_ASSERT(isAtom(), "a tree of kind {} is not an atom", kindToString(kind_));
  return value_;
}

const TreeRef& Tree::child(size_t index) const {
  WICK_ASSERT(index < children_.size(), "a tree of kind {} has {} children, asked for number {}",
              kindToString(kind_), children_.size(), index);
  return children_[index];
}

std::string toString(const TreeRef& tree) {
  struct Visit {
    const Tree* tree;
    size_t next_child;
  };
  std::string out;
  std::vector<Visit> path = {{tree.get(), 0}};
  while (!path.empty()) {
    auto& [current, next_child] = path.back();
    if (current->isAtom()) {
      appendAtom(out, current->stringValue());
      path.pop_back();
      continue;
    }
    if (next_child == 0) out += "(" + kindToString(current->kind());
    if (next_child == current->size()) {
      out += ")";
      path.pop_back();
      continue;
    }
    out += " ";
    const Tree* child = current->child(next_child++).get();
    path.push_back({child, 0});
  }
  return out;
}

}  // namespace wick
