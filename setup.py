"""Packaging. Tool settings are in pyproject.toml, exact pins in constraints.txt."""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
INIT = (HERE / "spark_eos" / "__init__.py").read_text()

# `make test-versions` tests both ends of each range. pyspark is an extra: a Spark runtime has its
# own, and a second one breaks it.
PYSPARK = ["pyspark==4.2.*"]
JOBS = [
    # Version 4.4.1 has no matching jar. The package requires pyspark.
    "delta-spark==4.4.0",
    "pydantic>=2.5,<3",
    "PyYAML>=6.0.1,<7",
]

setup(
    name="spark-eos",
    version=re.search(r'^__version__ = "(.+)"', INIT, re.MULTILINE)[1],
    description="Exactly-once Kafka for PySpark Structured Streaming",
    long_description=(HERE / "README.md").read_text(),
    long_description_content_type="text/markdown",
    author="the authors of spark_eos",
    license="Apache-2.0",
    license_files=["LICENSE", "NOTICE"],
    keywords=["kafka", "spark", "pyspark", "streaming", "exactly-once", "transactions", "delta"],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Intended Audience :: Developers",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.11",
        "Topic :: System :: Distributed Computing",
        "Typing :: Typed",
    ],
    python_requires=">=3.11",
    packages=find_packages(include=["spark_eos", "spark_eos.*", "pyspark_txnkafka"]),
    package_data={"spark_eos": ["py.typed"]},
    install_requires=[
        # 1.6.6 is the first version that can remove a file from a table by a custom action.
        "deltalake>=1.6.6,<1.7",
        "confluent-kafka>=2.13,<2.17",
        "kafka-python>=3.0,<3.1",
        "pyarrow>=18,<27",
        "numpy>=1.26,<3",
        # pyspark imports pandas for Arrow, and does not support pandas 3 yet.
        "pandas>=2.2,<3",
    ],
    extras_require={
        "pyspark": PYSPARK,
        "jobs": JOBS,
        "dev": [
            *PYSPARK,
            *JOBS,
            "chispa>=0.12,<0.13",
            "hypothesis>=6.170,<7",
            "import-linter>=2.16,<3",
            "libfaketime>=3.0,<4",
            "matplotlib>=3.11,<4",
            "mypy>=2.4,<3",
            "pytest>=9.2,<10",
            "pytest-randomly>=5.1,<6",
            "pytest-timeout>=2.4,<3",
            "pytest-xdist>=3.8,<4",
            "ruff>=0.17,<0.18",
            "types-PyYAML>=6.0,<7",
        ],
    },
    entry_points={
        "console_scripts": ["spark-eos = spark_eos._cli.main:main"],
        "pytest11": ["spark_eos = spark_eos.testing.plugin"],
    },
)
