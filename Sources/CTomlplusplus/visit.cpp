#include "CTomlplusplus.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct assertion_failed {};

}  // namespace

// Some texts that are no TOML are met by an assertion of the library instead of an error (found by fuzzing). Here it is one.
#undef NDEBUG
#define TOML_ASSERT(condition) \
    do { \
        if (!(condition)) throw assertion_failed(); \
    } while (false)
#define TOML_EXCEPTIONS 1
#define TOML_MAX_NESTED_VALUES 32
#include <toml++/toml.h>

namespace {

ctoml_text text_of(std::string_view view) { return {view.data(), view.size()}; }

ctoml_place place_of(const toml::source_region &region) { return {region.begin.line, region.begin.column}; }

ctoml_value value_of(const toml::node &node) {
    ctoml_value value = {ctoml_kind_list, {"", 0}, 0, 0, false};
    switch (node.type()) {
    case toml::node_type::string:
        value.kind = ctoml_kind_text;
        value.text = text_of(node.ref<std::string>());
        break;
    case toml::node_type::integer:
        value.kind = ctoml_kind_integer;
        value.integer = node.ref<int64_t>();
        break;
    case toml::node_type::floating_point:
        value.kind = ctoml_kind_number;
        value.number = node.ref<double>();
        break;
    case toml::node_type::boolean:
        value.kind = ctoml_kind_boolean;
        value.boolean = node.ref<bool>();
        break;
    case toml::node_type::date: value.kind = ctoml_kind_date; break;
    case toml::node_type::time: value.kind = ctoml_kind_time; break;
    case toml::node_type::date_time: value.kind = ctoml_kind_date_time; break;
    default: break;
    }
    return value;
}

void visit(const toml::table &table, const ctoml_visitor &visitor) {
    for (const auto &[key, node] : table) {
        if (const auto *below = node.as_table()) {
            visitor.enter(visitor.context, text_of(key.str()), place_of(key.source()));
            visit(*below, visitor);
            visitor.leave(visitor.context);
        } else {
            const auto value = value_of(node);
            visitor.value(visitor.context, text_of(key.str()), place_of(key.source()), &value);
        }
    }
}

// Values nested too deep are refused by the library, dotted keys (`[a.a.a`) are not: recursion, also that of destructors, would end
// the process. Which dots are in keys only a parser knows: all count.
constexpr std::ptrdiff_t dots_limit = 4000;

bool may_be_too_deep(std::string_view text) { return std::count(text.begin(), text.end(), '.') > dots_limit; }

bool fails_an_assertion(std::string_view text) {
    try {
        const auto table = toml::parse(text);
    } catch (const assertion_failed &) {
        return true;
    } catch (const toml::parse_error &) {
    }
    return false;
}

// The first line that is too much: an assertion knows no place. Cost: of reading, times the logarithm of the number of lines.
uint32_t line_of_failure(std::string_view text) {
    std::vector<size_t> ends;
    for (size_t index = 0; index < text.size(); index++) {
        if (text[index] == '\n') ends.push_back(index + 1);
    }
    ends.push_back(text.size());
    size_t good = 0, bad = ends.size();
    while (bad - good > 1) {
        const auto middle = good + (bad - good) / 2;
        (fails_an_assertion(text.substr(0, ends[middle - 1])) ? bad : good) = middle;
    }
    return static_cast<uint32_t>(bad);
}

}  // namespace

extern "C" void ctoml_visit(ctoml_text text, const ctoml_visitor *visitor) {
    const std::string_view view(text.start, text.count);
    if (may_be_too_deep(view)) {
        return visitor->refused(visitor->context, text_of("more than 4000 dots are in it; this is not a configuration"), {0, 0});
    }
    toml::table table;
    try {
        table = toml::parse(view);
    } catch (const assertion_failed &) {
        return visitor->refused(visitor->context, text_of("this line cannot be understood"), {line_of_failure(view), 0});
    } catch (const toml::parse_error &error) {
        return visitor->refused(visitor->context, text_of(error.description()), place_of(error.source()));
    } catch (const std::exception &error) {
        return visitor->refused(visitor->context, text_of(error.what()), {0, 0});
    }
    visit(table, *visitor);
}
