"""Packaging of spark-eos. Tool settings are in pyproject.toml, exact pins in constraints.txt."""

from setuptools import find_packages, setup

JOBS = [
    # 4.4.1 of the Python package has no matching jar.
    "delta-spark==4.4.0",
    "pydantic>=2.12,<3",
    "PyYAML>=6.0,<7",
]

setup(
    name="spark-eos",
    version="0.1.0",
    description="Exactly-once Kafka for PySpark Structured Streaming",
    python_requires=">=3.11",
    packages=find_packages(include=["spark_eos", "spark_eos.*", "pyspark_txnkafka"]),
    package_data={"spark_eos": ["py.typed"]},
    install_requires=[
        "pyspark==4.2.*",
        "deltalake>=1.6,<1.7",
        "confluent-kafka>=2.16,<2.17",
        "kafka-python>=3.0,<3.1",
        "pyarrow>=18",
        "numpy>=2,<3",
        # pyspark imports it for Arrow, and does not yet support pandas 3.
        "pandas>=2.2,<3",
    ],
    extras_require={
        "jobs": JOBS,
        "dev": [
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
    entry_points={"console_scripts": ["spark-eos = spark_eos.cli.main:main"]},
)
