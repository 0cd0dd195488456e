"""Judges Ruby and PHP text that runs at once, by the words in it (rules L5 and A8)."""

import re

from agents.harness.policy.context import Context
from agents.harness.policy.program_text import check_strings
from agents.harness.policy.programs_paths import Refused, check_read, check_values

_RUBY_SIGNS = re.compile(
    r"`|%x|\b(?:system|exec|spawn|fork|popen\w*|Open3|eval|\w+_eval|\w+_exec|send|__send__|public_send|method|methods"
    r"|define_method|const_get|require_relative|load|autoload|open|Kernel|Process|Socket|\w+Socket|\w+Server|Net|URI"
    r"|OpenURI|FileUtils|delete|unlink|rm\w*|rmdir|rename|chmod|chown|symlink|link|truncate|write|syswrite|binwrite"
    r"|Tempfile|Dir|IO|PTY|syscall|trap|exit!|at_exit|ObjectSpace|binding|instance_variable_\w+|Marshal|ENV|Fiddle"
    r"|DL|Gem|Bundler|Object|Module|Class|alias|callcc|fcntl|ioctl|kill|set_trace_func|test|ARGF|BEGIN|END|DATA)\b"
)
_RUBY_OPENS = re.compile(
    r"\bFile\.(?!(?:read|readlines|foreach|exist\?|size|basename|extname|dirname)\(\s*(?:'[^'\\|]*'|\"[^\"\\#|]*\")\s*[,)])"
)
_RUBY_LIBRARIES = frozenset(
    {"json", "yaml", "set", "time", "date", "csv", "digest", "pp", "benchmark", "bigdecimal"}
)
_PHP_SIGNS = re.compile(
    r"`|\$\$|\$\{|\$\w+\s*\(|\]\s*\(|\)\s*\(|->|::|&|\b(?:system|exec|shell_exec|passthru|popen|proc_\w+|pcntl_\w+|eval"
    r"|assert|create_function|call_user_\w+|func_\w+|include\w*|require\w*|unlink|rmdir|rename|copy|move_\w+|mkdir|touch"
    r"|chmod|chown|chgrp|symlink|link|f\w*open|f?write|fput\w+|file_put_contents|curl_\w+|stream_\w+|socket_\w+|mail"
    r"|putenv|getenv|ini_\w+|set_\w+|dl|register_\w+|spl_\w+|array_map|array_filter|array_walk\w*|usort|u\w+sort"
    r"|preg_replace\w*|unserialize|extract|parse_str|new|function|fn|class|use|goto|declare|highlight_\w+|show_source"
    r"|readfile|fpassthru|opendir|scandir|glob|gethostby\w+|dns_\w+|posix_\w+|tmpfile|tempnam|ob_\w+|iterator_\w+"
    r"|reduce|GLOBALS|_SERVER|_ENV|_GET)\b"
)
_PHP_OPENS = re.compile(r"\b(?:file_get_contents|file|is_file|file_exists|filesize|parse_ini_file|simplexml_load_file)"
                        r"\s*\(\s*(?!(?:'[^'\\]*'|\"[^\"\\$]*\")\s*[,)])")  # fmt: skip
_PHP_FUNCTIONS = frozenset(
    ["if", "for", "foreach", "while", "switch", "echo", "print", "array", "list", "isset", "empty", "count", "strlen",
     "print_r", "var_dump", "var_export", "json_decode", "json_encode", "file_get_contents", "file", "is_file",
     "file_exists", "filesize", "implode", "explode", "join", "str_replace", "substr", "strpos", "trim", "ltrim",
     "rtrim", "strtolower", "strtoupper", "ucfirst", "sprintf", "printf", "number_format", "array_keys",
     "array_values", "array_merge", "array_unique", "array_sum", "array_slice", "in_array", "sort", "ksort", "max",
     "min", "abs", "round", "floor", "ceil", "date", "time", "microtime", "phpversion", "php_uname", "md5", "sha1",
     "hash", "crc32", "str_repeat", "str_pad", "range", "is_array", "is_string", "intval", "preg_match",
     "preg_match_all", "preg_split", "basename", "dirname", "pathinfo", "extension_loaded", "parse_ini_file",
     "get_loaded_extensions", "memory_get_usage", "str_contains", "str_starts_with", "str_ends_with", "array_flip"]
)  # fmt: skip
_STRING = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'")
_RUBY_METHODS = frozenset(
    ["puts", "p", "print", "pp", "printf", "format", "sprintf", "map", "each", "each_with_index", "select", "reject",
     "sum", "count", "size", "length", "keys", "values", "first", "last", "sort", "sort_by", "uniq", "join", "split",
     "strip", "chomp", "gsub", "sub", "scan", "match", "match?", "include?", "start_with?", "end_with?", "to_s", "to_i",
     "to_f", "to_a", "to_h", "to_sym", "to_json", "parse", "generate", "pretty_generate", "safe_load", "read",
     "readlines", "foreach", "exist?", "basename", "extname", "dirname", "upcase", "downcase", "capitalize", "reverse",
     "min", "max", "min_by", "max_by", "group_by", "tally", "inject", "reduce", "zip", "flatten", "compact", "take",
     "drop", "each_line", "lines", "chars", "bytes", "times", "upto", "step", "find", "detect", "any?", "all?", "none?",
     "empty?", "nil?", "key?", "has_key?", "fetch", "dig", "merge", "transform_values", "each_slice", "each_cons",
     "partition", "with_index", "round", "floor", "ceil", "abs", "now", "today", "strftime", "hexdigest", "new",
     "inspect", "class", "freeze", "dup", "center", "ljust", "rjust", "index", "slice", "delete_prefix",
     "delete_suffix", "tr", "squeeze", "succ", "ord", "chr", "hex", "values_at", "invert", "entries", "even?", "odd?",
     "zero?", "between?", "clamp", "divmod", "gets", "stdin", "stdout", "headers", "require"]
)  # fmt: skip
_RUBY_WORDS = frozenset(
    ["if", "unless", "else", "elsif", "end", "do", "while", "until", "for", "in", "case", "when", "then", "true",
     "false", "nil", "and", "or", "not", "self", "return", "break", "next", "File", "JSON", "YAML", "Set", "Time",
     "Date", "CSV", "Digest", "Math", "ARGV", "STDIN", "Integer", "Float", "Array", "Hash", "String", "MD5", "SHA256",
     "SHA1", "PI", "RUBY_VERSION", "RUBY_PLATFORM", "RUBY_ENGINE", "BigDecimal", "Benchmark"]
)  # fmt: skip
_RUBY_FLAGS = re.compile(r"-(?:[wWnplas]+|W\d|W:\w+|I\S+|r(\w+))")


