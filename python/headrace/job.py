"""Simulated jobs of many ranks: ``from headrace.job import Job``."""

from headrace.predict.job import By as By
from headrace.predict.job import Job as Job
