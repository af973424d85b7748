// Device printf and assert.
#include <cstdio>
#include <string>

#include "access.h"

bool read_text(Warp& W, u32 lane, u64 address, char* to, u64 room);

namespace {

constexpr size_t LONGEST = 2048;  // characters of a line

void append(Launch& launch, const char* text, size_t size) {
    // Blocks on several cores take turns by reserving their room first.
    const u64 at = __atomic_fetch_add(&launch.printed_bytes, size, __ATOMIC_RELAXED);
    if (at + size <= launch.max_printed) memcpy(launch.printed + at, text, size);
}

// One conversion, such as %5.2f or %lld. Arguments lie one after the other, each aligned to its
// size; those of a call are promoted as in C, so that they have 4 or 8 bytes.
template <class T>
T take(Warp& W, u32 lane, u64& arguments, u32 site) {
    arguments = (arguments + sizeof(T) - 1) & ~(sizeof(T) - 1);
    T value{};
    read_generic(W, site, lane, arguments, sizeof(T), &value);
    arguments += sizeof(T);
    return value;
}

// A number for a `*` of a conversion, or the digits that stand there.
void take_number(Warp& W, u32 lane, const char*& p, std::string& spec, u64& arguments, u32 site) {
    if (*p == '*') {
        spec += std::to_string(static_cast<s32>(take<u32>(W, lane, arguments, site)));
        p++;
    }
    while (*p >= '0' && *p <= '9') spec += *p++;
}

// One lane's line. The kernel's own conversions never reach snprintf: each is read, and written
// anew with the length that its argument has here.
int print_lane(Warp& W, u32 lane, const char* format, u64 arguments, u32 site) {
    char line[LONGEST];
    size_t used = 0;
    int conversions = 0;
    const auto add = [&](const std::string& spec, auto value) {
        const int wrote = snprintf(line + used, sizeof line - used, spec.c_str(), value);
        if (wrote > 0) used += static_cast<size_t>(wrote);
        if (used >= sizeof line) used = sizeof line - 1;
        conversions++;
    };
    for (const char* p = format; *p && used + 1 < sizeof line;) {
        if (*p != '%') {
            line[used++] = *p++;
            continue;
        }
        const char* begin = p++;
        std::string spec = "%", length;
        while (*p && strchr("-+ #0", *p)) spec += *p++;
        take_number(W, lane, p, spec, arguments, site);
        if (*p == '.') {
            spec += *p++;
            take_number(W, lane, p, spec, arguments, site);
        }
        while (*p && strchr("hlLjztq", *p)) length += *p++;
        const char kind = *p ? *p++ : 0;
        const bool wide = length.find_first_of("ljztq") != std::string::npos;
        const bool known = kind && strchr("diouxXeEfFgGaAcsp", kind) && spec.size() < 24;
        if (kind == '%') {
            line[used++] = '%';
        } else if (!known) {  // as it stands: no argument belongs to it
            for (; begin != p && used + 1 < sizeof line; begin++) line[used++] = *begin;
        } else if (strchr("eEfFgGaA", kind)) {
            add(spec + kind, take<f64>(W, lane, arguments, site));
        } else if (kind == 's') {
            char text[LONGEST];
            const u64 at = take<u64>(W, lane, arguments, site);
            add(spec + kind, read_text(W, lane, at, text, sizeof text) ? text : "(null)");
        } else if (kind == 'p') {
            add(spec + kind, reinterpret_cast<void*>(take<u64>(W, lane, arguments, site)));
        } else if (wide && kind != 'c') {
            add(spec + "ll" + kind, take<u64>(W, lane, arguments, site));
        } else {
            add(spec + (kind == 'c' ? "" : length) + kind, take<u32>(W, lane, arguments, site));
        }
    }
    append(*W.launch, line, used);
    return conversions;
}

std::string text_or(Warp& W, u32 lane, u64 address) {
    char text[LONGEST];
    return read_text(W, lane, address, text, sizeof text) ? text : "?";
}

}  // namespace

void print(Warp& W, u32 mask, const u64* format, const u64* arguments, u32 site, u32* result) {
    each_lane(mask, [&](u32 l) {
        char text[LONGEST];
        const bool found = read_text(W, l, format[l], text, sizeof text);
        result[l] = static_cast<u32>(found ? print_lane(W, l, text, arguments[l], site) : -1);
    });
}

void assertion(Warp& W, u32 mask, const u64* message, const u64* file, const u32* line,
               const u64* function, u32 site) {
    each_lane(mask, [&](u32 l) {
        const std::string made = text_or(W, l, file[l]) + ":" + std::to_string(line[l]) + ": " +
                                 text_or(W, l, function[l]) + ": assertion `" +
                                 text_or(W, l, message[l]) + "` failed\n";
        append(*W.launch, made.c_str(), made.size());
        fault(W, ASSERTION, site, l, 0, 0);
    });
    if (mask) W.launch->stopped = 1;
}
