"""What is installed of ours carries the terms it comes under."""

from importlib.metadata import distribution
from pathlib import Path

LICENSE = Path(__file__).parents[2] / "LICENSE"


def test_the_native_package_carries_the_licence() -> None:
    files = distribution("kektor-native").files or []
    (carried,) = [file for file in files if file.name == "LICENSE"]
    assert carried.read_text() == LICENSE.read_text()
