"""The rest of a line about a name that is not known: the nearest right name, and the names there are."""

from mpi_compress.core.errors import nearest


def test_a_wrong_name_is_told_the_nearest_and_all_or_the_nearest_of_many():
    assert nearest("x", [], "table") == "no table called 'x', nor any other here"
    assert nearest("Stp", ["stop", "seed", "seed"], "key") == "no key called 'Stp'; did you mean 'stop'? there are: seed, stop"
    assert nearest("zzz", ["a"], "key") == "no key called 'zzz'. there are: a"
    many = nearest("top", ["top-k", *(f"a{i}" for i in range(30))], "compressor")
    assert many.startswith("no compressor called 'top'; did you mean 'top-k'? there are 31, such as: top-k, ")
    assert many.count(", ") == 1 + 9
