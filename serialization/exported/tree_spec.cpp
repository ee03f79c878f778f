#include "serialization/exported/tree_spec.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "core/error.h"
#include "serialization/exported/json_text.h"

namespace wick::exported {
namespace {

constexpr int64_t kProtocol = 1;
constexpr uint64_t kTreeMemory = 192;

using Keys = std::optional<std::vector<std::string>>;

class TreeReader {
 public:
  TreeReader(const std::string& name, const KeyedMap<std::string, std::vector<std::string>>& fields,
             LoadBudget& budget)
      : name_(name), fields_(fields), budget_(budget) {}

  Tree read(const JsonView& view) {
    charge(kTreeMemory);
    Tree tree;
    const JsonView children = view.at("children_spec").expectArray();
    if (!view.has("type")) {
      if (children.size() != 0) view.fail("a leaf has children");
      return tree;
    }
    tree.type = view.at("type").text();
    const std::string context = view.has("context") ? view.at("context").text() : "null";
    for (size_t i = 0; i < children.size(); ++i) tree.children.push_back(read(children.at(i)));
    setKind(tree, context, view);
    return tree;
  }

 private:
  void charge(uint64_t bytes) const {
    if (budget_.take(bytes)) return;
    throwLoadError("{}: the tree takes more memory than a file of this size may", name_);
  }

  void setKind(Tree& tree, const std::string& context_text, const JsonView& view) {
    const std::string& type = tree.type;
    if (type == "collections.namedtuple") return setFields(tree, context_text);
    const Json context = parseJson(context_text, name_, budget_);
    if (type == "builtins.tuple" || type == "torch.Size") {
      tree.kind = Tree::Kind::Tuple;
    } else if (type == "builtins.list" || type == "collections.deque" ||
               type == "torch.fx.immutable_collections.immutable_list") {
      tree.kind = Tree::Kind::List;
    } else if (type == "builtins.dict" || type == "collections.OrderedDict" ||
               type == "torch.fx.immutable_collections.immutable_dict") {
      setKeys(tree, context, view);
    } else if (type == "collections.defaultdict") {
      setKeys(tree, context.is_object() ? dictContext(context) : context, view);
    } else {
      setNames(tree, context);
    }
  }

  // Older versions write the keys as a text of their own.
  Json dictContext(const Json& context) {
    const auto found = context.find("dict_context");
    if (found == context.end()) return {};
    return found->is_string() ? parseJson(found->get_ref<const std::string&>(), name_, budget_)
                              : *found;
  }

  void setKeys(Tree& tree, const Json& context, const JsonView& view) const {
    tree.kind = Tree::Kind::Dict;
    if (!context.is_array() || context.size() != tree.children.size()) {
      view.fail("the keys of a dict do not fit its {} values", tree.children.size());
    }
    for (const Json& key : context) {
      if (!key.is_string() && !key.is_number_integer()) {
        view.fail("keys of dicts that are neither strings nor integers are not supported");
      }
      if (!tree.keys.empty() && tree.integer_keys != key.is_number_integer()) {
        view.fail("a dict has keys of several types");
      }
      tree.integer_keys = key.is_number_integer();
      tree.keys.push_back(tree.integer_keys ? key.dump() : key.get<std::string>());
    }
    checkNames(tree, view);
  }

  // The context is the name that the class was registered under.
  void setFields(Tree& tree, const std::string& context) const {
    tree.kind = Tree::Kind::Tuple;
    const auto found = fields_.find(context);
    if (found == fields_.end() || found->second.size() != tree.children.size()) return;
    // Many tuples may name one class.
    for (const std::string& field : found->second) charge(sizeof(std::string) + field.size());
    tree.kind = Tree::Kind::NamedTuple;
    tree.type = context;
    tree.keys = found->second;
  }

  // A class that the program registered: a dataclass writes [names, names of those that are None].
  static void setNames(Tree& tree, const Json& context) {
    const size_t count = tree.children.size();
    Keys names = textsOf(context, count);
    if (!names && context.is_array() && !context.empty()) names = textsOf(context[0], count);
    tree.kind = names ? Tree::Kind::Dict : Tree::Kind::Tuple;
    if (names) tree.keys = std::move(*names);
  }

  static Keys textsOf(const Json& json, size_t count) {
    if (!json.is_array() || json.size() != count || count == 0) return std::nullopt;
    std::vector<std::string> texts;
    for (const Json& text : json) {
      if (!text.is_string()) return std::nullopt;
      texts.push_back(text.get<std::string>());
    }
    std::vector<std::string> sorted = texts;
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end()) return std::nullopt;
    return texts;
  }

  static void checkNames(const Tree& tree, const JsonView& view) {
    std::vector<std::string> sorted = tree.keys;
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end()) view.fail("a key occurs twice");
  }

  const std::string& name_;
  const KeyedMap<std::string, std::vector<std::string>>& fields_;
  LoadBudget& budget_;
};

}  // namespace

size_t Tree::countLeaves() const {
  if (kind == Kind::Leaf) return 1;
  size_t count = 0;
  for (const Tree& child : children) count += child.countLeaves();
  return count;
}

Tree parseTree(const std::string& text, const std::string& name,
               const KeyedMap<std::string, std::vector<std::string>>& named_tuple_fields,
               LoadBudget& budget) {
  const Json json = parseJson(text, name, budget);
  const JsonView view(json, name);
  if (view.expectArray().size() != 2 || view.at(size_t{0}).integer() != kProtocol) {
    view.fail("expected a tree of version {}", kProtocol);
  }
  return TreeReader(name, named_tuple_fields, budget).read(view.at(size_t{1}));
}

}  // namespace wick::exported
