"""The packages of geomctrl: models/ and controllers/ stand beside it in the repository and are installed inside it."""

from setuptools import find_packages, setup

BESIDE = ("models", "controllers")

setup(
    packages=[
        *find_packages(include=["geomctrl", "geomctrl.*"]),
        *(f"geomctrl.{package}" for name in BESIDE for package in find_packages(include=[name, f"{name}.*"])),
    ],
    package_dir={f"geomctrl.{name}": name for name in BESIDE},
)
