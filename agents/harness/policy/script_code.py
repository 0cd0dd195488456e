"""Judges JavaScript and Perl text that runs at once, by the words in it (rules L5 and A8)."""

import re

from agents.harness.policy.context import Context
from agents.harness.policy.program_text import check_strings
from agents.harness.policy.programs_paths import Refused, check_change, check_read

_NODE_MODULES = frozenset(
    ["fs", "path", "os", "util", "url", "assert", "crypto", "events", "readline", "zlib", "string_decoder",
     "querystring", "buffer", "perf_hooks", "timers", "fs/promises", "v8", "assert/strict", "path/posix",
     "timers/promises", "util/types"]
)  # fmt: skip
_NODE_TEST = ("node:test", "node:test/reporters")  # without the prefix it is a package of that name
# What nearly every module does, and which gives nobody anything but this module's own values.
_NODE_EXPORTS = re.compile(r"(?<![\w.$])module\.exports\b")
_NODE_SIGNS = re.compile(
    r"\b(?:child_process|exec\w*|spawn\w*|fork\w*|eval|Function|constructor|Reflect|Proxy|globalThis|global"
    r"|vm|worker_threads|Worker|cluster|https?|http2|net|tls|dgram|dns|fetch|WebSocket|XMLHttpRequest"
    r"|EventSource|unlink\w*|rm|rmSync|rmdir\w*|symlink\w*|link|linkSync|chown\w*|lchown\w*|binding|dlopen|mainModule"
    r"|kill|createRequire|_load|_compile|Module|module|inspector|chdir|homedir|setTimeout\s*\(\s*['\"]"
    r"|__proto__|prototype|getBuiltinModule|import|axios|request|got|undici|execa|shelljs|zx|with|del|rimraf"
    r"|__dirname|__filename|WebAssembly|SharedArrayBuffer|atob|setInterval\s*\(\s*['\"])\b"
)
_NODE_REQUIRE = re.compile(r"\brequire\b(?:\s*\(\s*(['\"])([^'\"]*)\1\s*\))?")
_NODE_WRITES = re.compile(
    r"\b(?:write\w*|append\w*|createWriteStream|mkdir\w*|rename\w*|copy\w*|cp|cpSync|chmod\w*|truncate\w*"
    r"|open|openSync|utimes\w*|mkdtemp\w*)\b"
)
# Anything but one plain string, or the standard input, as what is opened.
_NODE_OPENS = re.compile(
    r"\b(?:read(?:File|dir|link)\w*|createReadStream|open\w*|opendir\w*|write\w*|append\w*|copy\w*|rename\w*"
    r"|createWriteStream|mkdir\w*)\s*\(\s*(?!(?:'[^'\\]*'|\"[^\"\\]*\"|0)\s*[,)]|process\.stdout)"
    r"(?<!stdout\.write\()(?<!stderr\.write\()"
)
# Such a function under another name, which the pattern above would not find.
_NODE_ALIASES = re.compile(
    r"\b(?:read(?:File|dir|link)|createReadStream|open(?:dir|Sync)?|write(?:File|v)|append|copyFile|rename"
    r"|createWriteStream|mkdir)\w*\s*(?:[:;)\]|&?.=]|$|as\b)"
    r"|\.\s*(?:read(?:File|dir)|write(?:File)|append|open)\w*\s*,"
)
_COMPUTED = re.compile(
    r"(?:[\w)\]\"'`]|\?\.)\s*\[\s*(?!\d+\s*\]|['\"][\w. @/-]*['\"]\s*\]|[a-z]\w*\s*\])"
)
_COMPUTED_CALL = re.compile(r"\]\s*(?:\?\.)?\s*[(`]")
_CONSTANT = re.compile(
    r"\bconst\s+([A-Za-z_]\w*)\s*=\s*('[^'\\\n]*'|\"[^\"\\\n]*\")\s*(?:;|,|\n|$)"
)
_IMPORT = re.compile(
    r"(?m)^\s*import\s+(?:[\w*]+(?:\s+as\s+\w+)?|\{[\w\s,]*\})\s+from\s+('[^'\\]*'|\"[^\"\\]*\")"
)
_STRING = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`([^`]*)`")
_PERL_PRINT = re.compile(r"print(?: if| unless) /(?:[^/\\$@`]|\\.)*/[ix]*;?|print;?|print \$_;?")
_PERL_CHANGE = re.compile(
    r"\s*s(?:([/|#!,])(?:(?!\1)[^\\]|\\.)*\1(?:(?!\1)[^\\]|\\.)*\1)([gimsx]*)\s*;?\s*"
)
# A variable with a bracket behind it is an element, and what is in the bracket is run.
_PERL_CODE = re.compile(
    r"\$(?![\d/|!#,\s)&]|$)|\$.?\d*\s*[\[{]|@\{|\$\{|\(\?\??\{|`|\(\?p|@\w|\n|\\[NpPE]"
)
_PERL_OPTIONS = re.compile(r"-(?:[nplw0a]|0\d+|F.|i(?:\.\w+)?)+[eE]?|-[nplwi0a]*[eE]")
# All that Perl can do beyond its own data has one of these words or marks.
_PERL_SIGNS = re.compile(
    r"\b(?:system|exec|qx|open\w*|unlink|rmdir|rename|eval|do|require|use|no|fork|kill|socket\w*|connect|syscall"
    r"|sys\w+|glob|readpipe|readlink|link|symlink|chmod|chown|utime|mkdir|chdir|chroot|truncate|dump|tie|bless|sub"
    r"|import|AUTOLOAD|BEGIN|END|INIT|CHECK|UNITCHECK|DESTROY|__\w+__|format|write|select|ENV|INC|ARGV\w*|CORE|POSIX"
    r"|IO|exit|die|warn|pos|reset|study|local|our|readline|getc|fileno|wait\w*|pipe|send|recv|bind|listen|accept"
    r"|y|s|ee|s\d*e)\b|`|<[^=>\s]*>|\(\?\??\{|\$\{|@\{|%\{|(?<!&)&(?![&\s])|\*[{A-Za-z_]|->|::|\\&|\$\$|\bs\W"
)


