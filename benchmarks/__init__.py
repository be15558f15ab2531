"""Measurements that hold the project to its figures: a table each, failure on a broken bound."""
