"""Names of hosts: one spelling of each, and nothing that is not a whole name."""

import pytest

from board.hosts import MAX_HOSTS, HostError, normal, parse


@pytest.mark.parametrize(
    ("typed", "is_"),
    [
        ("pypi.org", "pypi.org"),
        ("PyPI.Org.", "pypi.org"),
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
        "", ".", "pypi.org..", ".pypi.org", "a..b", "localhost", "metadata", "pypi_.org", "-a.org",
        "a-.org", "pypi.org:443", "https://pypi.org", "pypi.org/simple", "user@pypi.org",
        "pypi.org%00.evil.example", "pypi.org%2eevil", "*.pypi.org", "pypi.org\x00", "pypi.org\n",
        "py pi.org", "pypi.org\\evil", "pypi.org#x", "pypi.org?x",
        "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "1.2.3.4.",
        "[::1]", "::1", "::ffff:10.0.0.1", "fe80::1%eth0", "a.0x", "\uff11\uff12\uff17.0.0.1",
        "faß.example", "\uff50ypi.org", "pypi\u3002org", "a" * 64 + ".org", "a." * 127 + "org",
    ],
)  # fmt: skip
def test_what_is_not_a_whole_name_is_refused(typed: str):
    with pytest.raises(HostError):
        normal(typed)


def test_a_list_has_one_host_on_each_line_and_each_once():
    assert parse(" pypi.org\r\n\r\nPYPI.org.\nfiles.pythonhosted.org") == (
        "pypi.org",
        "files.pythonhosted.org",
    )
    assert parse("") == ()


def test_the_first_bad_line_is_named():
    with pytest.raises(HostError, match=r"10\.0\.0\.1 is an address"):
        parse("pypi.org\n10.0.0.1\n*.org")
    with pytest.raises(HostError, match=f"At most {MAX_HOSTS}"):
        parse("\n".join(f"h{number}.example" for number in range(MAX_HOSTS + 1)))