def check_node(context: Context, text: str, arguments: list[str]) -> str:
    """`L5`. Raises Refused with the sign that speaks against it."""
    text = _IMPORT.sub(r"const _ = require(\1)", text)
    text = _with_constants(text)
    text = re.sub(r"\b(?:const|let|var)\s*\[[\w,\s]*\]", "const _", text)
    if re.search(r"\\[xu]", text):
        raise Refused("A8", "Runs JavaScript text with words that are spelled in an unusual way")
    sign = _NODE_SIGNS.search(_NODE_EXPORTS.sub("exports", _without_requires(text)))
    if sign is not None:
        raise Refused("A8", f"Runs JavaScript text that uses {sign[0]}")
    for match in _NODE_REQUIRE.finditer(text):
        name = (match[2] or "").removeprefix("node:")
        is_known = name in _NODE_MODULES or match[2] in _NODE_TEST
        if not is_known and not name.startswith(("./", "../")):
            raise Refused(
                "A8", f"Runs JavaScript text that loads {name or 'a module it has named'}"
            )
    if any(p.search(text) for p in (_NODE_OPENS, _NODE_ALIASES, _COMPUTED, _COMPUTED_CALL)):
        raise Refused("A8", "Runs JavaScript text that looks up a name it has made")
    strings = [a or b or c for a, b, c in _STRING.findall(text)]
    writes = _NODE_WRITES.search(text) is not None
    if writes and re.search(r"\bprocess\.(?:cwd|env)\b|\bos\b|\+", text):
        raise Refused("A4", "Runs JavaScript text that writes to a place it has made")
    check_strings(context, [*strings, *arguments], writes=writes)
    return "L5"


def _with_constants(text: str) -> str:
    """Names that are bound once, to a plain string, and only given to calls, stand for it."""
    for match in _CONSTANT.finditer(text):
        name, value = match[1], match[2]
        rest = text.replace(match[0], " ", 1)
        bound = (
            rf"(?:function\s*\w*|catch)\s*\([^)]*\b{name}\b|\b{name}\b[^()]*\)?\s*=>"
            rf"|\b(?:let|var|const|of|in)\s+{name}\b"
        )
        given = rf"(?<=[(,])\s*\b{name}\b(?=\s*[,)])"
        done = re.sub(given, lambda _match, value=value: value, rest)  # type: ignore[misc]
        if re.search(bound, rest) is None and not re.search(rf"(?<![\w$]){name}(?![\w$])", done):
            text = done
    return text


def _without_requires(text: str) -> str:
    """Without the names of modules that are loaded: those are looked at by themselves."""
    return _NODE_REQUIRE.sub(lambda m: "" if m[2] and m[2].startswith("./") else m[0], text)


def check_perl(context: Context, arguments: list[str]) -> str:
    """`L5` or `L2`: replacing and printing lines is all that Perl may do here."""
    if arguments in (["-v"], ["--version"]):
        return "L1"
    rest = list(arguments)
    texts: list[str] = []
    in_place = False
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if not _PERL_OPTIONS.fullmatch(option) or (option.endswith("e") and not rest):
            raise Refused("A8", f"`perl {option}` is an option that is not known")
        in_place = in_place or "i" in option
        texts += [rest.pop(0)] if option.endswith("e") else []
    if not texts:
        raise Refused("A8", "Runs Perl text that was not looked at")
    for text in texts:
        _check_perl_text(text)
        strings = [a or b or c for a, b, c in _STRING.findall(text)]
        check_strings(context, strings, writes=False)
    for argument in rest:
        if set("|<>&") & set(argument):  # Perl would start a program, or write
            raise Refused("A8", f"Perl opens `{argument}` in a way of its own")
        (check_change if in_place else check_read)(context, argument)
    return "L2" if in_place else "L5"


def _check_perl_text(text: str) -> None:
    if _PERL_SIGNS.search(text) is None:
        return
    if _PERL_CODE.search(text):
        raise Refused("A8", "Runs Perl text that may run code in a pattern")
    if _PERL_PRINT.fullmatch(text.strip()):
        return
    at = 0
    while at < len(text):
        match = _PERL_CHANGE.match(text, at)
        if match is None or match.end() == at:
            raise Refused("A8", "Runs Perl text that does more than replace or print")
        at = match.end()