def check_ruby_text(context: Context, text: str, arguments: list[str]) -> str:
    """`L5`. Raises Refused with the sign that speaks against it."""
    loaded = re.findall(r"\brequire\b\s*\(?\s*(['\"]?)([\w/]*)\1", text)
    if any(name not in _RUBY_LIBRARIES for _, name in loaded):
        raise Refused("A8", "Runs Ruby text that loads a library that is not known")
    sign = _RUBY_SIGNS.search(re.sub(r"#\{([^{}]*)\}", r" \1 ", text)) or _RUBY_OPENS.search(text)
    if sign is not None:
        raise Refused("A8", f"Runs Ruby text that uses {sign[0]}")
    _check_ruby_names(text)
    _check_text_strings(context, text, arguments)
    return "L5"


def _check_ruby_names(text: str) -> None:
    """Every method has to be on the list, and every other name be bound in the text."""
    inner = " ".join(re.findall(r"#\{([^{}]*)\}", text))
    code = f"{_STRING.sub(' ', text)} {inner}"
    code = re.sub(r"(?<=[\s(,~])/(?:[^/\\\n]|\\.)*/[imx]*|\$\w+", " ", code)
    bound = set(re.findall(r"\b([a-z_]\w*)\s*(?:,\s*\w+\s*)*(?:=(?![=~])|\+=|\|\|=)", code))
    for parameters in re.findall(r"\|([\w\s,()*]+)\|", code):
        bound |= set(re.findall(r"\w+", parameters))
    for dot, name in re.findall(r"(\.|&:|::)?\s*\b([A-Za-z_]\w*[?!]?)", code):
        known = name in _RUBY_METHODS or (not dot and name in _RUBY_WORDS | bound)
        if not known and not (not dot and re.search(rf"\b{re.escape(name)}:(?!:)", code)):
            raise Refused("A8", f"Runs Ruby text that uses {name}")


def check_php_text(context: Context, text: str, arguments: list[str]) -> str:
    """`L5`. Raises Refused with the sign that speaks against it."""
    code = _STRING.sub('""', text)
    for name in re.findall(r"([A-Za-z_]\w*)\s*\(", code):
        if name.casefold() not in _PHP_FUNCTIONS:
            raise Refused("A8", f"Runs PHP text that uses {name}")
    sign = _PHP_SIGNS.search(text) or _PHP_OPENS.search(text)
    if sign is not None:
        raise Refused("A8", f"Runs PHP text that uses {sign[0]}")
    _check_text_strings(context, text, arguments)
    return "L5"


def _check_text_strings(context: Context, text: str, arguments: list[str]) -> None:
    strings = [one or two for one, two in _STRING.findall(text)]
    if any("\\x" in one or "\\u" in one or one.lstrip().startswith("|") for one in strings):
        raise Refused("A8", "Runs text with words that are spelled in an unusual way")
    check_strings(context, [*strings, *arguments], writes=False)


def options_and_text(
    context: Context, language: str, words: list[str]
) -> tuple[str | None, list[str]]:
    """The text behind `-e` or `-r` (None if there is none) and the other words. Raises Refused."""
    rest = list(words)
    option = {"ruby": "-e", "php": "-r"}[language]
    text: str | None = None
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        glued = re.fullmatch(r"-([nplaw]*)e", word) if language == "ruby" else None
        if (word == option or glued is not None) and rest:
            text = f"{text or ''}\n{rest.pop(0)}"
        elif language == "ruby":
            match = _RUBY_FLAGS.fullmatch(word)
            if match is not None and word.startswith("-I"):
                check_values(context, [word[2:]])
            if match is None or (match[1] and match[1] not in _RUBY_LIBRARIES):
                raise Refused("A8", f"`ruby {word}` is an option that is not known")
        elif not re.fullmatch(
            r"-d(?:memory_limit|display_errors|error_reporting)=[\w-]+|-n|-q", word
        ):
            raise Refused("A8", f"`php {word}` is an option that is not known")
    return text, rest


def check_input_files(context: Context, words: list[str]) -> None:
    """Files that are given to `ruby -n` and its like."""
    for word in words:
        if word.startswith("|"):
            raise Refused("A8", f"Opens `{word}` in a way of its own")
        check_read(context, word)
