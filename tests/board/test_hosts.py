"""Names of hosts: one spelling of each, and nothing that is not a whole name."""

import pytest

from board.hosts import MAX_HOSTS, HostError, normal, parse


@pytest.mark.parametrize(
    ("typed", "is_"),
    [
        ("pkg.example", "pkg.example"),
        ("Pkg.Example.", "pkg.example"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("a-b.1.example", "a-b.1.example"),
    ],
)
def test_each_host_has_one_spelling(typed: str, is_: str):
    assert normal(typed) == is_


@pytest.mark.parametrize(
    "typed",
    [
        "", ".", "pkg.example..", ".pkg.example", "a..b", "localhost", "metadata", "pypi_.org", "-a.org",
        "a-.org", "pkg.example:443", "https://pkg.example", "pkg.example/simple", "user@pkg.example",
        "pkg.example%00.evil.example", "pkg.example%2eevil", "*.pkg.example", "pkg.example\x00", "pkg.example\n",
        "py pi.org", "pkg.example\\evil", "pkg.example#x", "pkg.example?x",
        "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "1.2.3.4.",
        "[::1]", "::1", "::ffff:10.0.0.1", "fe80::1%eth0", "a.0x", "\uff11\uff12\uff17.0.0.1",
        "faß.example", "\uff50ypi.org", "pypi\u3002org", "a" * 64 + ".org", "a." * 127 + "org",
    ],
)  # fmt: skip
def test_what_is_not_a_whole_name_is_refused(typed: str):
    with pytest.raises(HostError):
        normal(typed)


def test_a_list_has_one_host_on_each_line_and_each_once():
    assert parse(" pkg.example\r\n\r\nPKG.example.\nfiles.example") == (
        "pkg.example",
        "files.example",
    )
    assert parse("") == ()


def test_each_bad_line_is_named():
    with pytest.raises(HostError, match=r"10\.0\.0\.1 is an address.* \*\.org is not the name"):
        parse("pkg.example\n10.0.0.1\n*.org")
    with pytest.raises(HostError, match=f"At most {MAX_HOSTS}"):
        parse("\n".join(f"h{number}.example" for number in range(MAX_HOSTS + 1)))
