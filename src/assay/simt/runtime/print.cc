// Device printf and assert.
#include <cstdio>
#include <cstdlib>

#include "access.h"

const char* text_at(const Launch& launch, u64 address);

namespace {

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

int print_lane(Warp& W, u32 lane, const char* format, u64 arguments, u32 site) {
    char line[2048];
    size_t used = 0;
    int conversions = 0;
    const auto add = [&](const char* spec, auto value) {
        const int wrote = snprintf(line + used, sizeof line - used, spec, value);
        if (wrote > 0) used += static_cast<size_t>(wrote);
        if (used >= sizeof line) used = sizeof line - 1;
        conversions++;
    };
    for (const char* p = format; *p && used + 1 < sizeof line;) {
        if (*p != '%') {
            line[used++] = *p++;
            continue;
        }
        const char* end = p + 1;
        while (*end && !strchr("diouxXeEfFgGaAcsp%", *end)) end++;
        if (!*end || end - p > 30) break;
        char spec[40] = {};
        memcpy(spec, p, static_cast<size_t>(end - p) + 1);
        const bool wide = strchr(spec, 'l') || strchr(spec, 'j') || strchr(spec, 'z');
        p = end + 1;
        if (*end == '%')
            line[used++] = '%';
        else if (strchr("eEfFgGaA", *end))
            add(spec, take<f64>(W, lane, arguments, site));
        else if (*end == 's') {
            const char* text = text_at(*W.launch, take<u64>(W, lane, arguments, site));
            add(spec, text ? text : "(null)");
        } else if (*end == 'p')
            add(spec, reinterpret_cast<void*>(take<u64>(W, lane, arguments, site)));
        else if (wide)
            add(spec, take<u64>(W, lane, arguments, site));
        else
            add(spec, take<u32>(W, lane, arguments, site));
    }
    append(*W.launch, line, used);
    return conversions;
}

}  // namespace

void print(Warp& W, u32 mask, const u64* format, const u64* arguments, u32 site, u32* result) {
    each_lane(mask, [&](u32 l) {
        const char* text = text_at(*W.launch, format[l]);
        result[l] = static_cast<u32>(text ? print_lane(W, l, text, arguments[l], site) : -1);
    });
}

void assertion(Warp& W, u32 mask, const u64* message, const u64* file, const u32* line,
               const u64* function, u32 site) {
    each_lane(mask, [&](u32 l) {
        const char* what = text_at(*W.launch, message[l]);
        const char* where = text_at(*W.launch, file[l]);
        const char* in = text_at(*W.launch, function[l]);
        char made[1024];
        const int size = snprintf(made, sizeof made, "%s:%u: %s: assertion `%s` failed\n",
                                  where ? where : "?", line[l], in ? in : "?", what ? what : "?");
        append(*W.launch, made, static_cast<size_t>(size));
        fault(W, ASSERTION, site, l, 0, 0);
    });
    if (mask) W.launch->stopped = 1;
}
