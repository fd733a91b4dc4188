#include "CNlohmannJSON.h"

#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

struct cjson_document {
    std::vector<cjson_value> values;
    std::string bytes;
};

namespace {

// Receives the values that the parser finds. The reader and the parser use their own stacks, so deep nesting does not nest calls.
class reader final : public nlohmann::json_sax<nlohmann::json> {
  public:
    explicit reader(cjson_document &document) : document(document) {}

    bool null() override { return add(cjson_kind_null); }
    bool boolean(bool value) override { return add(value ? cjson_kind_true : cjson_kind_false); }
    bool number_integer(number_integer_t value) override { return add_number(static_cast<double>(value)); }
    bool number_unsigned(number_unsigned_t value) override { return add_number(static_cast<double>(value)); }
    bool number_float(number_float_t value, const string_t &) override { return add_number(value); }
    bool string(string_t &value) override {
        if (!add(cjson_kind_text)) return false;
        auto &text = document.values.back().text;
        text.start = static_cast<uint32_t>(document.bytes.size());
        text.count = static_cast<uint32_t>(value.size());
        document.bytes += value;
        return true;
    }
    bool key(string_t &value) override { return string(value); }
    bool binary(binary_t &) override { return false; }

    bool start_object(std::size_t) override { return open(cjson_kind_object); }
    bool start_array(std::size_t) override { return open(cjson_kind_list); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }

    bool parse_error(std::size_t, const std::string &, const nlohmann::detail::exception &) override { return false; }

  private:
    cjson_document &document;
    std::vector<uint32_t> unclosed;

    // A response of 4 MiB has at most about 700,000 values. A response that consists only of brackets would have four million.
    static constexpr size_t values_limit = 1'000'000;

    bool add(cjson_kind kind) {
        if (document.values.size() >= values_limit) return false;
        cjson_value value = {};
        value.kind = kind;
        value.end = static_cast<uint32_t>(document.values.size() + 1);
        document.values.push_back(value);
        return true;
    }
    bool add_number(double number) {
        if (!add(cjson_kind_number)) return false;
        document.values.back().number = number;
        return true;
    }
    bool open(cjson_kind kind) {
        unclosed.push_back(static_cast<uint32_t>(document.values.size()));
        return add(kind);
    }
    bool close() {
        document.values[unclosed.back()].end = static_cast<uint32_t>(document.values.size());
        unclosed.pop_back();
        return true;
    }
};

}  // namespace

extern "C" cjson_document *cjson_read(const char *text, size_t count) {
    // The library treats a NUL as the end of the text.
    if (count >= std::numeric_limits<uint32_t>::max() || std::memchr(text, 0, count) != nullptr) return nullptr;
    try {
        auto document = std::make_unique<cjson_document>();
        reader reader(*document);
        if (nlohmann::json::sax_parse(text, text + count, &reader)) return document.release();
    } catch (const std::exception &) {
        // The usual reason is a lack of memory. An exception must not leave C++.
    }
    return nullptr;
}

extern "C" const cjson_value *cjson_values(const cjson_document *document) { return document->values.data(); }
extern "C" const char *cjson_bytes(const cjson_document *document) { return document->bytes.data(); }
extern "C" void cjson_free(cjson_document *document) { delete document; }
