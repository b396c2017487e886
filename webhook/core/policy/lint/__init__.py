"""Advice on policies that load, a module for each sort.

Every finding is a warning with a reason of the table. Facts about kinds come from outside, since
policies know nothing of the kinds that they govern.
"""
