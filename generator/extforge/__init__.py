"""Turn a plan into openJiuwen harness extensions that really run."""

__version__ = "0.1.0"
